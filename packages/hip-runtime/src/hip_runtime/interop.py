"""Arrays of other libraries, by the CUDA array interface, and by DLPack for those that have only that.

Versions 0 to 3 are read, as https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html describes them.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from hip_runtime import config
from hip_runtime.array import DeviceArray
from hip_runtime.copying import check_dtype
from hip_runtime.device import Device, current_device
from hip_runtime.errors import ArrayError, ArrayStreamError, ArrayTypeError, InvalidHandleError, MaskedArrayError
from hip_runtime.foreign_arrays import (
    attribute,
    check_place,
    check_shape,
    host_array,
    shown,
    whole_number,
    whole_numbers,
)
from hip_runtime.layout import Layout, dense
from hip_runtime.memory import Buffer
from hip_runtime.protocols import INTERFACE
from hip_runtime.small_floats import dtype_of_typestr
from hip_runtime.stream import Stream

VERSIONS = range(4)
"""Versions of the interface that are understood."""

_OF = f"of {INTERFACE}"
_TYPESTR = r"[<>|=]?[A-Za-z?]([0-9]{0,10})(\[[0-9A-Za-z]+\])?"


OWN = "__hip_device_array__"
"""What arrays of the layers above that are in device memory give the `DeviceArray` over it by, on any device."""


def is_device_array(obj: object) -> bool:
    """Whether *obj* is an array in device memory: a `DeviceArray`, or anything with a CUDA array interface.

    `ArrayError` where the interface of *obj* is a property that raises, and it does not speak DLPack instead.
    """
    if type(obj) is np.ndarray:  # which most are that are asked about, and which has neither attribute
        return False
    return isinstance(obj, DeviceArray) or attribute(obj, OWN) is not None or _interface_of(obj) is not None


def _interface_of(obj: object) -> Any:
    """The CUDA array interface of *obj*, or ``None``.

    Libraries raise if it has no name for an element type that DLPack has, or rely on DLPack to report the reason.
    """
    try:
        return attribute(obj, INTERFACE)
    except ArrayError:
        if speaks_dlpack(obj):
            return None
        raise


def speaks_dlpack(obj: object) -> bool:
    """Whether *obj* is an array of another library that is passed on by DLPack; NumPy's are host arrays."""
    return not isinstance(obj, (np.ndarray, np.generic)) and attribute(obj, "__dlpack__") is not None


def as_device_array(obj: Any, *, device: Device | None = None, synchronize: bool | None = None) -> DeviceArray:
    """*obj* as a `DeviceArray` over the same memory, which keeps *obj* alive.

    *device* is where the memory is, by default the current device. Where the interface names a stream, its work is
    waited for, unless *synchronize* is false, or None and ``NUMBA_HIP_ARRAY_INTERFACE_SYNC`` is 0; copies of the array
    go to that stream. `ArrayError` for an interface that is malformed, describes what no memory holds, or has a mask.
    An object without this interface is asked for DLPack: see `hip_runtime.dlpack.from_dlpack`.
    """
    own = obj if isinstance(obj, DeviceArray) else attribute(obj, OWN)
    if isinstance(own, DeviceArray):
        return own
    interface = _interface_of(obj)
    if interface is None and speaks_dlpack(obj):
        from hip_runtime.dlpack import from_dlpack

        return from_dlpack(obj, device=device)
    if interface is None:
        raise ArrayTypeError(f"an object of type {type(obj).__name__} has no CUDA array interface, and no DLPack")
    return from_interface(interface, obj, device=device, synchronize=synchronize)


def host_source(obj: Any) -> np.ndarray[Any, Any]:
    """*obj*, in memory of the host, as an array of NumPy's: by DLPack where NumPy cannot read it, as with bfloat16."""
    try:
        return host_array(obj)
    except Exception:
        if not speaks_dlpack(obj):
            raise
        from hip_runtime.dlpack import host_from_dlpack

        return host_from_dlpack(obj)


def from_interface(
    interface: dict[str, Any], owner: object, *, device: Device | None = None, synchronize: bool | None = None
) -> DeviceArray:
    """A `DeviceArray` over the memory that *interface* describes; *owner* is kept alive. See `as_device_array`."""
    device = current_device() if device is None else device
    fields = _Fields(interface)
    fields.check_version()
    shape = whole_numbers(fields["shape"], "shape", _OF)
    check_shape(shape, _OF)
    address, readonly = fields.read_data()
    dtype = fields.read_dtype()
    layout = fields.read_layout(shape, dtype.itemsize)
    check_place(layout, address, "data[0]", _OF)
    if fields.get("mask") is not None:
        raise MaskedArrayError("Masked arrays are not supported: the CUDA array interface has a mask")
    stream = fields.read_stream(device, config.array_interface_sync() if synchronize is None else synchronize)
    first, end = layout.extent
    buffer = Buffer(address + first, end - first, owner=owner)
    return DeviceArray(layout, dtype, buffer, device=device, address=address, stream=stream, readonly=readonly)


