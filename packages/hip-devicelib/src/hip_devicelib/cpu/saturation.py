"""Floats to integers on the CPU device: saturated, and 0 for NaN.

LLVM's intrinsic for this, `llvm.fptosi.sat`, is lowered for one lane after another by its x86 backend. Here the number
is first clamped to the range, with the minimum and maximum that processors have for vectors.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

MANTISSAS = {ir.FloatType(): 24, ir.DoubleType(): 53}
"""The bits of a type's significand, including the hidden one."""

WORD = ir.IntType(32)
"""The narrowest integer type to which processors convert numbers."""


def saturate(builder: ir.IRBuilder, value: Any, kind: ir.IntType, signed: bool) -> Any:
    """*value*, a half, float or double, truncated to an integer of type *kind*."""
    if value.type == ir.HalfType():
        value = builder.fpext(value, ir.FloatType())
    real = value.type
    low, high = (-(1 << (kind.width - 1)), (1 << (kind.width - 1)) - 1) if signed else (0, (1 << kind.width) - 1)
    beyond = high + 1
    dropped = max(beyond.bit_length() - 1 - MANTISSAS[real], 0)
    top = beyond - (1 << dropped)  # the largest float within the range
    # also for NaN
    bounded = builder.select(builder.fcmp_ordered(">", value, real(float(low))), value, real(float(low)))
    bounded = builder.select(builder.fcmp_ordered("<", bounded, real(float(top))), bounded, real(float(top)))
    wide = WORD if kind.width < WORD.width else kind
    convert = builder.fptosi if signed or wide is not kind else builder.fptoui
    whole = builder.trunc(convert(bounded, wide), kind)
    if top != high:
        whole = builder.select(builder.fcmp_ordered(">=", value, real(float(beyond))), kind(high), whole)
    if signed:
        whole = builder.select(builder.fcmp_ordered("ord", value, value), whole, kind(0))
    return whole
