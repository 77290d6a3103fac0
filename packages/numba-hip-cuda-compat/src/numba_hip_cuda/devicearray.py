"""``numba.cuda.cudadrv.devicearray``: the classes of arrays, and what copies of Numba CUDA's check of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import hip_runtime
from hip_runtime.layout import Layout
from numba_hip.host.host_memory import ManagedArray, MappedArray
from numba_hip_cuda.arrays import DeviceNDArray, array_core, device_pointer
from numba_hip_cuda.standin_classes import Standin

errmsg_contiguous_buffer = "the array is not contiguous; numpy.ascontiguousarray makes a copy of it that is"


class DeviceNDArrayBase(DeviceNDArray):
    """Every device array is one of these."""


class _NotManaged(Standin):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, MappedArray) and not isinstance(instance, ManagedArray)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, MappedArray) and not issubclass(subclass, ManagedArray)


class MappedNDArray(metaclass=_NotManaged):
    """Every array of `numba_hip.mapped_array` is one of these."""

    stands_for = (MappedArray,)


class ManagedNDArray(metaclass=Standin):
    """Every array of `numba_hip.managed_array` is one of these."""

    stands_for = (ManagedArray,)


def sentry_contiguous(ary: Any) -> None:
    """`ValueError` unless the elements of *ary* follow each other in memory, but for axes along which it repeats."""
    flags = array_core(ary).flags
    if not (flags["C_CONTIGUOUS"] or flags["F_CONTIGUOUS"]):
        raise ValueError(errmsg_contiguous_buffer)


def check_array_compatibility(ary1: Any, ary2: Any) -> None:
    """`TypeError` or `ValueError` unless the two have one element type, and shape and strides but for axes of one."""
    if ary1.dtype != ary2.dtype:
        raise TypeError(f"incompatible dtype: {ary1.dtype} vs. {ary2.dtype}")
    one, other = ary1.squeeze(), ary2.squeeze()
    if one.shape != other.shape:
        raise ValueError(f"incompatible shape: {ary1.shape} vs. {ary2.shape}")
    if ary1.size and one.strides != other.strides:
        raise ValueError(f"incompatible strides: {ary1.strides} vs. {ary2.strides}")


def ndarray_device_allocate_data(ary: Any) -> hip_runtime.Buffer:
    """New memory on the current device, of as many bytes as lie between the first and the last of *ary*."""
    return hip_runtime.current_device().allocate(memory_size_from_info(ary.shape, ary.strides, ary.itemsize))


def memory_size_from_info(shape: Iterable[int], strides: Iterable[int], itemsize: int) -> int:
    """Bytes from the first to the last of an array."""
    first, end = Layout(tuple(shape), tuple(strides), itemsize).extent
    return end - first


def device_extents(devmem: Any) -> tuple[int, int]:
    """Where the whole allocation that *devmem* lies in begins, and where it ends."""
    start, size = hip_runtime.current_device().driver.find_allocation(device_pointer(devmem))
    return start, start + size


def device_ctypes_pointer(obj: Any) -> Any:
    """The address of *obj* on the device as an integer of ctypes."""
    from ctypes import c_size_t

    return c_size_t(0 if obj is None else device_pointer(obj))
