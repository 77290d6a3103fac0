"""Arrays of other libraries, by DLPack: capsules of version 1 and the older ones without a version, in both directions.

Layouts of the structures and numbers of devices and types: ``dlpack.h`` of DLPack 1.1,
https://dmlc.github.io/dlpack/latest/c_api.html. The Python side is that of the array API standard,
https://data-apis.org/array-api/latest/design_topics/data_interchange.html.
"""

from __future__ import annotations

import ctypes
import weakref
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hip_runtime import capsules
from hip_runtime.array import DeviceArray
from hip_runtime.copying import HostArray
from hip_runtime.device import Device, current_device
from hip_runtime.driver import MemoryKind
from hip_runtime.errors import ArrayError
from hip_runtime.foreign_arrays import MAX_NDIM, attribute, check_place, check_shape, shown, whole_numbers
from hip_runtime.host_view import view_memory
from hip_runtime.layout import Layout, dense
from hip_runtime.memory import Buffer
from hip_runtime.small_floats import CODES, NAMES, find_dtype, is_of_ml_dtypes
from hip_runtime.stream_handle import stream_handle

if TYPE_CHECKING:
    from hip_runtime.drivers.cpu.c_callbacks import Callback

CPU, ROCM, ROCM_HOST = 1, 10, 11
"""Types of devices; memory of the CPU device is host memory, and that is what other libraries know it as."""

VERSION = (1, 0)
READ_ONLY, IS_COPIED = 1, 2
NO_SYNCHRONISATION = -1

_LEGACY, _VERSIONED = b"dltensor", b"dltensor_versioned"
_USED = {_LEGACY: b"used_dltensor", _VERSIONED: b"used_dltensor_versioned"}
_KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_KIND_OF_CODE = {code: kind for kind, code in _KINDS.items()}
_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _ManagedVersioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


IMMUTABLE = frozenset({"jax", "jaxlib", "tensorflow"})
"""Packages whose arrays never change, and that give capsules without a version, which cannot say so."""

_exported: dict[int, tuple[Any, ...]] = {}
"""What tensors that others hold keep alive, by the address of the structure."""


def _delete(address: int) -> None:
    """The deleter: the tensor is no longer used."""
    _exported.pop(address, None)


def _destroy(capsule: int) -> None:
    """The destructor of a capsule: deletes its tensor, unless a consumer took it."""
    for name in (_LEGACY, _VERSIONED):
        if capsules.is_valid_raw(capsule, name):
            _exported.pop(capsules.pointer_raw(capsule, name), None)


@cache
def _callbacks() -> tuple[Callback, Callback]:
    """The callbacks for C code: `_delete` and `_destroy`. It often calls them while an exception is being raised."""
    from hip_runtime.drivers.cpu.c_callbacks import Callback

    return Callback(_delete), Callback(_destroy)


def device_of(array: DeviceArray) -> tuple[int, int]:
    """DLPack's device type and number for *array*."""
    if array.device.is_cpu:
        return CPU, 0
    host = array.buffer.kind in (MemoryKind.PINNED, MemoryKind.MAPPED)
    return ROCM_HOST if host else ROCM, array.device.ordinal


