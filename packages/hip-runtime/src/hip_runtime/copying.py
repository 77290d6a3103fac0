"""Copies between arrays of any layout, on the host or on a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hip_runtime.driver import Driver, Strided
from hip_runtime.errors import ArrayError, CopyError
from hip_runtime.layout import Layout

if TYPE_CHECKING:
    from hip_runtime.array import DeviceArray

HostArray = np.ndarray[Any, Any]


def check_dtype(dtype: Any) -> np.dtype[Any]:
    """*dtype* as NumPy's type of elements that are plain bytes; `ArrayError` for Python objects and unknown types."""
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except TypeError as error:
        raise ArrayError(f"dtype {dtype!r} is not a type of array elements: {error}") from None
    if found.hasobject:
        raise ArrayError(
            f"dtype {found} holds Python objects, which a device cannot; convert the array to a numeric type"
        )
    if found.itemsize == 0:
        raise ArrayError(f"dtype {found} has no bytes; give a text or void type its length")
    return found


def host_layout(array: HostArray) -> Layout:
    """Layout of a NumPy array."""
    return Layout(array.shape, array.strides, array.itemsize)


def check_fit(target: Any, source: Any) -> None:
    """Raise `CopyError` unless both have the same shape and the same type of elements."""
    if target.shape != source.shape:
        raise CopyError(
            f"cannot copy an array of shape {source.shape} to one of shape {target.shape}: the shapes must be equal"
        )
    if target.dtype != source.dtype:
        raise CopyError(
            f"cannot copy elements of type {source.dtype} to an array of {target.dtype}: convert them first"
        )


def to_host(target: HostArray, source: DeviceArray, stream: int) -> None:
    """Fill *target* from *source*."""
    check_fit(target, source)
    if not target.flags.writeable:
        raise CopyError("cannot copy to a host array that is read-only")
    layout = host_layout(target)
    _copy(source.device.driver, target.ctypes.data, layout, source.address, source.layout, stream, (target, source))


def to_device(target: DeviceArray, source: HostArray, stream: int) -> None:
    """Fill *target* from *source*."""
    check_fit(target, source)
    layout = host_layout(source)
    _copy(target.device.driver, target.address, target.layout, source.ctypes.data, layout, stream, (target, source))


def on_device(target: DeviceArray, source: DeviceArray, stream: int) -> None:
    """Fill *target* from *source*, both on one device; they may overlap."""
    check_fit(target, source)
    if target.device is not source.device:
        raise CopyError(f"cannot copy from {source.device} to {target.device}: copy through the host")
    _copy(target.device.driver, target.address, target.layout, source.address, source.layout, stream, (target, source))


def _copy(
    driver: Driver, target: int, target_layout: Layout, source: int, source_layout: Layout, stream: int, owners: object
) -> None:
    if target_layout.size == 0:
        return
    if target_layout.overlaps_itself:
        raise CopyError(
            f"cannot copy to an array of shape {target_layout.shape} and strides {target_layout.strides}: its elements "
            "overlap"
        )
    if _one_block(target_layout, source_layout):
        first = target_layout.extent[0]
        driver.copy(target + first, source + first, target_layout.nbytes, stream, owners)
        return
    driver.copy_strided(
        Strided(target, target_layout.strides),
        Strided(source, source_layout.strides),
        target_layout.shape,
        target_layout.itemsize,
        stream,
        owners,
    )


def _one_block(target: Layout, source: Layout) -> bool:
    """Whether both have their elements in the same order without gaps, so that their bytes can be copied as they
    lie."""
    first, end = target.extent
    return end - first == target.nbytes and all(
        extent == 1 or one == other
        for extent, one, other in zip(target.shape, target.strides, source.strides, strict=True)
    )
