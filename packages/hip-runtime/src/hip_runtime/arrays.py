"""Creates device arrays: empty ones, and copies of host arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from hip_runtime import layout as layouts
from hip_runtime.array import DeviceArray, StreamLike
from hip_runtime.array_methods import NUMBERS
from hip_runtime.copying import HostArray, check_dtype, check_fit, host_layout
from hip_runtime.device import Device, current_device
from hip_runtime.driver import MemoryKind
from hip_runtime.errors import ArrayError, ArrayTypeError
from hip_runtime.host_view import view_memory
from hip_runtime.interop import as_device_array, host_source, is_device_array
from hip_runtime.layout import Layout
from hip_runtime.memory import Buffer
from hip_runtime.said_names import our
from hip_runtime.stream import Stream


def device_array(
    shape: Any,
    dtype: Any = np.float64,
    strides: Any = None,
    order: str = "C",
    stream: StreamLike = None,
    *,
    device: Device | None = None,
) -> DeviceArray:
    """A new array with undefined contents.

    *shape* is a whole number or a sequence of them; *strides*, in bytes, replace *order* (``"C"`` or ``"F"``).
    *device* is that of *stream*, or the current one. Raises `ArrayError` for a shape, stride or type that cannot be,
    and `OutOfDeviceMemoryError`.
    """
    layout, kind = _describe(shape, dtype, strides, order)
    where = _device_of(stream, device)
    buffer = where.allocate(layout.extent[1] - layout.extent[0])
    return DeviceArray(layout, kind, buffer, device=where, address=buffer.address - layout.extent[0], stream=stream)


def full(
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "C",
    stream: StreamLike = None,
    *,
    device: Device | None = None,
) -> DeviceArray:
    """A new array with all elements *fill_value*, of its type where *dtype* is None; else as `device_array`. An array
    is repeated to fill *shape*, as NumPy does it."""
    kind = np.asarray(fill_value).dtype if dtype is None else dtype
    made = device_array(shape, kind, order=order, stream=stream, device=device)
    if isinstance(fill_value, NUMBERS) or not np.ndim(fill_value):
        made.fill(fill_value)
    else:
        made.setitem(..., fill_value, stream)
    return made


def zeros(
    shape: Any, dtype: Any = np.float64, order: str = "C", stream: StreamLike = None, *, device: Device | None = None
) -> DeviceArray:
    """A new array of zeros; else as `device_array`."""
    return full(shape, 0, dtype, order, stream, device=device)


def ones(
    shape: Any, dtype: Any = np.float64, order: str = "C", stream: StreamLike = None, *, device: Device | None = None
) -> DeviceArray:
    """A new array of ones; else as `device_array`."""
    return full(shape, 1, dtype, order, stream, device=device)


def device_array_like(ary: Any, stream: StreamLike = None, *, device: Device | None = None) -> DeviceArray:
    """A new contiguous array of the shape and element type of *ary*, with its axes in the same order."""
    if not hasattr(ary, "strides"):
        ary = as_device_array(ary) if is_device_array(ary) else host_source(ary)
    return device_array(ary.shape, ary.dtype, strides_like(ary), stream=stream, device=device)


def to_device(
    obj: Any,
    stream: StreamLike = None,
    copy: bool = True,
    to: DeviceArray | None = None,
    *,
    device: Device | None = None,
) -> DeviceArray:
    """*obj* on the device: a new array, or *to* if that is given, which must have the same shape and element type.

    A device array is returned unchanged. With ``copy=False`` the contents are undefined. Host arrays in Fortran order
    stay so, empty ones keep their strides; all others become C-contiguous. An axis of stride 0 (`numpy.broadcast_to`)
    has a single element on the device, too.
    """
    if to is not None:
        if not isinstance(to, DeviceArray):
            raise ArrayTypeError(
                f"to is of type {type(to).__name__}; it must be a device array, of {our('device_array')}"
            )
        source: Any = as_device_array(obj) if is_device_array(obj) else host_source(obj)
        check_fit(to, source)
        if copy:
            to.copy_to_device(source, stream)
        return to
    if is_device_array(obj):
        return as_device_array(obj, device=device)
    return _new_on_device(host_source(obj), stream, copy, device)


def _new_on_device(source: HostArray, stream: StreamLike, copy: bool, device: Device | None) -> DeviceArray:
    if not source.size:
        return device_array(source.shape, source.dtype, source.strides, stream=stream, device=device)
    once = _without_repeats(source)
    made = array_for(once, stream, device=device)
    if copy:
        made.copy_to_device(once, stream)
    return made if once is source else made.broadcast_to(source.shape)


def array_for(source: HostArray, stream: StreamLike = None, *, device: Device | None = None) -> DeviceArray:
    """A new array for the elements of *source*, in `order_of` it; its contents are undefined. Errors are those of
    `device_array`."""
    kind = check_dtype(source.dtype)
    layout = layouts.dense(source.shape, kind.itemsize, order_of(host_layout(source)))
    where = _device_of(stream, device)
    return DeviceArray(layout, kind, where.allocate(layout.nbytes), device=where, stream=stream)


def _without_repeats(source: HostArray) -> HostArray:
    """The first along each axis of *source* of stride 0, which are axes of extent 1 then."""
    if 0 not in source.strides:
        return source
    repeats = [stride == 0 and extent > 1 for stride, extent in zip(source.strides, source.shape, strict=True)]
    if not any(repeats):
        return source
    return source[tuple(slice(0, 1) if repeat else slice(None) for repeat in repeats)]


def pinned_array(shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C") -> HostArray:
    """A NumPy array in page-locked host memory, from which copies are fast and can be asynchronous."""
    return _host_array(*_allocate(shape, dtype, strides, order, MemoryKind.PINNED))


def mapped_array(
    shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C", stream: StreamLike = None
) -> tuple[HostArray, DeviceArray]:
    """Page-locked host memory that kernels use in place: a NumPy array and a device array over the same bytes."""
    return _shared(shape, dtype, strides, order, MemoryKind.MAPPED, stream)


def managed_array(
    shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C", stream: StreamLike = None
) -> tuple[HostArray, DeviceArray]:
    """Memory that migrates to where it is used: a NumPy array and a device array over the same bytes."""
    return _shared(shape, dtype, strides, order, MemoryKind.MANAGED, stream)


def _describe(shape: Any, dtype: Any, strides: Any, order: str) -> tuple[Layout, np.dtype[Any]]:
    kind = check_dtype(dtype)
    extents = layouts.normalise_shape(shape)
    if strides is None:
        layout = layouts.dense(extents, kind.itemsize, order)
    else:
        distances = layouts.normalise_strides(strides, len(extents))
        layout = Layout(extents, distances, kind.itemsize)
        if layout.overlaps_itself:
            raise ArrayError(f"strides {distances} make elements of shape {extents} and {kind.itemsize} bytes overlap")
    layouts.check_numbers(layout)
    if layout.extent[1] - layout.extent[0] >= layouts.ADDRESSES:
        raise ArrayError(f"strides {layout.strides} with shape {extents} reach further than any address space")
    return layout, kind


def _device_of(stream: StreamLike, device: Device | None) -> Device:
    if device is not None:
        return device
    return stream.device if isinstance(stream, Stream) else current_device()


def order_of(layout: Layout) -> str:
    """The order of a contiguous copy for kernels of what has *layout*: Fortran if it is only contiguous in that order,
    otherwise C."""
    return "F" if layout.is_f_contiguous and not layout.is_c_contiguous else "C"


def strides_like(ary: Any) -> layouts.Shape:
    """The strides of a contiguous array of the shape of *ary* whose axes lie in the same order in memory."""
    layout = Layout(ary.shape, ary.strides, ary.dtype.itemsize)
    return layouts.dense(ary.shape, layout.itemsize, order_of(layout)).strides if (
        layout.is_c_contiguous or layout.is_f_contiguous
    ) else layouts.dense_like(layout).strides  # fmt: skip


def _allocate(
    shape: Any, dtype: Any, strides: Any, order: str, kind: MemoryKind
) -> tuple[Layout, np.dtype[Any], Buffer]:
    layout, element = _describe(shape, dtype, strides, order)
    return layout, element, current_device().allocate(layout.extent[1] - layout.extent[0], kind)


def _host_array(layout: Layout, dtype: np.dtype[Any], buffer: Buffer) -> HostArray:
    return view_memory(layout, dtype, buffer, buffer.address - layout.extent[0])


def _shared(
    shape: Any, dtype: Any, strides: Any, order: str, kind: MemoryKind, stream: StreamLike
) -> tuple[HostArray, DeviceArray]:
    layout, element, buffer = _allocate(shape, dtype, strides, order, kind)
    array = DeviceArray(
        layout, element, buffer, device=current_device(), address=buffer.address - layout.extent[0], stream=stream
    )
    return _host_array(layout, element, buffer), array
