"""Host memory that kernels use, as in Numba CUDA: page-locked, mapped and managed arrays that are NumPy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

import hip_runtime
from hip_runtime import DeviceArray, Stream, current_device
from hip_runtime.arrays import strides_like
from hip_runtime.errors import ArrayError, UnsupportedError
from hip_runtime.ipc import IpcArrayHandle
from hip_runtime.ipc import open_ipc_array as _open_ipc_array
from hip_runtime.layout import Layout
from hip_runtime.memory import Buffer

HostArray = np.ndarray[Any, Any]
StreamLike = Stream | int | None


class MappedArray(np.ndarray[Any, Any]):
    """A NumPy array whose memory kernels use in place, and so are its views; results of computing with it are not.

    Created by `mapped_array` and `managed_array`. The host may read it once the kernel is done: synchronise first.
    """

    _whole: DeviceArray | None

    def __array_finalize__(self, obj: Any) -> None:
        self._whole = getattr(obj, "_whole", None)

    @property
    def device_array(self) -> DeviceArray:
        """The same memory as a device array. Raises `ArrayError` if this is a copy in ordinary host memory."""
        whole = self._whole
        if whole is not None:
            layout = Layout(self.shape, self.strides, self.itemsize)
            first, end = layout.extent
            place, buffer = self.ctypes.data, whole.buffer
            if buffer.address <= place + first and place + end <= buffer.address + buffer.nbytes:
                return DeviceArray(
                    layout, self.dtype, buffer, device=whole.device, address=place, stream=whole.stream,
                    readonly=not self.flags.writeable,
                )  # fmt: skip
        raise ArrayError("this array was computed from a mapped one, and is in host memory only")

    @property
    def device_ctypes_pointer(self) -> ctypes.c_size_t:
        """Its device address, as an integer of ctypes."""
        return self.device_array.device_ctypes_pointer

    @property
    def is_mapped(self) -> bool:
        """Whether kernels can use this array in place."""
        try:
            return self.device_array is not None
        except ArrayError:
            return False

    @property
    def __hip_device_array__(self) -> DeviceArray:
        if not self.is_mapped:
            raise AttributeError("__hip_device_array__")
        return self.device_array

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if not self.is_mapped:
            raise AttributeError("__cuda_array_interface__")
        return self.device_array.__cuda_array_interface__

    @property
    def __cuda_memory__(self) -> bool:
        if not self.is_mapped:
            raise AttributeError("__cuda_memory__")
        return True

    __cuda_ndarray__ = __cuda_memory__

    @property
    def gpu_data(self) -> Any:
        """Its memory, as of `DeviceArray.gpu_data`."""
        return self.device_array.gpu_data

    @property
    def alloc_size(self) -> int:
        """Bytes from the first to the last element, with what lies between them."""
        return self.device_array.alloc_size

    @property
    def stream(self) -> StreamLike:
        """The stream of its copies; None if this is a copy in ordinary host memory. It can be set."""
        return None if self._whole is None else self._whole.stream

    @stream.setter
    def stream(self, stream: StreamLike) -> None:
        if self._whole is None:
            raise ArrayError("this array was computed from a mapped one, and is in host memory only")
        self._whole = self._whole.bind(stream)

    def bind(self, stream: StreamLike = None) -> MappedArray:
        """The same array with another default `stream` for its copies."""
        bound: MappedArray = self[...]  # type: ignore[assignment]
        bound.stream = stream
        return bound

    def split(self, section: int, stream: StreamLike = None) -> Iterator[DeviceArray]:
        """As `DeviceArray.split`: device arrays over the same memory."""
        return self.device_array.split(section, stream)

    def get_ipc_handle(self) -> IpcArrayHandle:
        """As `DeviceArray.get_ipc_handle`; `hip_runtime.errors.HipRuntimeError` if this memory cannot be shared."""
        return self.device_array.get_ipc_handle()

    def as_cuda_arg(self) -> Any:
        """``gpu_data``."""
        return self.gpu_data

    def copy_to_host(self, ary: HostArray | None = None, stream: StreamLike = None) -> HostArray:
        """As `DeviceArray.copy_to_host`."""
        copied: HostArray = self.device_array.copy_to_host(ary, stream)
        return copied

    def copy_to_device(self, ary: Any, stream: StreamLike = None) -> None:
        """As `DeviceArray.copy_to_device`."""
        self.device_array.copy_to_device(ary, stream)


class ManagedArray(MappedArray):
    """A `MappedArray` in memory that migrates to where it is used."""


M = TypeVar("M", bound=MappedArray)


def _as_mapped(pair: tuple[HostArray, DeviceArray], kind: type[M]) -> M:
    host, device = pair
    array = host.view(kind)
    array._whole = device
    return array


def mapped_array(
    shape: Any,
    dtype: Any = np.float64,
    strides: Any = None,
    order: str = "C",
    stream: StreamLike = None,
    portable: bool = False,
    wc: bool = False,
) -> MappedArray:
    """A new array in page-locked host memory that kernels use in place, with undefined contents.

    *portable* (for every device) and *wc* (write-combining) are hints that change nothing here.
    """
    del portable, wc
    return _as_mapped(hip_runtime.mapped_array(shape, dtype, strides, order, stream), MappedArray)


def managed_array(
    shape: Any,
    dtype: Any = np.float64,
    strides: Any = None,
    order: str = "C",
    stream: StreamLike = None,
    attach_global: bool = True,
) -> ManagedArray:
    """A new array, with undefined contents, in memory that migrates to where it is used.

    *attach_global* means, as in CUDA, that streams of every device may use it; here they always may.
    """
    del attach_global
    return _as_mapped(hip_runtime.managed_array(shape, dtype, strides, order, stream), ManagedArray)


def _shape_of(ary: Any) -> dict[str, Any]:
    """The arguments for an array like *ary*: its shape and type, with its axes in the same order."""
    return {"shape": ary.shape, "dtype": ary.dtype, "strides": strides_like(ary)}


def mapped_array_like(ary: Any, stream: StreamLike = None, portable: bool = False, wc: bool = False) -> MappedArray:
    """`mapped_array` of the shape, element type and order of *ary*."""
    return mapped_array(**_shape_of(ary), stream=stream, portable=portable, wc=wc)


def pinned_array_like(ary: Any) -> HostArray:
    """`pinned_array` of the shape, element type and order of *ary*."""
    return hip_runtime.pinned_array(**_shape_of(ary))


def _check_host(arrays: tuple[Any, ...]) -> None:
    for array in arrays:
        if not isinstance(array, np.ndarray) or array.dtype.hasobject:
            raise ArrayError(f"page-locking takes NumPy arrays of plain elements, got {_shown(array)}")


def _shown(value: Any) -> str:
    return f"one of dtype {value.dtype}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"


@contextmanager
def pinned(*arrays: HostArray) -> Iterator[None]:
    """A block in which *arrays* are page-locked, so that copies are fast: a hint, which never changes what is copied.

    For the CPU device all host memory is as good as page-locked; for AMD GPUs this version leaves the arrays unchanged
    and copies through its own buffers. `pinned_array` allocates page-locked memory.
    """
    _check_host(arrays)
    yield


@contextmanager
def mapped(*arrays: HostArray, stream: StreamLike = None) -> Iterator[Any]:
    """A block in which kernels use *arrays* in place; its value is a device array, or a list of them for several.

    Raises `UnsupportedError` on an AMD GPU, as this version cannot map memory that it did not allocate: use
    `mapped_array`.
    """
    _check_host(arrays)
    device = current_device()
    if not device.is_cpu:
        raise UnsupportedError(f"{device} cannot map existing host memory in this version; make it with mapped_array")
    views = [_over(array, stream) for array in arrays]
    yield views[0] if len(views) == 1 else views


def _over(array: HostArray, stream: StreamLike) -> DeviceArray:
    layout = Layout(array.shape, array.strides, array.itemsize)
    first, end = layout.extent
    place = array.ctypes.data
    buffer = Buffer(place + first, end - first, owner=array)
    return DeviceArray(
        layout, array.dtype, buffer, device=current_device(), address=place, stream=stream,
        readonly=not array.flags.writeable,
    )  # fmt: skip


def as_device_array(obj: Any, sync: bool | None = None) -> DeviceArray:
    """*obj*, of any library with a CUDA array interface or DLPack, as a device array over the same memory.

    Work on a stream that the interface names is waited for, unless *sync* is false, or None and
    ``NUMBA_HIP_ARRAY_INTERFACE_SYNC`` is 0. `hip_runtime.errors.ArrayError`.
    """
    return hip_runtime.as_device_array(obj, synchronize=sync)


def from_cuda_array_interface(desc: dict[str, Any], owner: object = None, sync: bool | None = None) -> DeviceArray:
    """A device array over the memory that *desc*, a CUDA array interface, describes; *owner* is kept alive."""
    from hip_runtime.interop import from_interface

    return from_interface(desc, owner, synchronize=sync)


@contextmanager
def open_ipc_array(
    handle: bytes, shape: Any, dtype: Any, strides: Any = None, offset: int = 0
) -> Iterator[DeviceArray]:
    """A block with the array of another process behind *handle*; see `hip_runtime.ipc.open_ipc_array`."""
    array = _open_ipc_array(handle, shape, dtype, strides, offset)
    try:
        yield array
    finally:
        array.buffer.close()
