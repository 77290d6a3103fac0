"""The operations of ``hip.bf16``, under CUDA's and HIP's names. Arguments are converted to bfloat16."""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import types

from numba_hip.bfloat import Bfloat16, bfloat16
from numba_hip.language.bf16.bits import DOUBLE, FLOAT, I16, I32, I64, narrow, to_odd, widen
from numba_hip.language.bf16.numbers import MAGNITUDE, SIGN
from numba_hip.language.fp16 import ARITHMETIC
from numba_hip.language.stub import Operation, Stub, numeric_function


def _stub(name: str, meaning: str, arity: int, operation: Operation, result: types.Type = bfloat16) -> Stub:
    """A function of which *operation* gets each argument as its bits, an i16."""
    return numeric_function(
        f"bf16.{name}", "abc"[:arity], meaning, operation,
        operand=bfloat16, result=result, module="numba_hip.language.bf16",
        accepted=(Bfloat16, types.Float, types.Integer, types.Boolean),
        refusal="takes numbers of type bfloat16",
    )  # fmt: skip


def _arithmetic(function: Any) -> Operation:
    operation = next(value for functions, value in ARITHMETIC.items() if function in functions)
    return lambda context, builder, a, b: narrow(builder, operation(builder, widen(builder, a), widen(builder, b)))


def _is_nan(builder: ir.IRBuilder, bits: ir.Value) -> ir.Value:
    value = widen(builder, bits)
    return builder.fcmp_unordered("uno", value, value)


def _clamped(operation: Operation) -> Operation:
    """The result limited to 0 to 1; 0 for NaN."""

    def clamp(context: Any, builder: ir.IRBuilder, *arguments: ir.Value) -> ir.Value:
        bits = operation(context, builder, *arguments)
        value, one = widen(builder, bits), I16(0x3F80)
        bits = builder.select(builder.fcmp_ordered(">", value, FLOAT(1.0)), one, bits)
        return builder.select(builder.fcmp_ordered(">", value, FLOAT(0.0)), bits, I16(0))

    return clamp


def _fused(context: Any, builder: ir.IRBuilder, *arguments: ir.Value) -> ir.Value:
    """The product is exact in a double. The rounding error of the sum is known, too, and makes its last bit odd."""
    a, b, c = (builder.fpext(widen(builder, bits), DOUBLE) for bits in arguments)
    product = builder.fmul(a, b)
    total = builder.fadd(product, c)
    taken = builder.fsub(total, product)
    lost = builder.fadd(builder.fsub(product, builder.fsub(total, taken)), builder.fsub(c, taken))
    bits = builder.bitcast(total, I64)
    even = builder.icmp_unsigned("==", builder.and_(bits, I64(1)), I64(0))
    zero = DOUBLE(0.0)
    inexact = builder.fcmp_ordered("!=", lost, zero)
    away = builder.icmp_unsigned("==", builder.fcmp_ordered(">", lost, zero), builder.fcmp_ordered(">", total, zero))
    step = builder.select(builder.and_(inexact, even), builder.select(away, I64(1), I64(-1)), I64(0))
    return narrow(builder, to_odd(builder, builder.bitcast(builder.add(bits, step), DOUBLE)))


def _positive_part(operation: Operation) -> Operation:
    """0 for negative numbers; NaN stays NaN."""

    def cut(context: Any, builder: ir.IRBuilder, *arguments: ir.Value) -> ir.Value:
        bits = operation(context, builder, *arguments)
        return builder.select(builder.fcmp_ordered("<", widen(builder, bits), FLOAT(0.0)), I16(0), bits)

    return cut


