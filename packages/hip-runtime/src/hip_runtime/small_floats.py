"""The element types that the package ml_dtypes adds to NumPy: bfloat16 and the 8-bit floats.

DLPack has a code for each of them (``dlpack.h`` of version 1.1). The array interface has no names for them: bfloat16 is
``<V2`` in PyTorch and ml_dtypes, float8_e5m2 is ``<f1`` in the latter, and all others are bytes there. Our descr has
one field with the name of the type.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from hip_runtime.errors import ArrayError

CODES = {
    "bfloat16": 4, "float8_e3m4": 7, "float8_e4m3": 8, "float8_e4m3b11fnuz": 9, "float8_e4m3fn": 10,
    "float8_e4m3fnuz": 11, "float8_e5m2": 12, "float8_e5m2fnuz": 13, "float8_e8m0fnu": 14,
}  # fmt: skip
"""DLPack's codes of the types, by their names."""

NAMES = {code: name for name, code in CODES.items()}

TYPESTRS = {"<V2": "bfloat16", "<f1": "float8_e5m2"}
"""What array interfaces call some of them, and NumPy alone does not understand so."""


def is_of_ml_dtypes(dtype: np.dtype[Any]) -> bool:
    """Whether *dtype* is one of that package: these, and numbers of fewer than 8 bits."""
    return dtype.type.__module__.partition(".")[0] == "ml_dtypes"


def find_dtype(name: str, field: str) -> np.dtype[Any]:
    """NumPy's type of the elements *name*, as *field* says; `ArrayError` where ml_dtypes is missing or too old."""
    kind = _find_type(name)
    if kind is None:
        raise ArrayError(
            f"{field} is {name}, for which NumPy needs the package ml_dtypes, in a release that has this type: install "
            "or upgrade ml_dtypes"
        )
    return kind


def dtype_of_typestr(typestr: str, descr: Any) -> np.dtype[Any] | None:
    """The type that an array interface with *typestr* and *descr* means, if it is one of these and can be had."""
    name = TYPESTRS.get(typestr)
    if name is None and typestr[1:] == "V1" and isinstance(descr, (list, tuple)) and len(descr) == 1:
        field = descr[0]
        name = field[0] if isinstance(field, tuple) and field and isinstance(field[0], str) else None
    return _find_type(name) if name in CODES else None


def describe_bytes(dtype: np.dtype[Any]) -> dict[str, Any]:
    """The fields of an array interface that tell elements of *dtype*, of ml_dtypes, from bytes."""
    if dtype.name == "bfloat16":
        return {"typestr": "<V2"}
    return {"typestr": f"<V{dtype.itemsize}", "descr": [(dtype.name, f"|V{dtype.itemsize}")]}


def _find_type(name: str | None) -> np.dtype[Any] | None:
    try:
        module = importlib.import_module("ml_dtypes")
    except ImportError:
        return None
    kind = getattr(module, str(name), None)
    return None if kind is None else np.dtype(kind)
