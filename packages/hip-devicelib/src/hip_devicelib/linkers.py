"""Links a relocatable object into a code object that a runtime can load, with comgr, ``ld.lld``, or the one in
``ziglang``.

Only ELF objects are passed from this package to ROCm: their format is stable, that of bitcode is not.
"""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hip_devicelib.codeobject import CodeObject
from hip_devicelib.errors import CodeObjectError, LinkError, NotFoundError
from hip_devicelib.kernel_metadata import describe, read_kernels, read_target
from hip_devicelib.rocm import Rocm, find_rocm
from hip_devicelib.target import Target, parse_target


class Linker(Protocol):
    """A linker of relocatable objects into a code object."""

    @property
    def identity(self) -> str:
        """The name of the linker, for messages and cache keys."""

    def link(self, objects: Sequence[bytes], target: Target) -> bytes:
        """The linked ELF file of *objects*, all for *target*. Raises `LinkError`."""


@dataclass(frozen=True)
class Lld:
    """LLVM's linker as a program, started by ``command``."""

    command: tuple[str, ...]

    @property
    def identity(self) -> str:
        return " ".join(self.command)

    def link(self, objects: Sequence[bytes], target: Target) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            names = [f"{number}.o" for number in range(len(objects))]
            for name, data in zip(names, objects, strict=True):
                Path(folder, name).write_bytes(data)
            # The options with which clang links code objects. Without them, an undefined symbol would only be noticed
            # on loading.
            options = ["-shared", "--no-undefined", "--build-id=none", "-o", "linked"]
            try:
                done = subprocess.run(
                    [*self.command, *options, *names], cwd=folder, capture_output=True, text=True, check=False
                )
            except OSError as error:
                raise LinkError(f"{self.identity} does not run: {error.strerror}") from None
            if done.returncode:
                raise LinkError(f"{self.identity} does not link this for {target.id}: {done.stderr.strip()[-2000:]}")
            return Path(folder, "linked").read_bytes()


# From amd_comgr.h: statuses, kinds of data, and the action LINK_RELOCATABLE_TO_EXECUTABLE, whose number changed in
# version 3. Every handle is a structure of one 64-bit number.
_SUCCESS = 0
_KIND_LOG, _KIND_RELOCATABLE, _KIND_EXECUTABLE = 5, 7, 8
_ACTION_LINK, _ACTION_LINK_BEFORE_3 = 7, 9


_one_link_at_a_time = threading.Lock()
"""comgr runs LLVM's linker in this process, which keeps its state in global variables."""


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
        with ExitStack() as stack:
            session = _Session(self._load(), self.identity, stack)
            inputs = session.make("data_set")
            for number, data in enumerate(objects):
                session.add(inputs, _KIND_RELOCATABLE, f"{number}.o", data)
            outputs = session.make("data_set")
            action = session.make("action_info")
            session.call("action_info_set_isa_name", action, f"amdgcn-amd-amdhsa--{target.id}".encode())
            session.call("action_info_set_logging", action, ctypes.c_bool(True))
            options = (ctypes.c_char_p * 1)(b"-Wl,--no-undefined")
            session.call("action_info_set_option_list", action, options, ctypes.c_size_t(1))
            kind = ctypes.c_int(_ACTION_LINK if session.major_version() >= 3 else _ACTION_LINK_BEFORE_3)
            with _one_link_at_a_time:
                status = session.function("do_action")(kind, action, inputs, outputs)
            if status != _SUCCESS:
                log = session.read(outputs, _KIND_LOG).decode(errors="replace").strip()
                raise LinkError(
                    f"{self.identity} does not link this for {target.id}: {log[-2000:] or session.describe(status)}"
                )
            return session.read(outputs, _KIND_EXECUTABLE)

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


def find_linkers(rocm: Rocm | None) -> Iterator[Linker]:
    """The available linkers, quickest first: comgr and ld.lld of *rocm*, ld.lld in PATH, that of ziglang."""
    if rocm is not None and "comgr" in rocm.files:
        yield Comgr(rocm.files["comgr"])
    if rocm is not None and "ld.lld" in rocm.files:
        yield Lld((str(rocm.files["ld.lld"]),))
    if program := shutil.which("ld.lld"):
        yield Lld((program,))
    if sys.executable and importlib.util.find_spec("ziglang"):
        yield Lld((sys.executable, "-m", "ziglang", "ld.lld"))


def find_linker(rocm: Rocm | None = None) -> Linker:
    """The first of `find_linkers`; by default with the ROCm that is found. `NotFoundError` says what to install."""
    looked = ""
    if rocm is None:
        try:
            rocm = find_rocm()
        except NotFoundError as error:
            looked = f" ({error})"
    for linker in find_linkers(rocm):
        return linker
    raise NotFoundError(
        "no linker for code objects: looked for comgr and ld.lld in ROCm, for ld.lld in PATH, and for the Python "
        f"package ziglang{looked}. Install one of them; 'pip install ziglang' is enough"
    )


def link(
    objects: bytes | Sequence[bytes],
    *,
    linker: Linker | None = None,
    signatures: Mapping[str, Sequence[tuple[str, str]]] | None = None,
) -> CodeObject:
    """Link relocatable *objects* into a code object, with *linker* or the first that is found.

    One of the objects contains the kernels, the others functions that they call. *signatures* are as for
    `read_kernels`. Raises `CodeObjectError` for anything that is not an object for an AMD GPU, for objects for
    different targets, and for kernels in several objects; `LinkError` with the linker's output; `NotFoundError` if
    there is no linker.
    """
    listed = [objects] if isinstance(objects, bytes) else list(objects)
    if not listed:
        raise CodeObjectError("objects: at least one object is needed")
    targets = {read_target(data) for data in listed}
    if len(targets) > 1:
        raise CodeObjectError(f"the objects are for different targets: {', '.join(sorted(targets))}")
    chosen = linker if linker is not None else find_linker()
    return describe(chosen.link(_kernels_first(listed), parse_target(targets.pop())), signatures)


def _kernels_first(objects: list[bytes]) -> list[bytes]:
    """*objects*, with the one that contains the kernels first.

    Linkers concatenate the metadata notes of all objects, and loaders use the first.
    """
    kernels = [tuple(kernel.name for kernel in read_kernels(data)) for data in objects]
    holding = [names for names in kernels if names]
    if len(holding) > 1:
        listed = "; ".join(", ".join(names) for names in holding)
        raise CodeObjectError(
            f"{len(holding)} of the objects hold kernels ({listed}), and a code object lists those of one: link these "
            "kernels as LLVM IR, by giving optimise() all modules"
        )
    return [data for _, data in sorted(zip(kernels, objects, strict=True), key=lambda pair: not pair[0])]
