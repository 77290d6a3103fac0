"""Conversions to bfloat16 that LLVM calls if the processor has no instruction for them.

They are in GCC's libgcc_s from version 13 on. LLVM returns a bfloat16 where it returns the low half of a float: in the
first vector register, by the ABIs of x86-64 and AArch64; so these functions return a float.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.llvmir import I32

FROM_FLOAT, FROM_DOUBLE = "__truncsfbf2", "__truncdfbf2"

_FLOAT, _DOUBLE = ir.FloatType(), ir.DoubleType()
_QUIET = 1 << 6
"""The bit of a bfloat16 that tells a quiet NaN."""


def build_conversions() -> ir.Module:
    """A module that defines both functions."""
    module = ir.Module("bfloats", context=ir.Context())
    for name, kind, shorten in ((FROM_FLOAT, _FLOAT, _read_float), (FROM_DOUBLE, _DOUBLE, _read_double)):
        function = ir.Function(module, ir.FunctionType(_FLOAT, [kind]), name)
        function.attributes.add("nounwind")
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        (value,) = function.args
        bits = shorten(builder, value)
        is_nan = builder.fcmp_unordered("uno", value, value)
        result = builder.select(is_nan, _shorten_nan(builder, bits), _round(builder, bits))
        builder.ret(builder.bitcast(result, _FLOAT))
    return module


def _read_float(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    return builder.bitcast(value, I32)


def _read_double(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """The bits of a float that is rounded to odd: what is rounded again, to fewer bits, is then as if it were rounded
    once (Boldo and Melquiond, 2005)."""
    near = builder.fptrunc(value, _FLOAT)
    back = builder.fpext(near, _DOUBLE)
    bits = builder.bitcast(near, I32)
    magnitude = builder.module.declare_intrinsic("llvm.fabs", [_DOUBLE])
    away = builder.fcmp_ordered(">", *(builder.call(magnitude, [number]) for number in (back, value)))
    towards_zero = builder.sub(bits, builder.zext(away, I32))
    inexact = builder.fcmp_ordered("!=", back, value)
    return builder.select(inexact, builder.or_(towards_zero, I32(1)), bits)


def _round(builder: ir.IRBuilder, bits: ir.Value) -> ir.Value:
    """The upper half, rounded to nearest, ties to even."""
    odd = builder.and_(builder.lshr(bits, I32(16)), I32(1))
    return builder.lshr(builder.add(bits, builder.add(odd, I32(0x7FFF))), I32(16))


def _shorten_nan(builder: ir.IRBuilder, bits: ir.Value) -> ir.Value:
    return builder.or_(builder.lshr(bits, I32(16)), I32(_QUIET))
