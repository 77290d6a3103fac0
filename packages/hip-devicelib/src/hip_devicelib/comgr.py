"""ROCm's code object manager, comgr: it links and assembles in this process."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hip_devicelib.errors import CompileError, LinkError
from hip_devicelib.target import Target

# From amd_comgr.h: statuses, kinds of data, and actions, whose numbers changed in version 3. Every handle is a
# structure of one 64-bit number.
_SUCCESS = 0
_KIND_SOURCE, _KIND_LOG, _KIND_RELOCATABLE, _KIND_EXECUTABLE = 1, 5, 7, 8


class _Action(NamedTuple):
    verb: str
    number: int
    before_3: int
    makes: int


_LINK = _Action("link", 7, 9, _KIND_EXECUTABLE)
_ASSEMBLE = _Action("assemble", 8, 10, _KIND_RELOCATABLE)


_one_at_a_time = threading.Lock()
"""comgr runs LLVM's programs in this process, which keep their state in global variables."""


def options_of(target: Target) -> list[str]:
    """What an assembler has to be told of *target* beside its name."""
    return [] if target.wave_size == target.wave_sizes[0] else [f"-mwavefrontsize{target.wave_size}"]


class _Handle(ctypes.Structure):
    _fields_ = (("handle", ctypes.c_uint64),)


@dataclass(frozen=True)
class Comgr:
    """ROCm's code object manager in this process, without files or other programs."""

    library: Path

    @property
    def identity(self) -> str:
        return f"comgr {self.library.resolve().name}"

    def link(self, objects: Sequence[bytes], target: Target) -> bytes:
        """The linked ELF file of *objects*. Raises `LinkError`."""
        inputs = [(_KIND_RELOCATABLE, f"{number}.o", data) for number, data in enumerate(objects)]
        return self._perform(_LINK, inputs, target, ["-Wl,--no-undefined"], LinkError)

    def assemble(self, text: bytes, target: Target) -> bytes:
        """The relocatable object of the assembly *text*. Raises `CompileError`."""
        return self._perform(_ASSEMBLE, [(_KIND_SOURCE, "kernel.s", text)], target, options_of(target), CompileError)

    def _perform(
        self,
        action: _Action,
        inputs: Sequence[tuple[int, str, bytes]],
        target: Target,
        options: Sequence[str],
        error: type[LinkError | CompileError],
    ) -> bytes:
        """What *action* makes of *inputs*: the kind, the name and the contents of each."""
        with ExitStack() as stack:
            session = _Session(self._load(), self.identity, stack)
            given, made, settings = session.make("data_set"), session.make("data_set"), session.make("action_info")
            for kind, name, data in inputs:
                session.add(given, kind, name, data)
            session.call("action_info_set_isa_name", settings, f"amdgcn-amd-amdhsa--{target.id}".encode())
            session.call("action_info_set_logging", settings, ctypes.c_bool(True))
            words = (ctypes.c_char_p * max(len(options), 1))(*(option.encode() for option in options))
            session.call("action_info_set_option_list", settings, words, ctypes.c_size_t(len(options)))
            number = action.number if session.major_version() >= 3 else action.before_3
            with _one_at_a_time:
                status = session.function("do_action")(ctypes.c_int(number), settings, given, made)
            if status != _SUCCESS:
                log = session.read(made, _KIND_LOG).decode(errors="replace").strip()
                said = log[-2000:] or session.describe(status)
                raise error(f"{self.identity} does not {action.verb} this for {target.id}: {said}")
            return session.read(made, action.makes)

    def _load(self) -> ctypes.CDLL:
        try:
            return ctypes.CDLL(str(self.library))
        except OSError as error:
            raise LinkError(f"{self.library} does not load: {error}") from None


class _Session:
    """A session of comgr: all handles that it creates are released at the end, also after errors."""

    def __init__(self, library: ctypes.CDLL, identity: str, stack: ExitStack) -> None:
        self._library = library
        self._identity = identity
        self._stack = stack

    def function(self, name: str) -> Callable[..., int]:
        try:
            return self._library[f"amd_comgr_{name}"]
        except AttributeError:
            raise LinkError(f"{self._identity} is no comgr: it lacks amd_comgr_{name}") from None

    def call(self, name: str, *arguments: object) -> None:
        status = self.function(name)(*arguments)
        if status != _SUCCESS:
            raise LinkError(f"{self._identity}: amd_comgr_{name} failed: {self.describe(status)}")

    def major_version(self) -> int:
        major, minor = ctypes.c_size_t(), ctypes.c_size_t()
        self.function("get_version")(ctypes.byref(major), ctypes.byref(minor))
        return major.value

    def describe(self, status: int) -> str:
        text = ctypes.c_char_p()
        self.function("status_string")(ctypes.c_int(status), ctypes.byref(text))
        return (text.value or b"").decode() or f"status {status}"

    def make(self, kind: str) -> _Handle:
        """A new data set or action, released when the session ends."""
        handle = _Handle()
        create, destroy = {
            "data_set": ("create_data_set", "destroy_data_set"),
            "action_info": ("create_action_info", "destroy_action_info"),
        }[kind]
        self.call(create, ctypes.byref(handle))
        self._stack.callback(self.function(destroy), handle)
        return handle

    def add(self, data_set: _Handle, kind: int, name: str, data: bytes) -> None:
        handle = _Handle()
        self.call("create_data", ctypes.c_int(kind), ctypes.byref(handle))
        self._stack.callback(self.function("release_data"), handle)
        self.call("set_data", handle, ctypes.c_size_t(len(data)), data)
        self.call("set_data_name", handle, name.encode())
        self.call("data_set_add", data_set, handle)

    def read(self, data_set: _Handle, kind: int) -> bytes:
        """The bytes of the first datum of *kind* in *data_set*; empty if there is none."""
        count = ctypes.c_size_t()
        self.call("action_data_count", data_set, ctypes.c_int(kind), ctypes.byref(count))
        if count.value == 0:
            return b""
        handle = _Handle()
        get = "action_data_get_data"
        self.call(get, data_set, ctypes.c_int(kind), ctypes.c_size_t(0), ctypes.byref(handle))
        self._stack.callback(self.function("release_data"), handle)
        size = ctypes.c_size_t()
        self.call("get_data", handle, ctypes.byref(size), None)
        buffer = ctypes.create_string_buffer(max(size.value, 1))
        self.call("get_data", handle, ctypes.byref(size), buffer)
        return buffer.raw[: size.value]
