"""The stand-in for the HIP runtime in ``standin/``: built by this machine's C compiler, loaded before hip-python looks
for the real one, and steered from here."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import pytest

from hip_runtime.drivers.hip.driver import HipDriver
from hip_runtime.drivers.hip.probe import import_hip

MEMORY = 32 << 20
"""Bytes of each device; there are two."""

NOT_FOUND = 500
LAUNCH_FAILURE = 719
"""Errors of HIP: no such symbol, and a kernel that failed."""

RESOURCES = ("memory", "streams", "events", "modules", "graphs", "executables")

_SOURCES = Path(__file__).parent / "standin"
_FLAGS = "-std=gnu11 -O1 -Wall -Werror -shared -fPIC -fvisibility=hidden -pthread -Wl,-soname,libamdhip64.so".split()
_LAUNCHES = 256
_NAME = 512
_ARGUMENTS = 4096


class _Launch(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char * _NAME),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared", ctypes.c_uint32),
        ("cooperative", ctypes.c_int),
        ("device", ctypes.c_int),
        ("stream", ctypes.c_void_p),
        ("argument_bytes", ctypes.c_uint64),
        ("arguments", ctypes.c_ubyte * _ARGUMENTS),
    ]


@dataclass(frozen=True)
class Launch:
    """What the runtime was told of one launch."""

    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int
    cooperative: bool
    device: int
    stream: int
    arguments: bytes


class _Shape(ctypes.Structure):
    _fields_ = [
        ("bytes", ctypes.c_uint64),
        ("count", ctypes.c_uint32),
        ("arguments", (ctypes.c_uint32 * 2) * (_ARGUMENTS // 4)),
    ]


class _Order(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("arguments", ctypes.c_void_p),
        ("argument_bytes", ctypes.c_uint64),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared", ctypes.c_uint32),
        ("cooperative", ctypes.c_uint32),
        ("device", ctypes.c_uint32),
    ]


class _Range(ctypes.Structure):
    _fields_ = [("start", ctypes.c_uint64), ("size", ctypes.c_uint64)]


class _Executor(ctypes.Structure):
    _fields_ = [
        ("load", ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64)),
        ("unload", ctypes.CFUNCTYPE(None, ctypes.c_uint64)),
        ("describe", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_char_p, ctypes.POINTER(_Shape))),
        ("execute", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.POINTER(_Order))),
    ]


@dataclass(frozen=True)
class Order:
    """A launch that an executor is to run."""

    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int
    cooperative: bool
    device: int
    arguments: bytes


class Executor(Protocol):
    """What runs the machine code of modules behind the stand-in. A module is known by its base, which is not 0."""

    def load(self, image: bytes) -> int:
        """Put the code object somewhere; answers the address that its symbols count from, 0 to refuse it."""

    def unload(self, base: int) -> None:
        """Forget it."""

    def describe(self, base: int, name: str) -> list[tuple[int, int]] | None:
        """Offset and size of each argument of a kernel; None where there is no such kernel."""

    def execute(self, base: int, order: Order) -> int:
        """Run a launch; answers 0 or the error of HIP that the device is to fail with."""


def _callbacks(executor: Executor) -> _Executor:
    """*executor* as C sees it. What it raises would be lost there: it is shown, and answered as an error."""

    def answer(wanted: Callable[[], int], otherwise: int) -> int:
        try:
            return wanted()
        except BaseException:  # whatever it is, C cannot pass it on
            traceback.print_exc()
            return otherwise

    def load(image: int, size: int) -> int:
        return answer(lambda: executor.load(ctypes.string_at(image, size)), 0)

    def unload(base: int) -> None:
        answer(lambda: executor.unload(base) or 0, 0)

    def fill(base: int, name: bytes, shape: _Shape) -> int:
        arguments = executor.describe(base, name.decode())
        if arguments is None:
            return NOT_FOUND
        shape.bytes = max((offset + size for offset, size in arguments), default=0)
        shape.count = len(arguments)
        for number, place in enumerate(arguments):
            shape.arguments[number][:] = place
        return 0

    def describe(base: int, name: bytes, shape: Any) -> int:
        return answer(lambda: fill(base, name, shape.contents), LAUNCH_FAILURE)

    def execute(base: int, order: Any) -> int:
        given = order.contents
        arguments = ctypes.string_at(given.arguments, given.argument_bytes)
        numbers = (given.shared, bool(given.cooperative), given.device, arguments)
        wanted = Order(given.name.decode(), tuple(given.grid), tuple(given.block), *numbers)
        return answer(lambda: executor.execute(base, wanted), LAUNCH_FAILURE)

    kinds = [kind for _, kind in _Executor._fields_]
    return _Executor(*(kind(function) for kind, function in zip(kinds, (load, unload, describe, execute), strict=True)))


class Standin:
    """The loaded stand-in."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        library.standin_fail.argtypes = (ctypes.c_char_p, ctypes.c_int, ctypes.c_int)
        library.standin_calls.argtypes = (ctypes.c_char_p, ctypes.c_size_t)
        library.standin_calls.restype = ctypes.c_size_t
        library.standin_count.restype = ctypes.c_long
        library.standin_attach.argtypes = (ctypes.POINTER(_Executor),)
        library.standin_attach.restype = None
        library.standin_ranges.argtypes = (ctypes.POINTER(_Range), ctypes.c_size_t)
        library.standin_ranges.restype = ctypes.c_size_t
        self._attached: _Executor | None = None

    def call(self, function: str, *arguments: Any) -> int:
        """What the *function* answers, called as by somebody else in the process; numbers are as wide as addresses."""
        wide = (ctypes.c_size_t(value) if isinstance(value, int) else value for value in arguments)
        return int(getattr(self._library, function)(*wide))

    def calls(self) -> list[str]:
        """The calls since the last time: the function's name, then what it was given."""
        buffer = ctypes.create_string_buffer(1 << 20)
        length = self._library.standin_calls(buffer, len(buffer))
        return buffer.raw[:length].decode().splitlines()

    def launches(self) -> list[Launch]:
        """The launches since the last time."""
        records = (_Launch * _LAUNCHES)()
        count = self._library.standin_launches(records)
        return [
            Launch(
                record.name.decode(),
                tuple(record.grid),
                tuple(record.block),
                record.shared,
                bool(record.cooperative),
                record.device,
                record.stream or 0,
                bytes(record.arguments[: record.argument_bytes]),
            )
            for record in records[:count]
        ]

    def live(self) -> dict[str, int]:
        """How many there are that were not given back, by resource."""
        return {name: self._library.standin_count(number) for number, name in enumerate(RESOURCES)}

    def attach(self, executor: Executor | None) -> None:
        """Let *executor* run what is loaded from now on; None: the functions in ``kernels.c`` again."""
        callbacks = _callbacks(executor) if executor else None
        self._library.standin_attach(ctypes.byref(callbacks) if callbacks else None)
        self._attached = callbacks

    def ranges(self) -> list[tuple[int, int]]:
        """Address and size of every piece of memory that kernels may use."""
        count = self._library.standin_ranges(None, 0)
        while True:
            places = (_Range * count)()
            found = self._library.standin_ranges(places, count)
            if found <= count:
                return [(place.start, place.size) for place in places[:found]]
            count = found

    def recover(self) -> None:
        """Let devices that failed work again."""
        self._library.standin_recover()

    @contextmanager
    def failing(self, function: str, code: int, after: int = 0) -> Iterator[None]:
        """Let *function* answer *code* once, after so many more calls; at the end it must have been called."""
        self._library.standin_fail(function.encode(), code, after)
        try:
            yield
            assert not self._library.standin_failure_pending(), f"{function} was not called"
        finally:
            self._library.standin_fail(b"", 0, 0)


