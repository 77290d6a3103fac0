"""The heap of the CPU device: host memory, counted against the device's memory size."""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from itertools import cycle
from typing import Any

import numpy as np

from hip_runtime import config
from hip_runtime.driver import MemoryKind, Strided
from hip_runtime.drivers.cpu.memory.pages import HUGE_BYTES, PAGE, MemoryBlock, open_handle
from hip_runtime.errors import InvalidAddressError, OutOfDeviceMemoryError

SPARE_BLOCK, SPARE_BYTES = 32 << 20, 64 << 20
"""Freed blocks up to the first size are kept for the next allocations, up to the second altogether: their pages are in
place, and the system need not clear them again."""

_STARTS = tuple(1280 * number % PAGE for number in range(16))
"""How many bytes behind the beginning of a page allocations start, in turn. Elements with the same index would else be
at the same place in their pages, and those of several arrays, or that are a power of two apart, compete for the few
lines of a core's first cache that such places share: ``z = a * x + y`` of a million float32 in steps of the grid takes
0.8 of the time. Starts are multiples of 256 bytes, as those of HIP are."""

_FAR = 1 << 40
"""Bytes from an allocation at which a wrong address has hardly to do with it."""

_WORDS: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
    8: np.dtype(np.uint64),
}


class CpuHeap:
    """Live allocations by address, each in pages of its own, which the small ones do not start at the beginning of.

    `free` may run in a finaliser, which Python starts anywhere, also while the same thread is inside `allocate`; so it
    never waits for the lock, and what it gives back is counted by the next call that has it.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._used = 0
        self._live: dict[int, tuple[int, MemoryBlock]] = {}
        # the ends of allocations that stand for pinned, mapped and managed memory, by address
        self._locked: dict[int, int] = {}
        self._returned: deque[tuple[int, MemoryBlock | None]] = deque()
        self._spare: dict[int, list[MemoryBlock]] = {}  # by size
        self._spare_bytes = 0
        self._starts = cycle(_STARTS)

    def renew_lock(self) -> None:
        """Replace the lock in a forked child, where the thread that held it does not exist."""
        self._lock = threading.Lock()

    def allocate(self, nbytes: int, kind: MemoryKind = MemoryKind.DEVICE) -> int:
        """The address of *nbytes* new bytes with undefined contents. Raises `OutOfDeviceMemoryError` if that exceeds
        the limit."""
        size = max(-(-nbytes // PAGE), 1) * PAGE
        with self._lock:
            free = self.limit - self._count()
            if size > free:
                raise self._error(nbytes, free)
            self._used += size
            block = self._take_spare(size)
        if block is None:
            block = self._new_block(nbytes, size, free)
        block.place_margin(nbytes)
        self._live[block.address] = (size, block)
        if kind is not MemoryKind.DEVICE:
            self._locked[block.address] = block.address + block.nbytes
        return block.address

    def take(self, address: int) -> Any:
        """Forget the allocation at *address*. The memory lives until what is returned is handed to `release`."""
        self._locked.pop(address, None)
        allocation = self._live.pop(address, None)
        if allocation is None:
            raise InvalidAddressError(
                f"{address:#x} is not the start of memory of the CPU device: it was freed already or never allocated"
            )
        return allocation

    def release(self, allocation: Any) -> None:
        """Count an allocation that `take` returned as free."""
        size, block = allocation
        reusable = size == block.nbytes <= SPARE_BLOCK and block.descriptor < 0
        self._returned.append((size, block if reusable else None))
        if self._lock.acquire(blocking=False):
            try:
                self._count()
            finally:
                self._lock.release()

    def free_bytes(self) -> int:
        """Bytes that can still be allocated."""
        with self._lock:
            return self.limit - self._count()

    def allocations(self) -> list[tuple[int, int]]:
        """Start and bytes of all live allocations."""
        return [(start, block.nbytes) for start, (_, block) in list(self._live.items())]

    def find(self, address: int) -> tuple[int, int]:
        """Start and bytes of the allocation that *address* lies in; `InvalidAddressError`."""
        for start, (_, block) in list(self._live.items()):
            if start <= address < start + block.nbytes:
                return start, block.nbytes
        raise InvalidAddressError(f"{address:#x} does not lie in memory of the CPU device")

    def is_locked(self, address: int) -> bool:
        """Whether *address* is in memory that was allocated as page-locked host memory."""
        return any(start <= address < end for start, end in list(self._locked.items()))

    def describe_nearest(self, address: int) -> str:
        """The position of *address*, which is in no allocation, relative to the nearest one; empty if there is none."""
        found = ""
        nearest = _FAR
        for start, (_, block) in list(self._live.items()):
            end = start + block.nbytes
            distance = start - address if address < start else address - end
            if distance < nearest:
                nearest = distance
                side = "before" if address < start else "behind"
                found = f"{distance} bytes {side} the {block.nbytes} bytes of device memory at {start:#x}"
        return found

    def handle(self, address: int) -> bytes:
        """The handle by which another process opens the allocation at *address*; nothing may write to it meanwhile."""
        allocation = self._live.get(address)
        if allocation is None:
            raise InvalidAddressError(f"{address:#x} is not the start of memory of the CPU device")
        block = allocation[1]
        try:
            return block.handle()
        except OSError as error:
            free = self.free_bytes()
            advice = f"the system cannot share them with other processes: {error}"
            raise OutOfDeviceMemoryError(block.nbytes, free, self.limit, advice) from error

    def open(self, handle: bytes) -> int:
        """The address in this process of another process's memory, which does not count as memory of this device."""
        block = open_handle(handle)
        self._live[block.address] = (0, block)
        return block.address

    def _count(self) -> int:
        """Bytes in use, once all that was returned is taken into account; with the lock only."""
        while self._returned:
            size, block = self._returned.popleft()
            self._used -= size
            if block is not None:
                self._spare.setdefault(size, []).append(block)
                self._spare_bytes += size
        while self._spare_bytes > SPARE_BYTES:
            size = next(iter(self._spare))
            self._take_spare(size)
        return self._used

    def _take_spare(self, size: int) -> MemoryBlock | None:
        blocks = self._spare.get(size)
        if blocks is None:
            return None
        block = blocks.pop()
        self._spare_bytes -= size
        if not blocks:
            del self._spare[size]
        return block

    def _new_block(self, nbytes: int, size: int, free: int) -> MemoryBlock:
        start = next(self._starts) if size < HUGE_BYTES else 0
        try:
            return MemoryBlock(size, start)
        except OSError:
            with self._lock:
                self._spare.clear()
                self._spare_bytes = 0
        try:
            return MemoryBlock(size, start)
        except OSError:
            self._returned.append((size, None))
            raise self._error(nbytes, free) from None

    def _error(self, nbytes: int, free: int) -> OutOfDeviceMemoryError:
        advice = f"free arrays that are no longer needed, or give the CPU device more with {config.cpu_memory.variable}"
        return OutOfDeviceMemoryError(nbytes, free, self.limit, advice)