class _Fields:
    """The fields of a CUDA array interface, each read with a check of its own."""

    def __init__(self, interface: object) -> None:
        if not isinstance(interface, dict):
            raise ArrayError(f"{INTERFACE} is {shown(interface)}, which is not a dictionary")
        try:
            self._fields = dict(interface)
        except Exception as error:  # raised by a subclass
            raise ArrayError(f"{INTERFACE} cannot be read: {shown(error)}") from error

    def __getitem__(self, field: str) -> Any:
        try:
            return self._fields[field]
        except KeyError:
            raise ArrayError(f"{INTERFACE} has no {field!r}") from None

    def get(self, field: str) -> Any:
        """The value of *field*, or ``None`` where there is none."""
        return self._fields.get(field)

    def check_version(self) -> None:
        """Raise an error for an interface of an unknown version, whose fields may mean anything."""
        version = whole_number(self["version"], f"version {_OF}")
        if version not in VERSIONS:
            known = f"{VERSIONS[0]} to {VERSIONS[-1]}"
            raise ArrayError(f"version {_OF} is {shown(version)}; versions {known} are supported")

    def read_data(self) -> tuple[int, bool]:
        """The address, and whether the memory is read-only."""
        data = self["data"]
        if not isinstance(data, (tuple, list)) or len(data) != 2:
            raise ArrayError(f"data {_OF} is {shown(data)}; it must be (address, read-only)")
        address, readonly = data
        if isinstance(address, (bool, np.bool_)) or not isinstance(readonly, (bool, np.bool_, int)):
            raise ArrayError(f"data {_OF} is {shown(data)}; it must be a whole number and a truth value")
        return whole_number(address, f"data[0] {_OF}"), bool(readonly)

    def read_dtype(self) -> np.dtype[Any]:
        """The type of elements that typestr names, or where that is plain bytes the one that descr describes."""
        typestr, descr = self["typestr"], self.get("descr")
        parts = re.fullmatch(_TYPESTR, typestr) if isinstance(typestr, str) else None
        if parts is None:
            raise ArrayError(f"typestr {_OF} is {shown(typestr)}, which is not a type of elements")
        small = dtype_of_typestr(typestr, descr)
        if small is not None:
            return small
        dtype = _make_dtype(typestr, "typestr", typestr)
        if parts[1] and int(parts[1]) != int(dtype.str[2:].partition("[")[0]):  # NumPy 1 truncates large numbers
            raise ArrayError(f"typestr {_OF} is {typestr!r}, which NumPy takes for {dtype.str!r}")
        if dtype.kind != "V" or descr is None:
            return dtype
        if not isinstance(descr, (tuple, list)):
            raise ArrayError(f"descr {_OF} is {shown(descr)}, which is not a list of fields")
        found = _make_dtype(descr, "descr", typestr)
        if found.itemsize != dtype.itemsize:
            raise ArrayError(f"descr {_OF} has {found.itemsize} bytes, typestr {typestr!r}")
        return found

    def read_layout(self, shape: tuple[int, ...], itemsize: int) -> Layout:
        """Where elements of *itemsize* bytes lie."""
        strides = self.get("strides")
        if strides is None:
            return dense(shape, itemsize)
        distances = whole_numbers(strides, "strides", _OF)
        if len(distances) != len(shape):
            raise ArrayError(
                f"strides {shown(distances)} {_OF} do not fit shape {shown(shape)}: one number of bytes for each axis"
            )
        return Layout(shape, distances, itemsize)

    def read_stream(self, device: Device, synchronize: bool) -> Stream | None:
        """The stream that is named, whose work is waited for where that is wanted."""
        stream, field = self.get("stream"), f"stream {_OF}"
        if stream is None:
            return None
        handle = 0 if isinstance(stream, (bool, np.bool_)) else whole_number(stream, field)
        if not 0 < handle < 1 << 64:
            raise ArrayError(f"{field} is {shown(stream)}; it must be None, or the number of a stream, 1 or more")
        try:
            if synchronize:
                device.driver.synchronize_stream(handle)
        except InvalidHandleError as error:
            raise ArrayStreamError(f"{field} is {handle}: {error}") from error
        return Stream(device, handle=handle)


def _make_dtype(described: Any, field: str, typestr: str) -> np.dtype[Any]:
    """NumPy's type for a typestr, or for a descr unless that says no more than *typestr*."""
    try:
        if isinstance(described, str) or list(described) == [("", typestr)]:
            return check_dtype(typestr)
        return check_dtype(np.lib.format.descr_to_dtype(list(described)))
    except ArrayError as error:
        raise ArrayError(f"{field} {_OF}: {error}") from None
    except Exception as error:  # whatever comparing, reading and converting such a list may raise
        raise ArrayError(
            f"{field} {_OF} is {shown(described)}, which is not a type of elements: {shown(error)}"
        ) from None
