"""Floats to integers on the CPU device: the nearest integer that there is, and 0 for NaN.

LLVM has an intrinsic for that, `llvm.fptosi.sat`, of which its backend for x86 makes code for one lane after another.
Here the number is brought into the range first, with the minimum and maximum that processors have for vectors.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

MANTISSAS = {ir.FloatType(): 24, ir.DoubleType(): 53}
"""Bits of the mantissa of a type, the hidden one included."""

WORD = ir.IntType(32)
"""The narrowest integer that processors convert numbers to."""


def saturate(builder: ir.IRBuilder, value: Any, kind: ir.IntType, signed: bool) -> Any:
    """*value*, a half, float or double, as an integer of type *kind*: without its fraction."""
    if value.type == ir.HalfType():
        value = builder.fpext(value, ir.FloatType())
    real = value.type
    low, high = (-(1 << (kind.width - 1)), (1 << (kind.width - 1)) - 1) if signed else (0, (1 << kind.width) - 1)
    beyond = high + 1
    dropped = max(beyond.bit_length() - 1 - MANTISSAS[real], 0)
    top = beyond - (1 << dropped)  # the largest number of the range that is a float
    bounded = builder.select(builder.fcmp_ordered(">", value, real(float(low))), value, real(float(low)))  # so is NaN
    bounded = builder.select(builder.fcmp_ordered("<", bounded, real(float(top))), bounded, real(float(top)))
    wide = WORD if kind.width < WORD.width else kind
    convert = builder.fptosi if signed or wide is not kind else builder.fptoui
    whole = builder.trunc(convert(bounded, wide), kind)
    if top != high:
        whole = builder.select(builder.fcmp_ordered(">=", value, real(float(beyond))), kind(high), whole)
    if signed:
        whole = builder.select(builder.fcmp_ordered("ord", value, value), whole, kind(0))
    return whole