def copy_bytes(target: int, source: int, nbytes: int) -> None:
    """Copy bytes that may overlap; other Python threads run meanwhile."""
    ctypes.memmove(target, source, nbytes)


def fill_bytes(address: int, value: int, nbytes: int) -> None:
    """Set bytes to *value*."""
    ctypes.memset(address, value, nbytes)


def copy_elements(target: Strided, source: Strided, shape: tuple[int, ...], itemsize: int) -> None:
    """Copy elements as bytes between two layouts, which may overlap."""
    if 0 in shape:
        return
    into, found = _view(target, shape, itemsize), _view(source, shape, itemsize)
    if target.strides != source.strides and np.may_share_memory(into, found):
        found = found.copy()  # NumPy does not detect the overlap of one axis with two strides of the same sign
    np.copyto(into, found)


def mark_elements(place: Strided, shape: tuple[int, ...], itemsize: int) -> None:
    """Set every byte of the elements to 1."""
    if 0 not in shape:
        _view(Strided(place.address, (*place.strides, 1)), (*shape, itemsize), 1)[...] = 1


class _Memory:
    """Memory at an address, as NumPy's array interface describes it."""

    def __init__(self, place: Strided, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "strides": place.strides,
            "typestr": dtype.str,
            "data": (place.address, False),
        }


def _view(place: Strided, shape: tuple[int, ...], itemsize: int) -> np.ndarray[Any, Any]:
    dtype: np.dtype[Any] = _WORDS.get(itemsize, np.dtype((np.void, itemsize)))
    return np.asarray(_Memory(place, shape, dtype))
