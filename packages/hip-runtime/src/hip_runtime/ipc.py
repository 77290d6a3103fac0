"""Memory and arrays shared with other processes: handles that can be pickled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from hip_runtime import layout as layouts
from hip_runtime.array import DeviceArray
from hip_runtime.copying import check_dtype
from hip_runtime.device import Device, current_device
from hip_runtime.errors import ArrayError
from hip_runtime.layout import Layout, Shape
from hip_runtime.memory import Buffer

H = TypeVar("H", bound="IpcHandle")


class HandleBytes(bytes):
    """A driver's handle of an allocation: `hip_runtime.driver.Driver.ipc_handle`."""

    @property
    def reserved(self) -> bytes:
        """The bytes, by the name of the one field of ``hipIpcMemHandle_t``."""
        return bytes(self)


class IpcHandle:
    """*size* bytes of memory of one process, for others: *offset* bytes into the allocation that *handle* names.

    The process that it came from has to keep the memory; *base*, which is not pickled, does so there.
    """

    def __init__(self, base: object, handle: bytes, size: int, *, offset: int = 0) -> None:
        self.base = base
        self.handle = HandleBytes(handle)
        self.size = size
        self.offset = offset
        self._opened: Buffer | None = None

    @classmethod
    def of(cls: type[H], buffer: Buffer, device: Device) -> H:
        """The handle of *buffer*, memory of *device*, whoever made it.

        Waits for the work of the device. `UnsupportedError` where memory cannot be shared, and `InvalidAddressError`
        for memory that is not the device's.
        """
        start, _ = device.driver.find_allocation(buffer.address)
        return cls(buffer, device.driver.ipc_handle(start), buffer.nbytes, offset=buffer.address - start)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.size} bytes>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IpcHandle):
            return NotImplemented
        return (self.handle, self.size, self.offset) == (other.handle, other.size, other.offset)

    def __hash__(self) -> int:
        return hash((self.handle, self.size, self.offset))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), bytes(self.handle), self.size, self.offset)

    def open_on(self, device: Device) -> Buffer:
        """The memory, on *device*; `ArrayError` where it is open already, and what the driver raises."""
        if self._opened is not None:
            raise ArrayError("IpcHandle is already opened; close it first")
        self._opened = _open(self.handle, self.offset + self.size, device)
        return self._opened.view(self.offset)

    def open_array_on(self, device: Device, shape: Any, dtype: Any, strides: Any = None) -> DeviceArray:
        """The memory as an array, on *device*; `ArrayError` where it is open already, or too small for the array."""
        layout, kind = _describe(shape, dtype, strides)
        if layout.extent[0] < 0 or layout.extent[1] > self.size:
            raise ArrayError(
                f"an array of shape {layout.shape}, strides {layout.strides} and {kind} does not fit into {self!r}"
            )
        return DeviceArray(layout, kind, self.open_on(device), device=device)

    def close(self) -> None:
        """Release the memory; the result of `open_on` must not be used any more."""
        opened, self._opened = self._opened, None
        if opened is None:
            raise ArrayError("IpcHandle is not open")
        opened.close()


def _rebuild(kind: type[IpcHandle], handle: bytes, size: int, offset: int) -> IpcHandle:
    return kind(None, handle, size, offset=offset)


@dataclass
class IpcArrayHandle:
    """An array of one process, for others: ``with handle as array: ...``, or `open` and `close`.

    ``memory`` is the handle of the bytes from the first of the array to its last: an `IpcHandle`, or what the memory
    manager gave instead; ``start`` is where in them element (0, ..., 0) is.
    """

    memory: Any
    shape: Shape
    strides: Shape
    dtype: np.dtype[Any]
    start: int = 0
    _opened: IpcHandle | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, array: DeviceArray) -> IpcArrayHandle:
        """The handle of *array*, by the memory manager of its device. Raises as `IpcHandle.of`."""
        device, buffer = array.device, array.memory
        give = getattr(device.memory_manager, "ipc_handle", None)
        memory = IpcHandle.of(buffer, device) if give is None else give(buffer)
        return cls(memory, array.shape, array.strides, array.dtype, array.address - buffer.address)

    @property
    def _ipc_handle(self) -> Any:
        """``memory``, under the name that Numba CUDA keeps it: programs send ``_ipc_handle.handle``."""
        return self.memory

    @property
    def _array_desc(self) -> dict[str, Any]:
        """What the array is, under Numba CUDA's name."""
        return {"shape": self.shape, "strides": self.strides, "dtype": self.dtype}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    def open(self) -> DeviceArray:
        """The array, in memory of the other process; `ArrayError` where it is open already."""
        device, layout = current_device(), Layout(self.shape, self.strides, self.dtype.itemsize)
        if not isinstance(self.memory, IpcHandle):
            raise ArrayError(
                f"the memory manager gave a {type(self.memory).__name__} as its handle, which it has to open itself"
            )
        buffer = self.memory.open_on(device)
        self._opened = self.memory
        return DeviceArray(layout, self.dtype, buffer, device=device, address=buffer.address + self.start)

    def close(self) -> None:
        """Release the memory; the array from `open` must not be used any more."""
        opened, self._opened = self._opened, None
        if opened is None:
            raise ArrayError("this IPC handle is not open")
        opened.close()

    def __enter__(self) -> DeviceArray:
        return self.open()

    def __exit__(self, *exception: object) -> None:
        self.close()


def open_ipc_array(
    handle: bytes, shape: Any, dtype: Any, strides: Any = None, offset: int = 0, *, device: Device | None = None
) -> DeviceArray:
    """The array at *offset* bytes into the allocation of another process that *handle* names.

    Closing its buffer, or dropping it, lets go of the memory. Raises what the driver does, and `ArrayError`.
    """
    device = current_device() if device is None else device
    layout, kind = _describe(shape, dtype, strides)
    first, end = layout.extent
    if offset + first < 0:
        raise ArrayError(f"an array of shape {layout.shape} and strides {layout.strides} begins before offset {offset}")
    buffer = _open(handle, offset + end, device)
    return DeviceArray(layout, kind, buffer, device=device, address=buffer.address + offset)


def _describe(shape: Any, dtype: Any, strides: Any) -> tuple[Layout, np.dtype[Any]]:
    kind = check_dtype(dtype)
    extents = layouts.normalise_shape(shape)
    if strides is None:
        layout = layouts.dense(extents, kind.itemsize)
    else:
        layout = Layout(extents, layouts.normalise_strides(strides, len(extents)), kind.itemsize)
    layouts.check_numbers(layout)
    return layout, kind


def _open(handle: bytes, nbytes: int, device: Device) -> Buffer:
    """The first *nbytes* of the allocation that *handle* names; `ArrayError` where it has fewer."""
    driver = device.driver
    base = driver.open_ipc_handle(device.ordinal, bytes(handle))
    buffer = Buffer(base, nbytes, release=driver.free, arguments=(base,))
    start, size = driver.find_allocation(base)
    if base + nbytes > start + size:
        buffer.close()
        raise ArrayError(f"the memory behind the IPC handle has {start + size - base} bytes; {nbytes} were asked for")
    return buffer
