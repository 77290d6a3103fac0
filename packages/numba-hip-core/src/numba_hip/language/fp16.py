"""Half precision: float16 numbers in kernels, and ``hip.fp16``, with operations under CUDA's and HIP's names.

Sums, differences, products and quotients of two float16 are float16, rounded once; combined with a number of another
type, both are converted as usual. `math` functions convert a float16 to a float32. The functions here return a float16.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, signature
from numba.extending import models

from numba_hip._numba.models import DataModelManager, register_model_in
from numba_hip.language.registry import lowering, typing
from numba_hip.language.stub import Stub, numeric_function

F16 = types.float16

float_models = DataModelManager()
"""How values that Numba itself has no model of lie in registers and in memory."""


@register_model_in(float_models, types.Float)
class FloatModel(models.PrimitiveModel):
    """Floats, including those of 16 bits."""

    def __init__(self, manager: Any, kind: types.Float) -> None:
        of_width = {16: ir.HalfType, 32: ir.FloatType, 64: ir.DoubleType}
        super().__init__(manager, kind, of_width[kind.bitwidth]())


# Operators.

Operation = Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value]

ARITHMETIC: dict[tuple[Any, Any], Operation] = {
    (operator.add, operator.iadd): lambda builder, a, b: builder.fadd(a, b),
    (operator.sub, operator.isub): lambda builder, a, b: builder.fsub(a, b),
    (operator.mul, operator.imul): lambda builder, a, b: builder.fmul(a, b),
    (operator.truediv, operator.itruediv): lambda builder, a, b: builder.fdiv(a, b),
}

COMPARISONS = {
    operator.eq: "==", operator.ne: "!=", operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">=",
}  # fmt: skip


def compare(builder: ir.IRBuilder, predicate: str, a: ir.Value, b: ir.Value) -> ir.Value:
    """NaN is unequal to everything, and no other comparison with it is true."""
    test = builder.fcmp_unordered if predicate == "!=" else builder.fcmp_ordered
    return test(predicate, a, b)


class _OfHalves(AbstractTemplate):
    """Types calls with only float16 arguments: nothing is converted to a half to make a call fit."""

    result = F16

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
        return signature(self.result, *args) if not kws and all(kind == F16 for kind in args) else None


class _Comparison(_OfHalves):
    result = types.boolean


class _Power(AbstractTemplate):
    def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
        if kws or len(args) != 2 or args[0] != F16:
            return None
        if isinstance(args[1], types.Integer):
            return signature(F16, F16, types.int64)
        return signature(F16, *args) if args[1] == F16 else None


def _register_arithmetic(functions: tuple[Any, Any], operation: Operation) -> None:
    for function in functions:
        typing.register_global(function)(_OfHalves)

        @lowering.lower(function, F16, F16)
        def _lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
            return operation(builder, *args)


def _register_comparison(function: Any, predicate: str) -> None:
    typing.register_global(function)(_Comparison)

    @lowering.lower(function, F16, F16)
    def _lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        return compare(builder, predicate, *args)


for _functions, _operation in ARITHMETIC.items():
    _register_arithmetic(_functions, _operation)
for _function, _predicate in COMPARISONS.items():
    _register_comparison(_function, _predicate)
for _unary in (operator.neg, operator.pos, abs):
    typing.register_global(_unary)(_OfHalves)


@lowering.lower(operator.neg, F16)
def _negative(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    return builder.fneg(args[0])


class _AsFloat(AbstractTemplate):
    def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
        return signature(F16, F16) if args == (F16,) and not kws else None


typing.register_global(float)(_AsFloat)


@lowering.lower(float, F16)
@lowering.lower(operator.pos, F16)
def _positive(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    return args[0]


@lowering.lower(abs, F16)
def _absolute(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    return _by_float(context, builder, "fabs", args)


for _power_function in (operator.pow, operator.ipow, pow):
    typing.register_global(_power_function)(_Power)
    for _kind in (F16, types.int64):

        @lowering.lower(_power_function, F16, _kind)
        def _power(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
            values = [
                context.cast(builder, value, kind, types.float32) for value, kind in zip(args, sig.args, strict=True)
            ]
            return builder.fptrunc(context.call_math(builder, "pow", values), ir.HalfType())


# Functions.


def _by_float(context: Any, builder: ir.IRBuilder, name: str, values: Any) -> ir.Value:
    """Function *name* of the math library in float32, rounded to float16."""
    wide = [builder.fpext(value, ir.FloatType()) for value in values]
    return builder.fptrunc(context.call_math(builder, name, wide), ir.HalfType())


def _stub(name: str, meaning: str, arity: int, result: types.Type, operation: Callable[..., ir.Value]) -> Stub:
    return numeric_function(
        f"fp16.{name}", "abc"[:arity], meaning, operation, operand=F16, result=result, module=__name__,
        accepted=(types.Float, types.Integer), refusal="takes numbers of type float16",
    )  # fmt: skip


def _arithmetic(name: str, sign: str, function: Any) -> Stub:
    operation = next(value for functions, value in ARITHMETIC.items() if function in functions)
    return _stub(name, f"a {sign} b.", 2, F16, lambda context, builder, a, b: operation(builder, a, b))


def _comparison(name: str, predicate: str) -> Stub:
    return _stub(
        name, f"a {predicate} b, a boolean; false where one is NaN.", 2, types.boolean,
        lambda context, builder, a, b: builder.fcmp_ordered(predicate, a, b),
    )  # fmt: skip


def _math(name: str, function: str, meaning: str) -> Stub:
    return _stub(name, meaning, 1, F16, lambda context, builder, a: _by_float(context, builder, function, [a]))


hadd = _arithmetic("hadd", "+", operator.add)
hsub = _arithmetic("hsub", "-", operator.sub)
hmul = _arithmetic("hmul", "*", operator.mul)
hdiv = _arithmetic("hdiv", "/", operator.truediv)
heq = _comparison("heq", "==")
hne = _comparison("hne", "!=")
hlt = _comparison("hlt", "<")
hle = _comparison("hle", "<=")
hgt = _comparison("hgt", ">")
hge = _comparison("hge", ">=")

hneg = _stub("hneg", "-a.", 1, F16, lambda context, builder, a: builder.fneg(a))
habs = _math("habs", "fabs", "the magnitude of a.")
hsin = _math("hsin", "sin", "the sine of a, in radians.")
hcos = _math("hcos", "cos", "the cosine of a, in radians.")
hlog = _math("hlog", "log", "the natural logarithm.")
hlog2 = _math("hlog2", "log2", "the logarithm to base 2.")
hlog10 = _math("hlog10", "log10", "the logarithm to base 10.")
hexp = _math("hexp", "exp", "e to the power of a.")
hexp2 = _math("hexp2", "exp2", "2 to the power of a.")
hfloor = _math("hfloor", "floor", "the largest whole number that is not above a.")
hceil = _math("hceil", "ceil", "the smallest whole number that is not below a.")
htrunc = _math("htrunc", "trunc", "a without its fraction.")
hrint = _math("hrint", "rint", "the nearest whole number, halves to even.")
hsqrt = _math("hsqrt", "sqrt", "the square root.")


def _exp10_of(context: Any, builder: ir.IRBuilder, a: ir.Value) -> ir.Value:
    ten = ir.Constant(ir.DoubleType(), 10.0)
    power = context.call_math(builder, "pow", [ten, builder.fpext(a, ten.type)])
    return builder.fptrunc(power, ir.HalfType())


def _reciprocal_of(context: Any, builder: ir.IRBuilder, a: ir.Value) -> ir.Value:
    return builder.fdiv(ir.Constant(a.type, 1.0), a)


def _reciprocal_root_of(context: Any, builder: ir.IRBuilder, a: ir.Value) -> ir.Value:
    root = context.call_math(builder, "sqrt", [builder.fpext(a, ir.FloatType())])
    return builder.fptrunc(builder.fdiv(ir.Constant(root.type, 1.0), root), ir.HalfType())


def _fused(context: Any, builder: ir.IRBuilder, *values: ir.Value) -> ir.Value:
    """In double precision a product of two halves is exact, and its sum with a third is exact or close enough that
    rounding it to a half gives the correct result."""
    wide = [builder.fpext(value, ir.DoubleType()) for value in values]
    return builder.fptrunc(context.call_math(builder, "fma", wide), ir.HalfType())


def _extreme(predicate: str) -> Callable[..., ir.Value]:
    """The argument for which the comparison *predicate* holds; NaN counts as missing."""

    def choose(context: Any, builder: ir.IRBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
        first = builder.fcmp_ordered(predicate, a, b)
        only = builder.fcmp_unordered("uno", b, b)
        return builder.select(builder.or_(first, only), a, b)

    return choose


hexp10 = _stub("hexp10", "10 to the power of a.", 1, F16, _exp10_of)
hrcp = _stub("hrcp", "1 / a.", 1, F16, _reciprocal_of)
hrsqrt = _stub("hrsqrt", "1 / sqrt(a).", 1, F16, _reciprocal_root_of)
hfma = _stub("hfma", "a * b + c, rounded once.", 3, F16, _fused)
hmax = _stub("hmax", "the larger of a and b; where one is NaN, the other.", 2, F16, _extreme(">"))
hmin = _stub("hmin", "the smaller of a and b; where one is NaN, the other.", 2, F16, _extreme("<"))
