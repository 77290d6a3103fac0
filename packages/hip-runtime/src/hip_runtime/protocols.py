"""The protocols by which other libraries use a device array: NumPy's, DLPack, Arrow, the CUDA array interface,
copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from hip_runtime import config
from hip_runtime.copying import HostArray
from hip_runtime.device import current_device, devices
from hip_runtime.errors import ArrayError
from hip_runtime.host_view import view_memory
from hip_runtime.small_floats import describe_bytes, is_of_ml_dtypes
from hip_runtime.stream_handle import stream_handle

if TYPE_CHECKING:
    from hip_runtime.array import DeviceArray

INTERFACE = "__cuda_array_interface__"


def _whole(array: ArrayProtocols) -> DeviceArray:
    """*array* with its actual type: only `DeviceArray` has these protocols."""
    return cast("DeviceArray", array)


class ArrayProtocols:
    """The part of `DeviceArray` for other libraries."""

    __slots__ = ()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """See `array_interface`. Arrays of the CPU device have none, unless the setting `config.cpu_array_interface` is
        on: other libraries would take it for GPU memory."""
        if _whole(self).device.is_cpu and not config.cpu_array_interface():
            raise AttributeError(
                f"{INTERFACE}: an array of the CPU device is in host memory, which libraries can use by DLPack or "
                f"__array__; {config.cpu_array_interface.variable}=1 provides this interface anyway"
            )
        return array_interface(_whole(self))

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """A DLPack capsule over the same memory; see `hip_runtime.dlpack.to_capsule`."""
        from hip_runtime.dlpack import to_capsule

        expose(_whole(self))
        return to_capsule(_whole(self), stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        from hip_runtime.dlpack import device_of

        return device_of(_whole(self))

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """A copy for libraries that speak Arrow; see `hip_runtime.arrow.to_capsules`."""
        from hip_runtime.arrow import to_capsules

        del requested_schema  # Arrow's requested schema is only a wish; the consumer converts
        return to_capsules(_whole(self).copy_to_host())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> HostArray:
        """A copy in memory of the host, or with ``copy=False`` the memory of the CPU device itself."""
        if copy is False:
            return _view_on_host(_whole(self), dtype)
        host: HostArray = _whole(self).copy_to_host()
        return host if dtype is None else host.astype(dtype, copy=False)

    def __sizeof__(self) -> int:
        """Bytes of this object and of its elements, also where they are another array's: schedulers ask for that."""
        return object.__sizeof__(self) + _whole(self).nbytes

    def __copy__(self) -> DeviceArray:
        """A copy on the same device, as NumPy's arrays do it, not a view."""
        array = _whole(self)
        return array.copy("F" if array.is_f_contiguous() and not array.is_c_contiguous() else "C")

    def __deepcopy__(self, memo: dict[int, Any]) -> DeviceArray:
        del memo
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles a host copy: an unpickled array has its own memory."""
        return restore, (_whole(self).copy_to_host(), _whole(self).device.id)


def restore(host: HostArray, number: int) -> DeviceArray:
    """*host* on the device with that *number* if there is one, otherwise on the current device: unpickling."""
    from hip_runtime.arrays import to_device

    known = devices()
    return to_device(host, device=known[number] if number < len(known) else current_device())


def array_interface(array: DeviceArray) -> dict[str, Any]:
    """The CUDA array interface of *array*, version 3:
    https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html"""
    stream = stream_handle(array.stream)
    expose(array)
    interface = {
        "version": 3,
        "shape": array.shape,
        "strides": None if array.is_c_contiguous() else array.strides,
        "typestr": array.dtype.str,
        "data": (array.address if array.size else 0, array.readonly),
        "stream": stream or None,
    }
    if is_of_ml_dtypes(array.dtype):
        interface |= describe_bytes(array.dtype)
    elif array.dtype.names is not None:
        interface["descr"] = np.lib.format.dtype_to_descr(array.dtype)
    return interface


def expose(array: DeviceArray) -> None:
    """Notify a driver that tracks writes that others may write to the memory of *array* from now on."""
    tell = getattr(array.device.driver, "expose", None)
    if tell is not None:
        tell(array.address)


def _view_on_host(array: DeviceArray, dtype: Any) -> HostArray:
    if not array.device.is_cpu or config.cpu_array_interface():
        raise ArrayError("`copy=False` is not possible: a NumPy array needs a copy of GPU memory")
    if dtype is not None and np.dtype(dtype) != array.dtype:
        raise ArrayError(f"`copy=False` is not possible: converting {array.dtype} to {dtype} needs a copy")
    array.device.driver.synchronize_stream(stream_handle(array.stream))
    expose(array)
    return view_memory(array.layout, array.dtype, array.buffer, array.address, readonly=array.readonly)
