"""Tracks which bytes of device memory have been written, for reports of reads of uninitialised memory.

Kept only where races are reported (`config.cpu_races`, or once a kernel that is observed is launched). What is not
known counts as written: memory from before that, memory that the host or another library can write to, and all that
there is when a kernel runs that does not tell what it writes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

import numpy as np

from hip_runtime.driver import Strided
from hip_runtime.drivers.cpu.memory.heap import mark_elements
from hip_runtime.drivers.cpu.memory.pages import PAGE

Written = np.ndarray[tuple[int], np.dtype[np.uint8]]


class WrittenBytes:
    """For live allocations, by their first address: which of their bytes were written."""

    def __init__(self) -> None:
        self._bytes: dict[int, Written] = {}

    def begin(self, address: int, nbytes: int) -> None:
        """Memory at *address* was allocated: up to the end of its last page, nothing is written."""
        self._bytes[address] = np.zeros(max(-(-nbytes // PAGE), 1) * PAGE, np.uint8)

    def forget(self, address: int) -> None:
        """Stop tracking the allocation that *address* lies in: it is gone, or may have been written to."""
        found = self._find(address)
        if found is not None:
            self._bytes.pop(found, None)

    def forget_all(self) -> None:
        """Stop tracking all memory: anything may have been written to."""
        self._bytes.clear()

    def where(self, start: int) -> int:
        """Address of the byte that belongs to the first one of the allocation at *start*; 0 where nothing is known."""
        known = self._bytes.get(start)
        return 0 if known is None else int(known.ctypes.data)

    def fill(self, address: int, nbytes: int) -> None:
        """*nbytes* bytes at *address* are written."""
        part = self._part(address, nbytes)
        if part is not None:
            part[:] = 1

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Bytes are copied: unwritten bytes at *source* make the bytes at *target* unwritten."""
        part = self._part(target, nbytes)
        if part is not None:
            known = self._part(source, nbytes)
            part[:] = 1 if known is None else known.copy()

    def copy_elements(self, target: Strided, shape: tuple[int, ...], itemsize: int) -> None:
        """Elements are copied; all of them count as written at *target*."""
        found = self._find(target.address)
        if found is not None:
            known = self._bytes[found]
            place = Strided(int(known.ctypes.data) + target.address - found, target.strides)
            mark_elements(place, shape, itemsize)

    def _find(self, address: int) -> int | None:
        starts = sorted(self._bytes)
        number = bisect_right(starts, address) - 1
        if number < 0 or address >= starts[number] + self._bytes[starts[number]].size:
            return None
        return starts[number]

    def _part(self, address: int, nbytes: int) -> Written | None:
        found = self._find(address)
        return None if found is None else self._bytes[found][address - found : address - found + nbytes]


def after(work: Callable[[], None], note: Callable[[], None]) -> Callable[[], None]:
    """*work*, followed by *note*, which records what it wrote."""

    def both() -> None:
        work()
        note()

    return both
