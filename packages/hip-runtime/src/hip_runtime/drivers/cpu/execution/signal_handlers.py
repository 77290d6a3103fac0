"""Installs our signal handlers in front of the process's previous ones."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from hip_runtime.drivers.cpu.execution.previous_handlers import HANDLERS, POKE, SIGNALS, WITH_INFORMATION
from hip_runtime.drivers.cpu.execution.trap_handlers import LIBRARIES, OBSERVERS
from hip_runtime.drivers.cpu.object_code.host_machine import LIBRARIES as LIBRARY_NAMES

_ACTION = struct.Struct("@Q128siQ")
"""A ``struct sigaction``, see `previous_handlers.ACTION`: handler, mask, flags, and what the C library sets itself."""

_ON_OTHER_STACK = 0x08000000  # SA_ONSTACK
_RESTART = 0x10000000  # SA_RESTART
_NOT_DEFERRED = 0x40000000
"""SA_NODEFER: handlers that ours call may launch kernels, as those of Python, or send the signal again, as that of
`faulthandler`."""

_COUNT = ctypes.c_int64
_RANGE = struct.Struct("@2Q")
"""A `trap_handlers.RANGE`."""
_CHAIN_BYTES = ctypes.sizeof(_COUNT) + HANDLERS * _ACTION.size


class Handlers:
    """Installs ``spmd.trap`` and ``spmd.poked``, at the addresses *trap* and *poked*; they look up the previous
    handlers in *chains*."""

    def __init__(self, trap: int, poked: int, chains: int) -> None:
        self._trap = trap
        self._poked = poked
        self._chains = chains

    def install(self) -> None:
        """Install ours in front, unless it is; handlers installed in between, such as a late `faulthandler`, are called
        by ours from now on."""
        for position, number in enumerate(SIGNALS):
            address, flags = self._trap, WITH_INFORMATION | _NOT_DEFERRED | _ON_OTHER_STACK
            if number == POKE:
                address, flags = self._poked, WITH_INFORMATION | _NOT_DEFERRED | _RESTART
            chain = self._chains + position * _CHAIN_BYTES
            count = self._count(position)
            before = ctypes.create_string_buffer(_ACTION.size)
            _sigaction()(number, None, before)
            if _ACTION.unpack(before)[0] == address or count.value == HANDLERS:
                continue
            ctypes.memmove(chain + ctypes.sizeof(_COUNT) + count.value * _ACTION.size, before, _ACTION.size)
            count.value += 1
            _sigaction()(number, _ACTION.pack(address, bytes(128), flags, 0), None)

    def counts(self) -> list[int]:
        """For each signal, the number of handlers before ours."""
        return [int(self._count(position).value) for position in range(len(SIGNALS))]

    def _count(self, position: int) -> ctypes.c_int64:
        return _COUNT.from_address(self._chains + position * _CHAIN_BYTES)


@cache
def _sigaction() -> Any:
    function = ctypes.CDLL(None).sigaction
    function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p]
    return function


def note_libraries(table: int) -> None:
    """Write to *table* the address ranges of libraries whose functions hold no locks."""
    found = [where for where, path in _mapped_code() if Path(path).name in LIBRARY_NAMES]
    for number, where in enumerate(found[:LIBRARIES]):
        _RANGE.pack_into(_words(table, number), 0, *where)


@contextmanager
def observing(table: int, functions: Sequence[int]) -> Iterator[None]:
    """Add the code around the addresses *functions* to *table* within the block: kernels call these observers, which
    hold no locks."""
    places = [_words(table, LIBRARIES + number) for number in range(OBSERVERS)]
    before = [bytes(place) for place in places]
    code = _mapped_code()
    found = [next((where for where, _ in code if where[0] <= one < where[1]), (0, 0)) for one in functions]
    for place, where in zip(places, found, strict=True):
        _RANGE.pack_into(place, 0, *where)
    try:
        yield
    finally:
        for place, data in zip(places, before, strict=True):
            place[:] = data


def _words(table: int, number: int) -> Any:
    return (ctypes.c_char * _RANGE.size).from_address(table + number * _RANGE.size)


def _mapped_code() -> list[tuple[tuple[int, int], str]]:
    """The address ranges of code in this process, with the file of each, or an empty text."""
    found = []
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        addresses, access, _offset, _device, _inode, *path = line.split(maxsplit=5)
        if "x" in access:
            start, _, end = addresses.partition("-")
            found.append(((int(start, 16), int(end, 16)), path[0] if path else ""))
    return found
