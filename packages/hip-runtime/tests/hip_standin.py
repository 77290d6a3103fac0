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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from hip_runtime.drivers.hip.device import HipDriver
from hip_runtime.drivers.hip.probe import import_hip

MEMORY = 32 << 20
"""Bytes of each device; there are two."""

RESOURCES = ("memory", "streams", "events", "modules", "graphs", "executables")

_SOURCES = Path(__file__).parent / "standin"
_FLAGS = "-std=gnu11 -O2 -Wall -Werror -shared -fPIC -fvisibility=hidden -pthread -Wl,-soname,libamdhip64.so".split()
_LAUNCHES = 256


class _Launch(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char * 128),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared", ctypes.c_uint32),
        ("cooperative", ctypes.c_int),
        ("device", ctypes.c_int),
        ("stream", ctypes.c_void_p),
        ("argument_bytes", ctypes.c_uint64),
        ("arguments", ctypes.c_ubyte * 512),
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


class Standin:
    """The loaded stand-in."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        library.standin_fail.argtypes = (ctypes.c_char_p, ctypes.c_int, ctypes.c_int)
        library.standin_calls.argtypes = (ctypes.c_char_p, ctypes.c_size_t)
        library.standin_calls.restype = ctypes.c_size_t
        library.standin_count.restype = ctypes.c_long

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


def driver() -> HipDriver:
    """A driver over the stand-in."""
    standin()
    return HipDriver()
