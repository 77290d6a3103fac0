"""Memory of the CPU device: host memory, counted against the size that the device was given."""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from typing import Any

import numpy as np

from hip_runtime import config
from hip_runtime.driver import Strided
from hip_runtime.errors import InvalidAddressError, OutOfDeviceMemoryError

ALIGNMENT = 64
"""Bytes; a cache line, and the widest vector register."""

_WORDS: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
    8: np.dtype(np.uint64),
}


class Heap:
    """Live allocations by address.

    `free` may run in a finaliser, which Python starts anywhere, also while the same thread is inside `allocate`; so it
    takes no lock, and what it gives back is counted by the next call that does.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._used = 0
        self._live: dict[int, tuple[int, np.ndarray[Any, Any]]] = {}
        self._returned: deque[int] = deque()

    def renew_lock(self) -> None:
        """Replace the lock in a forked child, where the thread that held it does not exist."""
        self._lock = threading.Lock()

    def allocate(self, nbytes: int) -> int:
        """Address of *nbytes* new bytes with undefined contents; `OutOfDeviceMemoryError` where the limit is passed."""
        size = max(-(-nbytes // ALIGNMENT), 1) * ALIGNMENT
        with self._lock:
            free = self.limit - self._count()
            if size > free:
                raise self._error(nbytes, free)
            self._used += size
        try:
            block = np.empty(size + ALIGNMENT, np.uint8)
        except MemoryError:
            self._returned.append(size)
            raise self._error(nbytes, free) from None
        address = int(-(-block.ctypes.data // ALIGNMENT) * ALIGNMENT)
        self._live[address] = (size, block)
        return address

    def take(self, address: int) -> Any:
        """Forget the allocation at *address*. The memory lives until what is returned is handed to `release`."""
        allocation = self._live.pop(address, None)
        if allocation is None:
            raise InvalidAddressError(
                f"{address:#x} is not the start of memory of the CPU device: it was freed already or never allocated"
            )
        return allocation

    def release(self, allocation: Any) -> None:
        """Count an allocation that `take` returned as free."""
        self._returned.append(allocation[0])

    def free_bytes(self) -> int:
        """Bytes that can still be allocated."""
        with self._lock:
            return self.limit - self._count()

    def _count(self) -> int:
        while self._returned:
            self._used -= self._returned.popleft()
        return self._used

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
        found = found.copy()  # NumPy's own care for overlap misses one axis with two strides of the same sign
    np.copyto(into, found)


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
