"""The type bfloat16: the upper half of a float32, with 8 bits of precision.

NumPy itself has no such type; the package ml_dtypes adds one, whose arrays and numbers kernels accept.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import models, register_model, typeof_impl

from hip_runtime.small_floats import find_dtype
from numba_hip._numba.typing import Conversion, add_dtype

SIGN_BIT, INFINITY, QUIET = 0x80000000, 0x7F800000, 0x40
"""Bits of a float32: its sign, infinity; and what makes a NaN of a bfloat16 quiet."""


class Bfloat16(types.Number):
    """The Numba type. In LLVM a value is a 16-bit integer with its bits, as llvmlite has no bfloat type."""

    bitwidth = 16

    def __init__(self) -> None:
        super().__init__("bfloat16")

    def can_convert_to(self, typing_context: Any, other: types.Type) -> Conversion | None:
        """Converts to float32 exactly, and to whatever float32 converts to."""
        if other == types.float32:
            return Conversion.promote
        if isinstance(other, (types.Float, types.Complex)) and other != types.float16:
            return Conversion.safe
        return Conversion.unsafe if isinstance(other, (types.Integer, types.Boolean, types.Float)) else None

    def can_convert_from(self, typing_context: Any, other: types.Type) -> Conversion | None:
        """Converts from all numbers that are not complex, with rounding."""
        if isinstance(other, types.Boolean):
            return Conversion.safe
        return Conversion.unsafe if isinstance(other, (types.Integer, types.Float)) else None

    def cast_python_value(self, value: Any) -> Any:
        """*value* as a number of ml_dtypes, rounded as in kernels: what calling the type gives on the host."""
        return np.uint16(bits_of(value)).view(find_dtype(self.name, "the type"))


bfloat16 = Bfloat16()


@register_model(Bfloat16)
class _Bfloat16Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Bfloat16) -> None:
        super().__init__(manager, kind, ir.IntType(16))


def unify(one: types.Type, other: types.Type) -> types.Type | None:
    """The common type of a bfloat16 and another number; None if the other type is not a number."""
    kind = other if isinstance(one, Bfloat16) else one
    if isinstance(kind, (Bfloat16, types.Boolean)):
        return bfloat16
    if isinstance(kind, types.Integer):
        return types.float64
    if isinstance(kind, types.Float):
        return types.float32 if kind == types.float16 else kind
    return kind if isinstance(kind, types.Complex) else None


def bits_of(value: Any) -> int:
    """The bits of *value*, a number of Python, NumPy or ml_dtypes, rounded to the nearest, halves to even."""
    if isinstance(value, np.generic) and is_bfloat16(value.dtype):
        return int(value.view(np.uint16))
    exact = np.float64(value)
    with np.errstate(over="ignore", under="ignore"):
        single = np.float32(exact)
    bits = int(single.view(np.uint32))
    if np.isnan(exact):
        return bits >> 16 | QUIET
    if single != exact and not bits & 1:  # the second rounding has to know that the first was inexact
        bits += 1 if abs(single) < abs(exact) else -1
    return bits + 0x7FFF + (bits >> 16 & 1) >> 16


def is_bfloat16(dtype: np.dtype[Any]) -> bool:
    """Whether *dtype* is that of ml_dtypes."""
    return dtype.kind == "V" and dtype.name == "bfloat16"


def know_ml_dtypes() -> None:
    """Register the dtypes and the numbers of ml_dtypes with Numba once ml_dtypes has been imported; before, there are
    none."""
    module = sys.modules.get("ml_dtypes")
    if module is None or module.bfloat16 in typeof_impl.registry:
        return
    add_dtype(np.dtype(module.bfloat16), bfloat16)
    typeof_impl.register(module.bfloat16)(lambda value, context: bfloat16)
    from numba_hip.float8 import know_float8  # which programs without ml_dtypes do not load

    know_float8()