def compiler() -> list[str] | None:
    """The command of a C compiler, if there is one."""
    for name in ("cc", "gcc", "clang"):
        found = shutil.which(name)
        if found:
            return [found]
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc"]
    return None


def build(folder: Path, *flags: str) -> Path:
    """Compile the stand-in into *folder*, with more *flags*; skips the test where there is no compiler."""
    command = compiler()
    if command is None:
        pytest.skip("needs a C compiler: cc, gcc, clang, or the Python package ziglang")
    library = folder / "libamdhip64.so"
    sources = sorted(map(str, _SOURCES.glob("*.c")))
    done = subprocess.run(
        [*command, *_FLAGS, *flags, *sources, "-o", str(library)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return library


@cache
def standin() -> Standin:
    """The stand-in, in this process for good: hip-python finds it under its SONAME. Skips where that cannot be."""
    if not sys.platform.startswith("linux"):
        pytest.skip("needs Linux: the stand-in is an ELF library")
    if not importlib.util.find_spec("hip"):
        pytest.skip("needs hip-python")
    with tempfile.TemporaryDirectory() as folder:
        library = ctypes.CDLL(str(build(Path(folder))), mode=ctypes.RTLD_GLOBAL)
    found = Standin(library)
    os.environ.pop("ROCM_PATH", None)  # where hip-python 10 looks before it asks the loader
    os.environ.pop("ROCM_HOME", None)
    os.environ["STANDIN_MEMORY"] = str(MEMORY)
    import_hip().hipInit(0)
    if not found.calls():
        pytest.skip("needs a process in which hip-python has not found the real HIP runtime")
    return found


def of_another_process(handle: bytes) -> bytes:
    """The IPC *handle* as if another process had made it: the stand-in, as HIP, refuses that of its own."""
    start = ctypes.sizeof(ctypes.c_void_p)
    return handle[:start] + bytes(4) + handle[start + 4 :]


def driver() -> HipDriver:
    """A driver over the stand-in."""
    standin()
    return HipDriver()
