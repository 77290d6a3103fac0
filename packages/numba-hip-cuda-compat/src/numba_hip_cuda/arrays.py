"""Memory functions that programs import from internal modules of `numba.cuda`, for device arrays of `numba_hip`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

import numba_hip
from hip_runtime import Buffer, Device, DeviceArray, is_device_array
from hip_runtime.config import transpose_copies
from hip_runtime.copying import bytes_to_device, bytes_to_host, host_layout
from hip_runtime.foreign_arrays import host_array
from hip_runtime.layout import Layout, check_numbers, normalise_shape, normalise_strides
from hip_runtime.stream_handle import stream_handle
from numba_hip.host.host_memory import MappedArray
from numba_hip.host.memory_pointers import MemoryPointer
from numba_hip_cuda.standin_classes import Standin

HostArray = np.ndarray[Any, Any]


def auto_device(obj: Any, stream: Any = 0, copy: bool = True, user_explicit: bool = False) -> tuple[DeviceArray, bool]:
    """*obj* on the device, and whether that is a new array. Changes to a new array must be copied back to be seen."""
    del user_explicit
    if isinstance(obj, DeviceArray):
        return obj, False
    if is_device_array(obj):
        return numba_hip.as_device_array(obj), False
    if isinstance(obj, np.void):
        return from_record_like(obj, stream, contents=obj if copy else None), True
    return numba_hip.to_device(host_array(obj), stream=stream, copy=copy), True


def from_array_like(ary: Any, stream: Any = 0, gpu_data: Any = None) -> DeviceArray:
    """A new device array with the shape, element type and order of *ary*, or a view of *gpu_data* with that shape."""
    if gpu_data is None:
        return numba_hip.device_array_like(ary, stream=stream)
    if isinstance(gpu_data, (Buffer, MemoryPointer)):
        return DeviceNDArray(ary.shape, ary.strides, ary.dtype, stream, gpu_data)
    whole = verify_cuda_ndarray_interface(gpu_data)
    if whole.nbytes != ary.nbytes:
        raise ValueError(f"gpu_data has {whole.nbytes} bytes, an array like ary needs {ary.nbytes}")
    return whole.reshape(-1).view(ary.dtype).reshape(ary.shape)


def from_record_like(rec: Any, stream: Any = 0, gpu_data: Any = None, *, contents: Any = None) -> DeviceArray:
    """A record on the device with the type of *rec*: a new one, with *contents* if given, or the start of
    *gpu_data*."""
    if gpu_data is not None:
        return DeviceRecord(rec.dtype, stream, gpu_data)
    record = DeviceRecord(rec.dtype, stream)
    if contents is not None:
        record.copy_to_device(np.array(contents))
    return record


class DeviceNDArray(metaclass=Standin):
    """The class of every device array. Calling it makes one with the given strides, in *gpu_data* if given."""

    stands_for: ClassVar[tuple[type, ...]] = (DeviceArray,)

    def __new__(  # type: ignore[misc]
        cls, shape: Any, strides: Any, dtype: Any, stream: Any = 0, gpu_data: Any = None
    ) -> DeviceArray:
        kind = np.dtype(dtype)
        layout = Layout(normalise_shape(shape), normalise_strides(strides, np.size(shape)), kind.itemsize)
        check_numbers(layout)
        device: Device = numba_hip.get_current_device()
        if gpu_data is None:
            first, end = layout.extent
            buffer = device.allocate(end - first)
            return DeviceArray(
                layout, kind, buffer, device=device, address=buffer.address - first, stream=stream or None
            )
        return DeviceArray(layout, kind, _buffer_of(gpu_data), device=device, stream=stream or None)


def _buffer_of(gpu_data: Any) -> Buffer:
    """The memory *gpu_data*: a pointer, mapped memory of the host, or a buffer; `TypeError`."""
    if isinstance(gpu_data, Buffer):
        return gpu_data
    if isinstance(gpu_data, MappedArray):
        return gpu_data.device_array.memory
    if isinstance(gpu_data, MemoryPointer):
        return gpu_data.as_buffer()
    raise TypeError(f"gpu_data must be a pointer to memory of the device, got {type(gpu_data).__name__}")


class DeviceRecord(metaclass=Standin):
    """The class of device arrays without axes whose element is a record. Calling it makes one."""

    stands_for = (DeviceArray,)

    def __new__(cls, dtype: Any, stream: Any = 0, gpu_data: Any = None) -> DeviceArray:  # type: ignore[misc]
        record: DeviceArray = DeviceNDArray((), (), dtype, stream, gpu_data)
        return record


def verify_cuda_ndarray_interface(obj: Any) -> DeviceArray:
    """*obj* as a device array; `TypeError` if it has no device memory."""
    if not is_device_array(obj):
        raise TypeError(f"expected an array on a device, got {type(obj).__name__}")
    return numba_hip.as_device_array(obj)


def require_cuda_ndarray(obj: Any) -> None:
    """`ValueError` unless *obj* is a device array."""
    if not isinstance(obj, DeviceArray):
        raise ValueError(f"a device array is required, got {type(obj).__name__}")


def is_contiguous(ary: Any) -> bool:
    """Whether the elements of *ary* are contiguous in C order, not counting axes of stride 0 or of one element."""
    kept = [
        (extent, stride) for extent, stride in zip(ary.shape, ary.strides, strict=True) if extent > 1 and stride != 0
    ]
    shape, strides = tuple(extent for extent, _ in kept), tuple(stride for _, stride in kept)
    return Layout(shape, strides, ary.dtype.itemsize).is_c_contiguous


def array_core(ary: Any) -> Any:
    """*ary* without its repetitions: along each axis of stride 0, the first element only."""
    if not ary.strides or not ary.size:
        return ary
    return ary[tuple(0 if stride == 0 else slice(None) for stride in ary.strides)]


def transpose(a: Any, b: DeviceArray | None = None) -> DeviceArray:
    """The transpose of the 2-D device array *a*, written to *b* or to a new array, which is returned."""
    source = verify_cuda_ndarray_interface(a)
    if b is None:
        b = numba_hip.device_array(source.shape[::-1], source.dtype, stream=source.stream)
    with transpose_copies.scope(False):
        b.copy_to_device(source.T)
    return b


# Functions on memory addresses.


def device_pointer(obj: Any) -> int:
    """The device address of an array or a buffer, or *obj* itself if it is an address."""
    if isinstance(obj, int):
        return obj
    address = getattr(obj, "address", None)
    if address is None:
        address = getattr(obj, "device_pointer_value", None)
    if address is not None:
        return int(address)
    if not is_device_array(obj):
        raise TypeError(f"expected memory of a device or its address, got {type(obj).__name__}")
    array: DeviceArray = numba_hip.as_device_array(obj)
    return array.address


def is_device_memory(obj: Any) -> bool:
    """Whether *obj* has memory on a device."""
    return any(hasattr(obj, name) for name in ("address", "device_pointer_value")) or is_device_array(obj)


def require_device_memory(obj: Any) -> None:
    """`TypeError` unless *obj* has memory on a device."""
    if not is_device_memory(obj):
        raise TypeError(f"memory of a device is required, got {type(obj).__name__}")


def device_memory_size(obj: Any) -> int:
    """The size in bytes of a device array, a buffer or a `MemoryPointer`."""
    return int(obj.nbytes if hasattr(obj, "nbytes") else obj.size)


def host_memory_extents(obj: Any) -> tuple[int, int]:
    """The addresses of the first byte of *obj* (an array or any buffer) and of the byte after its last."""
    array = _host_array(obj)
    first, end = host_layout(array).extent
    return array.ctypes.data + first, array.ctypes.data + end


def host_memory_size(obj: Any) -> int:
    """The number of bytes from the first to the last of *obj* (an array or any buffer)."""
    low, high = host_memory_extents(obj)
    return high - low


def _host_array(obj: Any) -> HostArray:
    return obj if isinstance(obj, np.ndarray) else np.frombuffer(obj, np.uint8)


def host_pointer(obj: Any, readonly: bool = False) -> int:
    """The address of the host memory of *obj*: an address, an array or any buffer."""
    if isinstance(obj, int):
        return obj
    array = _host_array(obj)
    if not readonly and not array.flags.writeable:
        raise ValueError("the host memory to copy to is read-only")
    return array.ctypes.data


def host_to_device(dst: Any, src: Any, size: int, stream: Any = 0) -> None:
    """Copy *size* bytes from *src* on the host to *dst* on the device."""
    target, source = device_pointer(dst), host_pointer(src, readonly=True)
    bytes_to_device(_device(), target, source, size, stream_handle(stream), (dst, src))


def device_to_host(dst: Any, src: Any, size: int, stream: Any = 0) -> None:
    """Copy *size* bytes from *src* on the device to *dst* on the host."""
    bytes_to_host(_device(), host_pointer(dst), device_pointer(src), size, stream_handle(stream), (dst, src))


def device_to_device(dst: Any, src: Any, size: int, stream: Any = 0) -> None:
    """Copy *size* bytes within the device's memory."""
    _device().driver.copy(device_pointer(dst), device_pointer(src), size, stream_handle(stream), (dst, src))


def device_memset(dst: Any, val: int, size: int, stream: Any = 0) -> None:
    """Set *size* bytes at *dst* on the device to *val*, 0 to 255."""
    if not 0 <= val <= 255:
        raise ValueError(f"val is {val}; it must be 0 to 255")
    _device().driver.fill(device_pointer(dst), val, size, stream_handle(stream))


def _device() -> Device:
    device: Device = numba_hip.get_current_device()
    return device
