"""Conversions of floating point numbers to integers that give the nearest number of the type, and 0 for NaN."""

from __future__ import annotations

from llvmlite import ir

from numba_hip.named_calls import call_named

I32, FLOAT = ir.IntType(32), ir.FloatType()


def saturate(builder: ir.IRBuilder, value: ir.Value, kind: ir.IntType, signed: bool) -> ir.Value:
    """LLVM's saturating conversion to at least 32 bits. For narrower integers the value is clamped to their range:
    halves and floats before the conversion, in one instruction. Conversions of those to 32 bits are left to the
    hardware.
    """
    if value.type == ir.HalfType():
        value = builder.fpext(value, FLOAT)
    sign, real = "s" if signed else "u", value.type.intrinsic_name
    low, high = (-(1 << (kind.width - 1)), (1 << (kind.width - 1)) - 1) if signed else (0, (1 << kind.width) - 1)
    if kind.width < I32.width and value.type == FLOAT:
        return _saturate_narrowly(builder, value, kind, low, high)
    wide = kind if kind.width > I32.width else I32
    whole = call_named(builder, f"llvm.fpto{sign}i.sat.{wide}.{real}", wide, value)
    if wide == I32 and value.type == FLOAT:
        return _saturate_by_hardware(builder, value, whole, signed)
    if kind.width >= I32.width:
        return whole
    whole = call_named(builder, f"llvm.{sign}max.i32", I32, whole, I32(low))
    whole = call_named(builder, f"llvm.{sign}min.i32", I32, whole, I32(high))
    return builder.trunc(whole, kind)


def _saturate_by_hardware(builder: ir.IRBuilder, value: ir.Value, otherwise: ir.Value, signed: bool) -> ir.Value:
    """The hardware's conversion of a float (`v_cvt_i32_f32`), which does what `llvm.fptosi.sat` specifies in one
    instruction instead of seven; *otherwise*, which is that intrinsic, is used if the float turns out to be a
    constant.

    LLVM's plain conversion becomes that instruction, but is undefined out of range: LLVM folds a constant to
    anything, and a number that was just converted to float back to that number. So its operand is the median of the
    float and itself, which LLVM does not see through, at the cost of one instruction. (A fence,
    `llvm.arithmetic.fence`, would be free, but aborts on numbers that are the same in all lanes: "illegal VGPR to
    SGPR copy", LLVM 22.)
    """
    same = call_named(builder, "llvm.amdgcn.fmed3.f32", FLOAT, value, value, value)
    converted = (builder.fptosi if signed else builder.fptoui)(same, I32)
    bits = builder.bitcast(value, I32)
    is_constant = call_named(builder, "llvm.is.constant.i32", ir.IntType(1), bits)
    return builder.select(is_constant, otherwise, converted)


def _saturate_narrowly(builder: ir.IRBuilder, value: ir.Value, kind: ir.IntType, low: int, high: int) -> ir.Value:
    """A float that is clamped to the range of *kind* and then converted, which is always defined. The median of NaN
    is the lowest number, which is 0 for unsigned types."""
    cut = call_named(builder, "llvm.amdgcn.fmed3.f32", FLOAT, value, FLOAT(low), FLOAT(high))
    if low == 0:
        return builder.trunc(builder.fptoui(cut, I32), kind)
    is_number = builder.fcmp_ordered("ord", value, FLOAT(0.0))
    return builder.trunc(builder.select(is_number, builder.fptosi(cut, I32), I32(0)), kind)
