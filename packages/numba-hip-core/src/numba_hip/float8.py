"""Floats of 8 bits, under the names that the package ml_dtypes has for them.

``float8_e4m3fn`` and ``float8_e5m2`` are those of the Open Compute Project, as HIP's ``__hip_fp8_e4m3`` and
``__hip_fp8_e5m2``; the two that end in ``fnuz`` have neither infinities nor a negative zero, and are what gfx942
computes with.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import models, register_model, typeof_impl

from hip_runtime.small_floats import find_dtype
from numba_hip._numba.typing import Conversion, add_dtype

__all__ = ["FLOAT8", "Float8", "bits_of", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"]


class Float8(types.Number):
    """The Numba type of one of the formats. In LLVM a value is an 8-bit integer with its bits."""

    bitwidth = 8

    def __init__(self, name: str, fraction: int, bias: int, *, largest: int, overflow: int, nan: int) -> None:
        super().__init__(name)
        self.fraction, self.bias = fraction, bias
        """The bits of the fraction, and what is subtracted from the exponent."""
        self.largest, self.overflow, self.nan = largest, overflow, nan
        """The bits of the largest number, of what is larger where it does not saturate, and of NaN."""

    @property
    def unsigned_zero(self) -> bool:
        """Whether the bits of -0 mean NaN."""
        return self.nan == 0x80

    @property
    def limit(self) -> float:
        """The largest number."""
        return _number(self, self.largest)

    @property
    def reach(self) -> float:
        """Up to here numbers are rounded to one of these; beyond, they are cut to the largest."""
        return self.limit + (self.limit - _number(self, self.largest - 1)) / 2

    def can_convert_to(self, typing_context: Any, other: types.Type) -> Conversion | None:
        """Converts to float32 exactly, and to whatever float32 converts to."""
        if other == types.float32:
            return Conversion.promote
        if isinstance(other, (types.Float, types.Complex)) and other != types.float16:
            return Conversion.safe
        return Conversion.unsafe if isinstance(other, (types.Integer, types.Boolean, types.Float, Float8)) else None

    def can_convert_from(self, typing_context: Any, other: types.Type) -> Conversion | None:
        """Converts from all numbers that are not complex, with rounding."""
        if isinstance(other, types.Boolean):
            return Conversion.safe
        return Conversion.unsafe if isinstance(other, (types.Integer, types.Float, Float8)) else None

    def cast_python_value(self, value: Any) -> Any:
        """*value* as a number of ml_dtypes, rounded as in kernels: what calling the type gives on the host."""
        return np.uint8(bits_of(value, self)).view(find_dtype(self.name, "the type"))


float8_e4m3fn = Float8("float8_e4m3fn", 3, 7, largest=0x7E, overflow=0x7F, nan=0x7F)
float8_e4m3fnuz = Float8("float8_e4m3fnuz", 3, 8, largest=0x7F, overflow=0x80, nan=0x80)
float8_e5m2 = Float8("float8_e5m2", 2, 15, largest=0x7B, overflow=0x7C, nan=0x7E)
float8_e5m2fnuz = Float8("float8_e5m2fnuz", 2, 16, largest=0x7F, overflow=0x80, nan=0x80)

FLOAT8 = {kind.name: kind for kind in (float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz)}
"""The types by their names."""


@register_model(Float8)
class _Float8Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Float8) -> None:
        super().__init__(manager, kind, ir.IntType(8))


def bits_of(value: Any, kind: Float8) -> int:
    """The bits of *value*, a number of Python, NumPy or ml_dtypes, rounded to the nearest, halves to even, and to the
    largest number where it is larger."""
    if isinstance(value, np.generic) and value.dtype.name == kind.name:
        return int(value.view(np.uint8))
    number = float(value)
    if math.isnan(number):
        return kind.nan
    size = abs(number)
    negative = math.copysign(1.0, number) < 0
    if size == 0 or size >= kind.limit:
        bits = kind.largest if size else 0
    else:
        exponent = max(math.frexp(size)[1] - 1, 1 - kind.bias)
        steps = round(size * 2.0 ** (kind.fraction - exponent))  # whole ones, ties to even
        bits = steps + (exponent + kind.bias - 1 << kind.fraction)
    return bits | (negative and (bits != 0 or not kind.unsigned_zero)) << 7


def _number(kind: Float8, bits: int) -> float:
    """The positive number with *bits*, neither NaN nor infinite."""
    exponent, steps = bits >> kind.fraction, bits & ((1 << kind.fraction) - 1)
    whole = steps + ((1 << kind.fraction) if exponent else 0)
    return math.ldexp(whole, max(exponent, 1) - kind.bias - kind.fraction)


def know_float8() -> None:
    """Register the dtypes and the numbers of ml_dtypes with Numba, if ml_dtypes has been imported."""
    module = sys.modules.get("ml_dtypes")
    for name, kind in FLOAT8.items():
        known = getattr(module, name, None)
        if known is not None and known not in typeof_impl.registry:
            add_dtype(np.dtype(known), kind)
            typeof_impl.register(known)(lambda value, context, kind=kind: kind)
