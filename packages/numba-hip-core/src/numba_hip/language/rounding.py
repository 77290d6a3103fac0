"""``round(x, ndigits)``, as in Python: to the nearest number with that many digits, halves to even.

The product with a power of ten is rounded itself, and so can be halfway between two integers although the exact one is
not; then its rounding error, which a fused operation gives exactly, decides. A float32 is rounded as a float64. With
more than 22 digits, which only tiny numbers can lose, the result can be off by a few units in the last place.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import signature
from numba.extending import register_jitable

from numba_hip.language.bits import fma
from numba_hip.language.registry import lowering

EXACT = 22
"""Powers of ten up to this one are float64 numbers."""

POWERS = np.array([10.0**exponent for exponent in range(309)])

LARGEST = 2.0**53
"""From here on the digits that would be rounded off are below those that a float64 has."""


@register_jitable
def _round_to_nearest(scaled, rest):  # type: ignore[no-untyped-def]
    """The integer nearest to *scaled* + *rest*; *rest* is the rounding error of *scaled*."""
    nearest = np.rint(scaled)
    if abs(scaled - nearest) == 0.5 and rest != 0:
        nearest = math.floor(scaled) + (1.0 if rest > 0 else 0.0)
    return nearest


def _round_digits(x: float, digits: int) -> float:
    if math.isinf(x) or math.isnan(x) or x == 0 or digits > 323:
        return x
    if digits < -308:
        return math.copysign(0.0, x)
    if digits > EXACT:  # a number with digits to lose is small: two factors, neither of which overflows
        first, second = POWERS[digits - EXACT], POWERS[EXACT]
        scaled = x * first * second
        return x if abs(scaled) >= LARGEST else np.rint(scaled) / second / first
    if digits >= 0:
        power = POWERS[digits]
        scaled = x * power
        if abs(scaled) >= LARGEST:
            return x
        return math.copysign(_round_to_nearest(scaled, fma(x, power, -scaled)) / power, x)
    power = POWERS[-digits]
    scaled = x / power
    if abs(scaled) >= LARGEST:
        return x
    rest = fma(-scaled, power, x) if digits >= -EXACT else 0.0
    return math.copysign(_round_to_nearest(scaled, rest) * power, x)


def _lower(kind: types.Float) -> None:
    @lowering.lower(round, kind, types.Integer)
    def _round(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        wide = types.float64
        value = context.cast(builder, args[0], kind, wide)
        digits = context.cast(builder, args[1], sig.args[1], types.int64)
        rounded = context.compile_internal(builder, _round_digits, signature(wide, wide, types.int64), (value, digits))
        return context.cast(builder, rounded, wide, sig.return_type)


for _kind in (types.float32, types.float64):  # each kind separately, to come before Numba's lowering for all kinds
    _lower(_kind)