def _extreme(predicate: str, *, keeps_nan: bool) -> Operation:
    """The argument for which the comparison *predicate* holds; NaN counts as missing, or is the result."""

    def choose(context: Any, builder: ir.IRBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
        first = builder.fcmp_ordered(predicate, widen(builder, a), widen(builder, b))
        preferred = _is_nan(builder, a if keeps_nan else b)
        return builder.select(builder.or_(first, preferred), a, b)

    return choose


def _comparison(predicate: str, *, with_nan: bool) -> Operation:
    def test(context: Any, builder: ir.IRBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
        compare_as = builder.fcmp_unordered if with_nan else builder.fcmp_ordered
        return compare_as(predicate, widen(builder, a), widen(builder, b))

    return test


def _by_float(name: str) -> Operation:
    """Function *name* of the math library in float32, rounded."""
    return lambda context, builder, a: narrow(builder, context.call_math(builder, name, [widen(builder, a)]))


def _power_of_ten(context: Any, builder: ir.IRBuilder, a: ir.Value) -> ir.Value:
    exponent = builder.fpext(widen(builder, a), DOUBLE)
    return narrow(builder, to_odd(builder, context.call_math(builder, "pow", [DOUBLE(10.0), exponent])))


def _reciprocal(context: Any, builder: ir.IRBuilder, a: ir.Value) -> ir.Value:
    return narrow(builder, builder.fdiv(FLOAT(1.0), widen(builder, a)))


def _reciprocal_root(context: Any, builder: ir.IRBuilder, a: ir.Value) -> ir.Value:
    root = context.call_math(builder, "sqrt", [builder.fpext(widen(builder, a), DOUBLE)])
    return narrow(builder, to_odd(builder, builder.fdiv(DOUBLE(1.0), root)))


def _sign_of_infinity(context: Any, builder: ir.IRBuilder, a: ir.Value) -> ir.Value:
    infinite = builder.icmp_unsigned("==", builder.and_(a, MAGNITUDE), I16(0x7F80))
    sign = builder.select(builder.icmp_signed("<", a, I16(0)), I32(-1), I32(1))
    return builder.select(infinite, sign, I32(0))


hadd = _stub("hadd", "a + b.", 2, _arithmetic(operator.add))
hsub = _stub("hsub", "a - b.", 2, _arithmetic(operator.sub))
hmul = _stub("hmul", "a * b.", 2, _arithmetic(operator.mul))
hdiv = _stub("hdiv", "a / b.", 2, _arithmetic(operator.truediv))
hadd_rn = _stub("hadd_rn", "a + b, never fused with a product.", 2, _arithmetic(operator.add))
hsub_rn = _stub("hsub_rn", "a - b, never fused with a product.", 2, _arithmetic(operator.sub))
hmul_rn = _stub("hmul_rn", "a * b, never fused with a sum.", 2, _arithmetic(operator.mul))
hadd_sat = _stub("hadd_sat", "a + b, limited to 0 to 1; 0 for NaN.", 2, _clamped(_arithmetic(operator.add)))
hsub_sat = _stub("hsub_sat", "a - b, limited to 0 to 1; 0 for NaN.", 2, _clamped(_arithmetic(operator.sub)))
hmul_sat = _stub("hmul_sat", "a * b, limited to 0 to 1; 0 for NaN.", 2, _clamped(_arithmetic(operator.mul)))
hfma = _stub("hfma", "a * b + c, rounded once.", 3, _fused)
hfma_sat = _stub("hfma_sat", "a * b + c, limited to 0 to 1; 0 for NaN.", 3, _clamped(_fused))
hfma_relu = _stub("hfma_relu", "a * b + c, or 0 where that is negative.", 3, _positive_part(_fused))
hneg = _stub("hneg", "-a.", 1, lambda context, builder, a: builder.xor(a, SIGN))
habs = _stub("habs", "the magnitude of a.", 1, lambda context, builder, a: builder.and_(a, MAGNITUDE))

hmax = _stub("hmax", "the larger of a and b; where one is NaN, the other.", 2, _extreme(">", keeps_nan=False))
hmin = _stub("hmin", "the smaller of a and b; where one is NaN, the other.", 2, _extreme("<", keeps_nan=False))
hmax_nan = _stub("hmax_nan", "the larger of a and b; NaN where one is.", 2, _extreme(">", keeps_nan=True))
hmin_nan = _stub("hmin_nan", "the smaller of a and b; NaN where one is.", 2, _extreme("<", keeps_nan=True))

PREDICATES = {"heq": "==", "hne": "!=", "hlt": "<", "hle": "<=", "hgt": ">", "hge": ">="}

COMPARISONS = {
    f"{name}{'u' if with_nan else ''}": _stub(
        f"{name}{'u' if with_nan else ''}",
        f"a {predicate} b, a boolean; {'true' if with_nan else 'false'} where one is NaN.",
        2, _comparison(predicate, with_nan=with_nan), types.boolean,
    )
    for name, predicate in PREDICATES.items()
    for with_nan in (False, True)
}  # fmt: skip

hisnan = _stub("hisnan", "whether a is NaN.", 1, lambda context, builder, a: _is_nan(builder, a), types.boolean)
hisinf = _stub("hisinf", "1 for infinity, -1 for -infinity, else 0; an int32.", 1, _sign_of_infinity, types.int32)

hexp10 = _stub("hexp10", "10 to the power of a.", 1, _power_of_ten)
hrcp = _stub("hrcp", "1 / a.", 1, _reciprocal)
hrsqrt = _stub("hrsqrt", "1 / sqrt(a).", 1, _reciprocal_root)

BY_FLOAT = {
    "htrunc": ("trunc", "a without its fraction."),
    "hceil": ("ceil", "the smallest whole number that is not below a."),
    "hfloor": ("floor", "the largest whole number that is not above a."),
    "hrint": ("rint", "the nearest whole number, halves to even."),
    "hsqrt": ("sqrt", "the square root."),
    "hlog": ("log", "the natural logarithm."),
    "hlog2": ("log2", "the logarithm to base 2."),
    "hlog10": ("log10", "the logarithm to base 10."),
    "hcos": ("cos", "the cosine of a, in radians."),
    "hsin": ("sin", "the sine of a, in radians."),
    "htanh": ("tanh", "the hyperbolic tangent."),
    "htanh_approx": ("tanh", "the hyperbolic tangent, as precise as `htanh`."),
    "hexp": ("exp", "e to the power of a."),
    "hexp2": ("exp2", "2 to the power of a."),
}
"""Functions of the math library, by the names here, and what they are."""

FUNCTIONS = {name: _stub(name, meaning, 1, _by_float(function)) for name, (function, meaning) in BY_FLOAT.items()}
