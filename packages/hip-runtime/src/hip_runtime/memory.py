"""Buffers of memory, and the memory-manager protocol that creates them."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from hip_runtime import config
from hip_runtime.driver import Driver, MemoryKind
from hip_runtime.errors import ArrayError, OutOfDeviceMemoryError, SettingError


class _Deferral:
    """The process-wide state of deferred releases, and everything that waits."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0
        self.queues: weakref.WeakSet[PendingReleases] = weakref.WeakSet()

    def clear(self) -> None:
        """Give back all that waits."""
        for queue in list(self.queues):
            queue.clear(even_deferred=True)


_deferral = _Deferral()


class PendingReleases:
    """Memory, of a device with *total* bytes of it, that waits to be released.

    It waits within blocks of `defer_release`, and as far as the settings ``NUMBA_HIP_PENDING_RELEASES`` and
    ``NUMBA_HIP_PENDING_RELEASE_RATIO`` allow. ``len()`` is the number of waiting allocations.
    """

    def __init__(self, total: int = 0) -> None:
        self._total = total
        self._waiting: deque[tuple[int, Callable[..., object], tuple[Any, ...]]] = deque()
        _deferral.queues.add(self)

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def nbytes(self) -> int:
        """Bytes that wait."""
        return sum(entry[0] for entry in self._waiting.copy())

    @property
    def max_bytes(self) -> int:
        """Bytes that may wait outside of `defer_release`: with more, all are given back."""
        return int(self._total * config.pending_release_ratio())

    def release(self, nbytes: int, give_back: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        """Call *give_back* with *arguments* now, or later. Takes no lock: releasing happens in finalisers."""
        self._waiting.append((nbytes, give_back, arguments))
        if _deferral.depth:
            return
        try:
            wait = len(self._waiting) <= config.pending_releases() and self.nbytes <= self.max_bytes
        except SettingError:
            self.clear()  # an invalid setting must not lose memory
            raise
        if not wait:
            self.clear()

    def clear(self, *, even_deferred: bool = False) -> None:
        """Release everything that waits; within `defer_release` nothing, unless *even_deferred*."""
        while even_deferred or not _deferral.depth:
            try:
                _, give_back, arguments = self._waiting.popleft()
            except IndexError:  # all were returned in the meantime, perhaps by another thread
                return
            give_back(*arguments)


_others = PendingReleases()
"""What is not of a device's own memory manager: it waits within `defer_release` alone."""


@contextmanager
def defer_release() -> Iterator[None]:
    """A block in which no memory is released, so that work on streams is not delayed; at its end all of it is.

    Blocks may be nested, and apply to the whole process. If memory runs out, it is released all the same.
    """
    with _deferral.lock:
        _deferral.depth += 1
    try:
        yield
    finally:
        with _deferral.lock:
            _deferral.depth -= 1
            last = _deferral.depth == 0
        if last:
            _deferral.clear()


class Buffer:
    """*nbytes* bytes at *address*, which live as long as this object.

    *owner* is whatever else keeps the memory alive: memory that is not ours has an owner and no finaliser. *release*,
    if given, is called once with *arguments*, by `close` or when the last reference goes; it may wait in *pending*.
    """

    __slots__ = ("__weakref__", "_finalizer", "address", "kind", "nbytes", "owner")

    def __init__(
        self,
        address: int,
        nbytes: int,
        *,
        kind: MemoryKind = MemoryKind.DEVICE,
        owner: object = None,
        release: Any = None,
        arguments: tuple[Any, ...] = (),
        pending: PendingReleases | None = None,
    ) -> None:
        self.address = address
        self.nbytes = nbytes
        self.kind = kind
        self.owner = owner
        self._finalizer = None
        if release is not None:
            queue = _others if pending is None else pending
            self._finalizer = weakref.finalize(self, queue.release, nbytes, release, arguments)
            self._finalizer.atexit = False  # at exit, the process frees everything in its own order

    def close(self) -> None:
        """Release the memory now, once the work that uses it is done. It must not be used afterwards."""
        if self._finalizer is not None:
            self._finalizer()

    @property
    def is_owner(self) -> bool:
        """Whether it releases the memory, which otherwise is another's."""
        return self._finalizer is not None

    @property
    def closed(self) -> bool:
        """Whether `close` released the memory."""
        return self._finalizer is not None and not self._finalizer.alive

    def view(self, start: int, stop: int | None = None) -> Buffer:
        """Bytes *start* to *stop* (all the rest by default) of this buffer, which lives as long as the view does.

        `ArrayError` where that reaches outside of the buffer.
        """
        end = self.nbytes if stop is None else stop
        if not 0 <= start <= end <= self.nbytes:
            raise ArrayError(f"bytes {start} to {end} are not within the {self.nbytes} of {self!r}")
        if end - start == self.nbytes:
            return self
        return Buffer(self.address + start, end - start, kind=self.kind, owner=self)

    @property
    def size(self) -> int:
        """``nbytes``, as Numba CUDA names it; so it does the properties below."""
        return self.nbytes

    @property
    def device_pointer(self) -> int:
        """``address``."""
        return self.address

    device_pointer_value = device_pointer

    @property
    def device_ctypes_pointer(self) -> ctypes.c_size_t:
        """``address`` as an integer of ctypes."""
        return ctypes.c_size_t(self.address)

    def __repr__(self) -> str:
        return f"<Buffer of {self.nbytes} bytes at {self.address:#x}, {self.kind.value}>"


class MemoryManager(Protocol):
    """The source of a device's memory; see `Device.memory_manager`."""

    def allocate(self, nbytes: int, *, stream: int) -> Buffer:
        """A buffer of *nbytes* >= 0, usable by work given to *stream* from now on; `OutOfDeviceMemoryError`."""


class DriverMemoryManager:
    """The memory manager that calls the driver each time."""

    def __init__(
        self,
        driver: Driver,
        ordinal: int,
        kind: MemoryKind = MemoryKind.DEVICE,
        pending: PendingReleases | None = None,
    ) -> None:
        self._driver = driver
        self._ordinal = ordinal
        self._kind = kind
        self._pending = pending

    def allocate(self, nbytes: int, *, stream: int) -> Buffer:
        """A buffer of new memory from the driver."""
        if nbytes < 0:
            raise ArrayError(f"nbytes must be 0 or more, not {nbytes}")
        try:
            address = self._driver.alloc(self._ordinal, nbytes, self._kind)
        except OutOfDeviceMemoryError:
            gc.collect()  # arrays that only a reference cycle keeps alive, such as an exception's traceback
            _deferral.clear()
            address = self._driver.alloc(self._ordinal, nbytes, self._kind)
        return Buffer(
            address, nbytes, kind=self._kind, release=self._driver.free, arguments=(address,), pending=self._pending
        )