def to_capsule(
    array: DeviceArray,
    *,
    stream: int | None = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> object:
    """*array* as a capsule, for its ``__dlpack__``; it shares the memory, unless *copy* is true.

    Work on the array's stream is completed first, unless *stream* is -1. Raises `BufferError` for what DLPack cannot
    express: structured elements, strides that are not multiples of an element, memory on another device, and a
    read-only array in a capsule without a version.
    """
    if dl_device is not None and tuple(dl_device) != device_of(array):
        raise BufferError(f"the array is on DLPack device {device_of(array)}, not on {tuple(dl_device)}")
    versioned = max_version is not None and max_version[0] >= VERSION[0]
    if array.readonly and not versioned and not copy:
        raise BufferError("a read-only array needs a DLPack capsule of version 1.0 (max_version=(1, 0)), or copy=True")
    given = array.copy() if copy else array
    tensor, kept = _describe(given)
    if stream != NO_SYNCHRONISATION:
        array.device.driver.synchronize_stream(stream_handle(array.stream))
    deleter, destructor = (callback.address for callback in _callbacks())
    managed: _Managed | _ManagedVersioned
    if versioned:
        flags = (READ_ONLY if given.readonly else 0) | (IS_COPIED if copy else 0)
        managed = _ManagedVersioned(*VERSION, None, deleter, flags, tensor)
    else:
        managed = _Managed(tensor, None, deleter)
    address = ctypes.addressof(managed)
    _exported[address] = (managed, given, *kept)
    return capsules.new_capsule(address, _VERSIONED if versioned else _LEGACY, destructor)


def _describe(array: DeviceArray) -> tuple[_Tensor, tuple[Any, ...]]:
    """The tensor, and the arrays of numbers that it points to."""
    itemsize = array.itemsize
    code = _code_of(array.dtype)
    if any(stride % itemsize for stride in array.strides):
        raise BufferError(f"DLPack has no strides of {array.strides} bytes with elements of {itemsize} bytes")
    numbers = ctypes.c_int64 * max(array.ndim, 1)
    shape, strides = numbers(*array.shape), numbers(*(stride // itemsize for stride in array.strides))
    place = array.address if array.size else None
    tensor = _Tensor(place, *device_of(array), array.ndim, code, 8 * itemsize, 1, shape, strides, 0)
    return tensor, (shape, strides)


def _code_of(dtype: np.dtype[Any]) -> int:
    """DLPack's code of the elements' type."""
    known = CODES.get(dtype.name) if is_of_ml_dtypes(dtype) else _KINDS.get(dtype.kind)
    if known is None or not dtype.isnative:
        raise BufferError(f"DLPack has no elements of type {dtype}")
    return known


class _Borrowed:
    """A tensor of another library: notifies its owner when it is no longer used here."""

    def __init__(self, address: int, deleter: int | None) -> None:
        if deleter:
            weakref.finalize(self, _DELETER(deleter), address).atexit = False


def from_dlpack(obj: Any, *, device: Device | None = None) -> DeviceArray:
    """The array behind ``obj.__dlpack__`` as a `DeviceArray` over the same memory, which is kept alive.

    *device* is where the memory has to be, by default the current device; the CPU device accepts host memory. Raises
    `ArrayError` for memory elsewhere, for elements that device arrays do not support, and for an impossible tensor, and
    whatever the two methods of *obj* raise.
    """
    device = current_device() if device is None else device
    found, give = attribute(obj, "__dlpack_device__"), attribute(obj, "__dlpack__")
    if found is None or give is None:
        raise ArrayError(f"an object of type {type(obj).__name__} does not support DLPack")
    where = whole_numbers(found(), "__dlpack_device__()", f"of {type(obj).__name__}")
    possible = {(CPU, 0)} if device.is_cpu else {(ROCM, device.ordinal), (ROCM_HOST, device.ordinal)}
    if where not in possible:
        raise ArrayError(
            f"the array is on DLPack device {shown(where)}; {device} takes {sorted(possible)}: copy it there"
        )
    taken = _take(_ask(give, {} if device.is_cpu else {"stream": 0}), where[0], type(obj))
    return DeviceArray(
        taken.layout, taken.dtype, taken.buffer, device=device, address=taken.place, readonly=taken.readonly
    )


def host_from_dlpack(obj: Any) -> HostArray:
    """The array behind ``obj.__dlpack__``, which is in host memory, as a NumPy array over the same memory.

    `ArrayError` as `from_dlpack`.
    """
    found, give = attribute(obj, "__dlpack_device__"), attribute(obj, "__dlpack__")
    name = type(obj).__name__
    where = None if found is None else whole_numbers(found(), "__dlpack_device__()", f"of {name}")
    if where != (CPU, 0):
        raise ArrayError(f"an array of type {name} is on DLPack device {shown(where)}, not in memory of the host")
    taken = _take(_ask(give, {}), CPU, type(obj))
    return view_memory(taken.layout, taken.dtype, taken.buffer, taken.place, readonly=taken.readonly)


def _ask(give: Any, stream: dict[str, int]) -> object:
    """The capsule that ``__dlpack__`` returns."""
    try:
        return give(max_version=VERSION, **stream)
    except TypeError:  # the structure without a version
        return give(**stream)


class _Taken(NamedTuple):
    """An array of another library; the buffer keeps it alive."""

    layout: Layout
    dtype: np.dtype[Any]
    buffer: Buffer
    place: int
    readonly: bool


def _take(capsule: object, kind: int, giver: type) -> _Taken:
    """The array in *capsule*, which is left to its maker if it is rejected; *kind* is the type of its device."""
    owner = giver.__name__
    name = next((name for name in _USED if capsules.is_valid(capsule, name)), None)
    if name is None:
        raise ArrayError(f"__dlpack__ of {owner} gave {shown(capsule)}, which is not an unused DLPack capsule")
    address = capsules.pointer(capsule, name)
    managed = (_ManagedVersioned if name == _VERSIONED else _Managed).from_address(address)
    if isinstance(managed, _ManagedVersioned) and managed.major != VERSION[0]:
        raise ArrayError(f"__dlpack__ of {owner} gave version {managed.major}.{managed.minor}; only 1.x is supported")
    of = f"of the DLPack tensor of {owner}"
    if managed.tensor.device_type != kind:
        raise ArrayError(f"device_type {of} is {managed.tensor.device_type}; __dlpack_device__() says {kind}")
    layout, dtype, place = _read(managed.tensor, of)
    capsules.rename(capsule, _USED[name])  # from here on we have to release it
    borrowed = _Borrowed(address, managed.deleter)
    first, end = layout.extent
    buffer = Buffer(place + first, end - first, owner=borrowed)
    if isinstance(managed, _ManagedVersioned):
        readonly = bool(managed.flags & READ_ONLY)
    else:
        readonly = giver.__module__.partition(".")[0] in IMMUTABLE
    return _Taken(layout, dtype, buffer, place, readonly)


def _read(tensor: _Tensor, of: str) -> tuple[Layout, np.dtype[Any], int]:
    """Layout, type and address of *tensor*; *of* ends the names of its fields in messages."""
    dtype = _read_dtype(tensor, of)
    if not 0 <= tensor.ndim <= MAX_NDIM:
        raise ArrayError(f"ndim {of} is {tensor.ndim}; an array has 0 to {MAX_NDIM} axes")
    if tensor.ndim and not tensor.shape:
        raise ArrayError(f"shape {of} is a null pointer; ndim is {tensor.ndim}")
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    check_shape(shape, of)
    if tensor.strides:
        strides = tuple(tensor.strides[axis] * dtype.itemsize for axis in range(tensor.ndim))
        layout = Layout(shape, strides, dtype.itemsize)
    else:
        layout = dense(shape, dtype.itemsize)
    if layout.size and not tensor.data:
        raise ArrayError(f"data {of} is a null pointer for {layout.size} elements, shape {shown(shape)}")
    place = tensor.data + tensor.byte_offset if tensor.data else 0
    check_place(layout, place, "data + byte_offset", of)
    return layout, dtype, place


def _read_dtype(tensor: _Tensor, of: str) -> np.dtype[Any]:
    kind, itemsize = _KIND_OF_CODE.get(tensor.code), tensor.bits // 8
    small = NAMES.get(tensor.code)
    if small is not None and tensor.lanes == 1 and tensor.bits == (16 if small == "bfloat16" else 8):
        return find_dtype(small, f"dtype {of}")
    try:
        if kind is None or tensor.lanes != 1 or tensor.bits % 8:
            raise TypeError
        dtype = np.dtype(f"{kind}{itemsize}")
        if dtype.itemsize != itemsize or not itemsize:
            raise TypeError
    except TypeError:
        raise ArrayError(
            f"dtype {of} is code {tensor.code}, {tensor.bits} bits and {tensor.lanes} lanes, which NumPy does not have"
        ) from None
    return dtype
