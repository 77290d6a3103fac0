"""Parts of arrays of the device, and what memory two have in common."""

from __future__ import annotations

from hip_runtime import DeviceArray
from hip_runtime.layout import dense


def columns_of(array: DeviceArray) -> list[DeviceArray]:
    """The arrays, of one axis, of the numbers that the elements of *array* consist of: see
    `numba_hip.cooperative.value_parts`."""
    if array.ndim > 1:  # a field that is an array
        return [column for place in range(array.shape[1]) for column in columns_of(array[:, place])]
    if array.dtype.names is None:
        return [array]
    return [column for name in array.dtype.names for column in columns_of(array.field(name))]


def beginning(array: DeviceArray, count: int) -> DeviceArray:
    """The first *count* elements of an *array* with one axis, which has as many. Takes less time than an index."""
    if count == array.size:
        return array
    if not array.is_c_contiguous():
        cut: DeviceArray = array[:count]
        return cut
    layout, kind = dense((count,), array.itemsize), array.dtype
    return DeviceArray(
        layout, kind, array.buffer, device=array.device, address=array.address, stream=array.stream,
        readonly=array.readonly,
    )  # fmt: skip


def share_memory(first: DeviceArray, second: DeviceArray) -> bool:
    """Whether the memory from the first to the last element of each has some in common."""
    start, end = _bounds(first)
    other_start, other_end = _bounds(second)
    return first.size > 0 < second.size and start < other_end and other_start < end


def _bounds(array: DeviceArray) -> tuple[int, int]:
    reach = (array.size - 1) * array.strides[0]
    return array.address + min(reach, 0), array.address + max(reach, 0) + array.dtype.itemsize


def is_same_place(first: DeviceArray, second: DeviceArray) -> bool:
    """Whether elements of the same index are at the same place."""
    here, there = ((one.address, one.strides, one.dtype.itemsize) for one in (first, second))
    return here == there
