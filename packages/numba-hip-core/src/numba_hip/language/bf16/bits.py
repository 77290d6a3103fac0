"""Bfloat16 numbers as bits: to and from floats and integers, with one rounding.

A value of higher precision first becomes a float32 that is *rounded to odd*: if it is inexact, its last bit is set.
Rounding that to the 8 bits of a bfloat16, in any direction, gives the same result as rounding the value itself, as 24
bits are more than two above 8 (Boldo, Melquiond: Emulation of FMA and correctly rounded sums, 2008).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types

from numba_hip.bfloat import INFINITY, QUIET, SIGN_BIT
from numba_hip.language import saturation
from numba_hip.named_calls import call_named

I16, I32, I64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)
FLOAT, DOUBLE = ir.FloatType(), ir.DoubleType()

NEAREST, TO_ZERO, DOWN, UP = "rn", "rz", "rd", "ru"
"""Directions of rounding, as CUDA and HIP abbreviate them."""

MANTISSA = 53


def widen(builder: ir.IRBuilder, bits: ir.Value) -> ir.Value:
    """The float32 that a bfloat16 is."""
    return builder.bitcast(builder.shl(builder.zext(bits, I32), I32(16)), FLOAT)


def narrow(builder: ir.IRBuilder, value: ir.Value, direction: str = NEAREST) -> ir.Value:
    """A float32 as a bfloat16; a NaN stays one."""
    bits = builder.bitcast(value, I32)
    if direction == NEAREST:
        even = builder.and_(builder.lshr(bits, I32(16)), I32(1))
        raised = builder.add(bits, builder.add(even, I32(0x7FFF)))
    elif direction == TO_ZERO:
        raised = bits
    else:
        negative = builder.icmp_signed("<", bits, I32(0))
        away = negative if direction == DOWN else builder.not_(negative)
        raised = builder.add(bits, builder.select(away, I32(0xFFFF), I32(0)))
    infinite = builder.icmp_unsigned("==", builder.and_(bits, I32(~SIGN_BIT & 0xFFFFFFFF)), I32(INFINITY))
    raised = builder.select(infinite, bits, raised)
    quiet = builder.or_(builder.lshr(bits, I32(16)), I32(QUIET))
    is_nan = builder.fcmp_unordered("uno", value, value)
    return builder.trunc(builder.select(is_nan, quiet, builder.lshr(raised, I32(16))), I16)


def to_odd(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """A double as a float32, rounded to odd."""
    single = builder.fptrunc(value, FLOAT)
    back, bits = builder.fpext(single, DOUBLE), builder.bitcast(single, I32)
    inexact = builder.fcmp_ordered("!=", back, value)
    even = builder.icmp_unsigned("==", builder.and_(bits, I32(1)), I32(0))
    nearer_zero = builder.fcmp_ordered("<", magnitude(builder, back), magnitude(builder, value))
    step = builder.select(nearer_zero, I32(1), I32(-1))
    odd = builder.add(bits, builder.select(builder.and_(inexact, even), step, I32(0)))
    return builder.bitcast(odd, FLOAT)


def magnitude(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """The absolute value of a float or double."""
    return call_named(builder, "llvm.fabs.f64" if value.type == DOUBLE else "llvm.fabs.f32", value.type, value)


def from_integer(builder: ir.IRBuilder, value: ir.Value, signed: bool, direction: str = NEAREST) -> ir.Value:
    """An integer of up to 64 bits as a bfloat16."""
    wide = builder.sext(value, I64) if signed else builder.zext(value, I64)
    negative = builder.icmp_signed("<", wide, I64(0)) if signed else ir.Constant(ir.IntType(1), 0)
    size = builder.select(negative, builder.neg(wide), wide)
    dropped = I64(64 - MANTISSA)  # a double holds the others; of these it has to be known whether any is set
    low = builder.and_(size, I64((1 << (64 - MANTISSA)) - 1))
    sticky = builder.zext(builder.icmp_unsigned("!=", low, I64(0)), I64)
    large = builder.fmul(
        builder.uitofp(builder.or_(builder.lshr(size, dropped), sticky), DOUBLE), DOUBLE(2.0 ** (64 - MANTISSA))
    )
    fits = builder.icmp_unsigned("<", size, I64(1 << MANTISSA))
    exact = builder.select(fits, builder.uitofp(size, DOUBLE), large)
    number = builder.select(negative, builder.fneg(exact), exact)
    return narrow(builder, to_odd(builder, number), direction)


def to_integer(
    context: Any, builder: ir.IRBuilder, bits: ir.Value, kind: types.Integer, direction: str = TO_ZERO
) -> ir.Value:
    """A bfloat16 as an integer; saturates, and NaN becomes 0."""
    rounding = {NEAREST: "rint", TO_ZERO: "trunc", DOWN: "floor", UP: "ceil"}[direction]
    whole = context.call_math(builder, rounding, [widen(builder, bits)])
    return saturation.to_integer(context, builder, whole, kind)
