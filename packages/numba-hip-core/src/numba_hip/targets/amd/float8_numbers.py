"""Floats of 8 bits on AMD GPUs that have instructions for their conversions."""

from __future__ import annotations

from llvmlite import ir

from hip_devicelib.float8_conversions import float8_names, narrowing_intrinsic, widening_intrinsic
from hip_devicelib.target import Target
from numba_hip.float8 import Float8
from numba_hip.named_calls import call_named

I1, I8, I32, FLOAT = ir.IntType(1), ir.IntType(8), ir.IntType(32), ir.FloatType()


def widen(target: Target, builder: ir.IRBuilder, bits: ir.Value, kind: Float8) -> ir.Value | None:
    """The float32 that *bits* are in the format *kind*; None if *target* has no instruction for that."""
    short = float8_names(target).get(kind.name)
    if short is None:
        return None
    return call_named(builder, widening_intrinsic(short), FLOAT, builder.zext(bits, I32), I32(0))


def narrow(target: Target, builder: ir.IRBuilder, value: ir.Value, kind: Float8) -> ir.Value | None:
    """The bits of the float32 *value* in the format *kind*, cut to its largest number; None if *target* has no
    instruction for that. The median of NaN and numbers is a number, so NaN goes around it."""
    short = float8_names(target).get(kind.name)
    if short is None:
        return None
    cut = call_named(builder, "llvm.amdgcn.fmed3.f32", FLOAT, value, FLOAT(-kind.limit), FLOAT(kind.limit))
    chosen = builder.select(builder.fcmp_unordered("uno", value, value), value, cut)
    undefined = ir.Constant(I32, ir.Undefined)
    return builder.trunc(call_named(builder, narrowing_intrinsic(short), I32, chosen, chosen, undefined, I1(0)), I8)
