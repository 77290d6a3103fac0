"""``numba.cuda.cudadrv.devicearray``: the array classes, and the checks that Numba CUDA's copies make."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import hip_runtime
from hip_runtime import DeviceArray
from hip_runtime.layout import Layout
from numba_hip.host.host_memory import ManagedArray, MappedArray
from numba_hip_cuda.arrays import DeviceNDArray, array_core, device_pointer
from numba_hip_cuda.standin_classes import Standin

errmsg_contiguous_buffer = "the array is not contiguous; numpy.ascontiguousarray makes a copy of it that is"


class DeviceNDArrayBase(DeviceNDArray):
    """The class of every device array, and of arrays of the host whose memory kernels use."""

    stands_for = (DeviceArray, MappedArray)


class _NotManaged(Standin):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, MappedArray) and not isinstance(instance, ManagedArray)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, MappedArray) and not issubclass(subclass, ManagedArray)


class MappedNDArray(metaclass=_NotManaged):
    """The class of every array made by `numba_hip.mapped_array`."""

    stands_for = (MappedArray,)


class ManagedNDArray(metaclass=Standin):
    """The class of every array made by `numba_hip.managed_array`."""

    stands_for = (ManagedArray,)


def sentry_contiguous(ary: Any) -> None:
    """`ValueError` unless the elements of *ary* are contiguous, not counting axes along which it repeats."""
    flags = array_core(ary).flags
    if not (flags["C_CONTIGUOUS"] or flags["F_CONTIGUOUS"]):
        raise ValueError(errmsg_contiguous_buffer)


def check_array_compatibility(ary1: Any, ary2: Any) -> None:
    """`TypeError` or `ValueError` unless both have the same element type, shape and strides. Strides of axes with one
    element do not count."""
    if ary1.dtype != ary2.dtype:
        raise TypeError(f"incompatible dtype: {ary1.dtype} vs. {ary2.dtype}")
    one, other = ary1.squeeze(), ary2.squeeze()
    if one.shape != other.shape:
        raise ValueError(f"incompatible shape: {ary1.shape} vs. {ary2.shape}")
    if ary1.size and one.strides != other.strides:
        raise ValueError(f"incompatible strides: {ary1.strides} vs. {ary2.strides}")


def ndarray_device_allocate_data(ary: Any) -> hip_runtime.Buffer:
    """New memory on the current device, as large as the memory from the first to the last byte of *ary*."""
    return hip_runtime.current_device().allocate(memory_size_from_info(ary.shape, ary.strides, ary.itemsize))


def memory_size_from_info(shape: Iterable[int], strides: Iterable[int], itemsize: int) -> int:
    """The number of bytes from the first to the last of an array."""
    first, end = Layout(tuple(shape), tuple(strides), itemsize).extent
    return end - first


def device_extents(devmem: Any) -> tuple[int, int]:
    """The start and the end of the allocation that *devmem* is in."""
    start, size = hip_runtime.current_device().driver.find_allocation(device_pointer(devmem))
    return start, start + size


def device_ctypes_pointer(obj: Any) -> Any:
    """The device address of *obj* as a ctypes integer."""
    from ctypes import c_size_t

    return c_size_t(0 if obj is None else device_pointer(obj))
