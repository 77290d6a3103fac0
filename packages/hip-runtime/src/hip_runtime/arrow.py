"""Exports arrays to libraries with Arrow's interface, such as polars and pyarrow: columns, by capsules of
``__arrow_c_array__``.

Layouts of the structures: https://arrow.apache.org/docs/format/CDataInterface.html; names of the capsules:
https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html. What Arrow holds never changes, and so a
column is a copy of the array.
"""

from __future__ import annotations

import ctypes
from functools import cache
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from hip_runtime import capsules
from hip_runtime.copying import HostArray
from hip_runtime.errors import ArrayError

if TYPE_CHECKING:
    from hip_runtime.drivers.cpu.c_callbacks import Callback

FORMATS = {
    "?": "b", "i1": "c", "u1": "C", "i2": "s", "u2": "S", "i4": "i", "u4": "I", "i8": "l", "u8": "L",
    "f2": "e", "f4": "f", "f8": "g",
    **{f"M8[{unit}]": f"ts{unit[0]}:" for unit in ("s", "ms", "us", "ns")},
    **{f"m8[{unit}]": f"tD{unit[0]}" for unit in ("s", "ms", "us", "ns")},
}  # fmt: skip
"""Arrow's format strings of NumPy's types."""

_SCHEMA, _ARRAY = b"arrow_schema", b"arrow_array"
_NULLABLE = 2


class _Schema(ctypes.Structure):
    """ArrowSchema."""

    _fields_ = [
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    ]


class _Array(ctypes.Structure):
    """ArrowArray."""

    _fields_ = [
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", ctypes.POINTER(ctypes.c_void_p)),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    ]


_numbers = count(1)
_contents: dict[int, object] = {}
"""What the structures point to, by the number in ``private_data``: whoever takes a structure copies it elsewhere."""
_structures: dict[int, _Schema | _Array] = {}
"""The structures in capsules, by their addresses."""


def to_capsules(host: HostArray) -> tuple[object, object]:
    """The type and the contents of *host*, which must not change afterwards, as two capsules.

    Raises `ArrayError` unless there is one axis, and for elements that Arrow does not support: complex numbers,
    records, bytes in another order than the machine's.
    """
    name = "?" if host.dtype.kind == "b" else host.dtype.str[1:]
    if host.ndim != 1:
        raise ArrayError(
            f"an Arrow column has one axis, and the array has {host.ndim}: pass its columns one by one, or "
            "np.asarray(array)"
        )
    if name not in FORMATS or not host.dtype.isnative:
        raise ArrayError(f"Arrow has no elements of type {host.dtype}: convert them first")
    missing = np.isnat(host) if host.dtype.kind in "mM" else np.zeros(0, bool)
    values = np.packbits(host, bitorder="little") if host.dtype.kind == "b" else np.ascontiguousarray(host)
    valid = np.packbits(~missing, bitorder="little") if missing.any() else None
    buffers = (ctypes.c_void_p * 2)(None if valid is None else valid.ctypes.data, values.ctypes.data)
    spelled, unnamed = FORMATS[name].encode(), b""
    schema = _Schema(spelled, unnamed, None, _NULLABLE)
    array = _Array(len(host), int(missing.sum()), 0, 2, 0, buffers)
    return _wrap(schema, (spelled, unnamed)), _wrap(array, (values, valid, buffers))


def _wrap(structure: _Schema | _Array, contents: object) -> object:
    """A capsule of *structure*, which points to *contents*."""
    release_schema, release_array, destroy = (callback.address for callback in _callbacks())
    is_schema = isinstance(structure, _Schema)
    structure.release = release_schema if is_schema else release_array
    structure.private_data = next(_numbers)
    address = ctypes.addressof(structure)
    _structures[address] = structure
    _contents[structure.private_data] = contents
    return capsules.new_capsule(address, _SCHEMA if is_schema else _ARRAY, destroy)


def _release(structure: _Schema | _Array) -> None:
    """Called when *structure* is no longer used, which may be a copy of ours."""
    _contents.pop(structure.private_data, None)
    structure.release = None


def _release_schema(address: int) -> None:
    _release(_Schema.from_address(address))


def _release_array(address: int) -> None:
    _release(_Array.from_address(address))


def _destroy(capsule: int) -> None:
    """The destructor of a capsule: releases its structure, unless a consumer took it."""
    for name in (_SCHEMA, _ARRAY):
        if capsules.is_valid_raw(capsule, name):
            structure = _structures.pop(capsules.pointer_raw(capsule, name))
            if structure.release:
                _release(structure)


@cache
def _callbacks() -> tuple[Callback, Callback, Callback]:
    """The callbacks for C code: `_release_schema`, `_release_array` and `_destroy`."""
    from hip_runtime.drivers.cpu.c_callbacks import Callback

    return Callback(_release_schema), Callback(_release_array), Callback(_destroy)
