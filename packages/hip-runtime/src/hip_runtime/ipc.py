"""Arrays that another process opens: handles that can be pickled, and arrays over memory of somebody else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hip_runtime import layout as layouts
from hip_runtime.array import DeviceArray
from hip_runtime.copying import check_dtype
from hip_runtime.device import Device, current_device
from hip_runtime.errors import ArrayError
from hip_runtime.layout import Layout, Shape
from hip_runtime.memory import Buffer


@dataclass
class IpcArrayHandle:
    """An array of one process, for others: ``with handle as array: ...``, or `open` and `close`.

    ``handle`` names the allocation that the array lies in, ``offset`` is where in it, in bytes. The process that it
    came from has to keep the array meanwhile.
    """

    handle: bytes = field(repr=False)
    shape: Shape
    strides: Shape
    dtype: np.dtype[Any]
    offset: int = 0
    _opened: DeviceArray | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, array: DeviceArray) -> IpcArrayHandle:
        """The handle of *array*; `UnsupportedError` on a device that cannot share memory by handles."""
        handle = array.device.driver.ipc_handle(array.buffer.address)
        return cls(handle, array.shape, array.strides, array.dtype, array.address - array.buffer.address)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    def open(self) -> DeviceArray:
        """The array, in memory of the other process; `ArrayError` where it is open already."""
        if self._opened is not None:
            raise ArrayError("this IPC handle is open already; close it first")
        self._opened = open_ipc_array(self.handle, self.shape, self.dtype, self.strides, self.offset)
        return self._opened

    def close(self) -> None:
        """Let go of the memory; the array that `open` gave must not be used any more."""
        opened, self._opened = self._opened, None
        if opened is None:
            raise ArrayError("this IPC handle is not open")
        opened.buffer.close()

    def __enter__(self) -> DeviceArray:
        return self.open()

    def __exit__(self, *exception: object) -> None:
        self.close()


def open_ipc_array(
    handle: bytes, shape: Any, dtype: Any, strides: Any = None, offset: int = 0, *, device: Device | None = None
) -> DeviceArray:
    """The array at *offset* bytes into the allocation of another process that *handle* names.

    Closing its buffer, or dropping it, lets go of the memory. Raises `UnsupportedError` on a device that cannot, and
    `ArrayError`.
    """
    device = current_device() if device is None else device
    kind = check_dtype(dtype)
    extents = layouts.normalise_shape(shape)
    if strides is None:
        layout = layouts.dense(extents, kind.itemsize)
    else:
        layout = Layout(extents, layouts.normalise_strides(strides, len(extents)), kind.itemsize)
    first, end = layout.extent
    if offset + first < 0:
        raise ArrayError(f"an array of shape {extents} and strides {layout.strides} begins before offset {offset}")
    base = device.driver.open_ipc_handle(device.ordinal, bytes(handle))
    buffer = Buffer(base, offset + end, release=device.driver.free, arguments=(base,))
    return DeviceArray(layout, kind, buffer, device=device, address=base + offset)
