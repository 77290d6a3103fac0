"""Arrays of other libraries, by the CUDA array interface, and by DLPack for those that have only that.

Versions 0 to 3 are read, as https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html describes them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hip_runtime import config
from hip_runtime.array import DeviceArray
from hip_runtime.copying import check_dtype
from hip_runtime.device import Device, current_device
from hip_runtime.errors import ArrayError, MaskedArrayError
from hip_runtime.layout import Layout, dense, normalise_shape
from hip_runtime.memory import Buffer
from hip_runtime.stream import Stream


def is_device_array(obj: object) -> bool:
    """Whether *obj* is an array in device memory: a `DeviceArray`, or anything with a CUDA array interface."""
    return isinstance(obj, DeviceArray) or hasattr(obj, "__cuda_array_interface__")


def speaks_dlpack(obj: object) -> bool:
    """Whether *obj* is an array of another library that is passed on by DLPack; NumPy's are host arrays."""
    return hasattr(obj, "__dlpack__") and not isinstance(obj, (np.ndarray, np.generic))


def as_device_array(obj: Any, *, device: Device | None = None, synchronize: bool | None = None) -> DeviceArray:
    """*obj* as a `DeviceArray` over the same memory, which keeps *obj* alive.

    *device* is where the memory is, by default the current device. Where the interface names a stream, its work is
    waited for, unless *synchronize* is false, or None and ``NUMBA_HIP_ARRAY_INTERFACE_SYNC`` is 0; copies of the array
    go to that stream. `ArrayError` for an interface that is malformed or has a mask. An object
    without this interface is asked for DLPack: see `hip_runtime.dlpack.from_dlpack`.
    """
    if isinstance(obj, DeviceArray):
        return obj
    interface = getattr(obj, "__cuda_array_interface__", None)
    if interface is None and speaks_dlpack(obj):
        from hip_runtime.dlpack import from_dlpack

        return from_dlpack(obj, device=device)
    if not isinstance(interface, dict):
        raise ArrayError(f"an object of type {type(obj).__name__} has no CUDA array interface, and no DLPack")
    return from_interface(interface, obj, device=device, synchronize=synchronize)


def from_interface(
    interface: dict[str, Any], owner: object, *, device: Device | None = None, synchronize: bool | None = None
) -> DeviceArray:
    """A `DeviceArray` over the memory that *interface* describes; *owner* is kept alive. See `as_device_array`."""
    device = current_device() if device is None else device
    try:
        shape = normalise_shape(interface["shape"])
        address, readonly = interface["data"]
        dtype = _read_dtype(interface)
        strides = interface.get("strides")
    except (KeyError, TypeError, ValueError) as error:
        raise ArrayError(f"malformed CUDA array interface: {type(error).__name__}: {error}") from None
    if interface.get("mask") is not None:
        raise MaskedArrayError("Masked arrays are not supported: the CUDA array interface has a mask")
    layout = _read_layout(shape, strides, dtype.itemsize)
    if not address and layout.size:
        raise ArrayError(f"the CUDA array interface has address 0 for {layout.size} elements")
    stream = _stream_of(interface, device, config.array_interface_sync() if synchronize is None else synchronize)
    first, end = layout.extent
    buffer = Buffer(int(address or 0) + first, end - first, owner=owner)
    return DeviceArray(
        layout, dtype, buffer, device=device, address=int(address or 0), stream=stream, readonly=bool(readonly)
    )


def _read_dtype(interface: dict[str, Any]) -> np.dtype[Any]:
    typestr, descr = interface["typestr"], interface.get("descr")
    if not isinstance(typestr, str):
        raise TypeError(f"typestr must be text, not {typestr!r}")
    if typestr[1:2] == "V" and descr and list(descr) != [("", typestr)]:
        dtype = np.lib.format.descr_to_dtype(list(descr))
        if dtype.itemsize != np.dtype(typestr).itemsize:
            raise ValueError(f"descr has {dtype.itemsize} bytes, typestr {typestr!r}")
        return check_dtype(dtype)
    return check_dtype(typestr)


def _read_layout(shape: tuple[int, ...], strides: Any, itemsize: int) -> Layout:
    if strides is None:
        return dense(shape, itemsize)
    if not isinstance(strides, tuple) or len(strides) != len(shape) or not all(isinstance(s, int) for s in strides):
        raise ArrayError(f"strides {strides!r} do not fit shape {shape}: one whole number of bytes for each axis")
    return Layout(shape, strides, itemsize)


def _stream_of(interface: dict[str, Any], device: Device, synchronize: bool) -> Stream | None:
    """The stream that the interface names, whose work is waited for where that is wanted."""
    stream = interface.get("stream")
    if stream is None:
        return None
    if not isinstance(stream, int) or isinstance(stream, bool) or stream == 0:
        raise ArrayError(f"the CUDA array interface has stream {stream!r}; it must be None, or a number other than 0")
    if synchronize:
        device.driver.synchronize_stream(stream)
    return Stream(device, handle=stream)
