"""Pointers to memory of a device, which own it: the classes of Numba CUDA's memory managers."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from typing import Any

from hip_runtime import Buffer
from hip_runtime.errors import ArrayError, HipRuntimeError
from hip_runtime.stream_handle import stream_handle


class DeadMemoryError(HipRuntimeError, RuntimeError):
    """Memory that was freed already."""


class MemoryInUseError(HipRuntimeError, RuntimeError):
    """Memory that cannot be freed, as an array uses it, or as it is a part of other memory."""


class DeviceAddress(int):
    """An address of memory of a device; ``value`` is the number, as of a pointer of ctypes."""

    @property
    def value(self) -> int:
        """The number."""
        return int(self)


class MemoryPointer:
    """*size* bytes at *pointer* (an integer, or one of ctypes), as a memory manager returns them.

    *owner* is kept alive. *finalizer*, if given, is called once: by `free`, or when there is no reference any more.
    Whoever asks for the address of memory that was freed gets a `DeadMemoryError`.
    """

    __cuda_memory__ = True

    def __init__(
        self, context: Any, pointer: Any, size: int, owner: Any = None, finalizer: Callable[[], object] | None = None
    ) -> None:
        self.context = context
        self.size = size
        self.is_managed = finalizer is not None
        """Whether somebody gives the memory back when it is no longer used."""
        self._address = DeviceAddress(getattr(pointer, "value", pointer) or 0)
        self._owner = owner
        self._whole: MemoryPointer | None = None  # of a view
        self._users: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._finalizer = None if finalizer is None else weakref.finalize(self, finalizer)
        if self._finalizer is not None:
            self._finalizer.atexit = False

    def __repr__(self) -> str:
        state = ", freed" if self.is_freed else ""
        return f"<{type(self).__name__} to {self.size} bytes at {int(self._address):#x}{state}>"

    def __eq__(self, other: object) -> bool:
        """Whether both are the same bytes of one device."""
        if not isinstance(other, MemoryPointer):
            return NotImplemented
        return (self.context, self._address, self.size) == (other.context, other._address, other.size)

    def __hash__(self) -> int:
        return hash((self._address, self.size))

    @property
    def is_freed(self) -> bool:
        """Whether the memory was freed."""
        if self._whole is not None:
            return self._whole.is_freed
        return self._finalizer is not None and not self._finalizer.alive

    @property
    def device_pointer(self) -> DeviceAddress:
        """The address; `DeadMemoryError` after `free`."""
        self._check_alive()
        return self._address

    @property
    def device_pointer_value(self) -> int:
        """The address as a number."""
        return int(self.device_pointer)

    address = device_pointer_value

    @property
    def device_ctypes_pointer(self) -> ctypes.c_size_t:
        """The address as an integer of ctypes."""
        return ctypes.c_size_t(self.device_pointer)

    @property
    def handle(self) -> DeviceAddress:
        """The address, which is what drivers name memory by."""
        return self.device_pointer

    @property
    def nbytes(self) -> int:
        """``size``, as arrays name it."""
        return self.size

    @property
    def owner(self) -> Any:
        """What keeps the memory alive: the *owner* that was given, the whole of a view, or this pointer itself."""
        return self._whole or (self if self._owner is None else self._owner)

    @property
    def refct(self) -> int:
        """How many use the memory: this pointer, and the views and arrays that were made of it and are still there."""
        return 1 + len(self._users)

    def memset(self, byte: int, count: int | None = None, stream: Any = 0) -> None:
        """Set the first *count* bytes, all by default, to *byte*, 0 to 255; `hip_runtime.errors.ArrayError`."""
        if not 0 <= byte <= 255:
            raise ArrayError(f"byte is {byte}; it must be 0 to 255")
        size = self.size if count is None else count
        if not 0 <= size <= self.size:
            raise ArrayError(f"count is {size}; this memory has {self.size} bytes")
        driver = self.context.device.driver
        driver.fill(self.device_pointer_value, byte, size, stream_handle(stream))

    def own(self) -> MemoryPointer:
        """This memory, which lives as long as anybody refers to it."""
        self._check_alive()
        return self

    def view(self, start: int, stop: int | None = None) -> MemoryPointer:
        """Bytes *start* to *stop*, the end by default, which keep all of it alive; `hip_runtime.errors.ArrayError`."""
        end = self.size if stop is None else stop
        if not 0 <= start <= end <= self.size:
            raise ArrayError(f"bytes {start} to {end} are not within the {self.size} of this memory")
        part = MemoryPointer(self.context, self.device_pointer_value + start, end - start)
        part._whole = self._whole or self
        part._whole._users[id(part)] = part
        return part

    def as_buffer(self) -> Buffer:
        """The memory for arrays. It cannot be freed before them."""
        whole = self._whole or self
        buffer = Buffer(self.device_pointer_value, self.size, owner=self)
        whole._users[id(buffer)] = buffer
        return buffer

    def is_used_by(self, buffer: Buffer) -> bool:
        """Whether *buffer* was made by `as_buffer` of this pointer."""
        return buffer.owner is self and (self._whole or self)._users.get(id(buffer)) is buffer

    def free(self) -> None:
        """Release the memory now, if this pointer has to.

        Raises `DeadMemoryError` if that was done before, and `MemoryInUseError` while arrays use the memory, or if it
        is a part of other memory.
        """
        self._check_alive()
        if self._whole is not None:
            raise MemoryInUseError(f"{self!r} is a part of {self._whole!r}, which is freed as a whole: owner.free()")
        if any(isinstance(user, Buffer) for user in self._users.values()):
            raise MemoryInUseError(f"{self!r} is used by arrays: delete them and their views (del), and free it then")
        if self._finalizer is not None:
            self._finalizer()

    def _check_alive(self) -> None:
        if self.is_freed:
            raise DeadMemoryError(f"{self!r} must not be used any more: allocate memory anew")


class BufferMemory(MemoryPointer):
    """The memory of a device array, or of another process, that *buffer* keeps; ``buffer`` is all of it."""

    def __init__(self, context: Any, buffer: Buffer) -> None:
        super().__init__(context, buffer.address, buffer.nbytes, owner=buffer)
        self.buffer = _first(buffer)
        self.is_managed = self.buffer.is_owner

    @property
    def is_freed(self) -> bool:
        """Whether the memory was freed."""
        return self.buffer.closed

    @property
    def owner(self) -> MemoryPointer:
        """This pointer."""
        return self

    def free(self) -> None:
        """Raises `MemoryInUseError`: the memory is released with the last array that uses it, or by closing the handle
        that it was opened by."""
        self._check_alive()
        raise MemoryInUseError(
            f"{self!r} belongs to an array or an IPC handle: delete the array and its views (del), or close the "
            "handle, and it is freed; memory that is to be freed by hand is given by memalloc() of a context"
        )


class _HostMemory(MemoryPointer):
    @property
    def host_pointer(self) -> Any:
        """The address for the host."""
        return self.device_pointer

    @property
    def owned(self) -> Any:
        """What keeps the memory alive."""
        return self.owner


class PinnedMemory(_HostMemory):
    """Page-locked memory of the host."""


class MappedMemory(_HostMemory):
    """Page-locked host memory that kernels can access."""


class ManagedMemory(_HostMemory):
    """Memory that migrates to where it is used."""


def _first(buffer: Buffer) -> Buffer:
    """The allocation that *buffer* is, or is a part of."""
    while isinstance(buffer.owner, Buffer):
        buffer = buffer.owner
    return buffer


def pointer_to(context: Any, buffer: Buffer) -> MemoryPointer:
    """The memory of *buffer*: the pointer that it was made of, a view of that, or a new one."""
    first = _first(buffer)
    pointer = first.owner
    if not (isinstance(pointer, MemoryPointer) and pointer.is_used_by(first)):
        return BufferMemory(context, buffer)
    if buffer.nbytes == first.nbytes:
        return pointer
    start = buffer.address - first.address
    return pointer.view(start, start + buffer.nbytes)
