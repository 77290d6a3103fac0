"""Python's ``math`` in kernels. Numba types most of it; this module lowers it to the device's math functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, ConcreteTemplate, signature

from numba_hip.language.known_powers import write_known_power
from numba_hip.language.registry import lowering, typing
from numba_hip.language.saturation import to_integer

UNARY: dict[Callable[..., float], str] = {
    math.sin: "sin", math.cos: "cos", math.tan: "tan", math.asin: "asin", math.acos: "acos", math.atan: "atan",
    math.sinh: "sinh", math.cosh: "cosh", math.tanh: "tanh", math.asinh: "asinh", math.acosh: "acosh",
    math.atanh: "atanh", math.exp: "exp", math.expm1: "expm1", math.log: "log", math.log2: "log2",
    math.log10: "log10", math.log1p: "log1p", math.sqrt: "sqrt", math.fabs: "fabs", math.erf: "erf",
    math.erfc: "erfc", math.gamma: "gamma", math.lgamma: "lgamma",
}  # fmt: skip
"""Functions of one float, by their name in the C math library."""

BINARY: dict[Callable[..., float], str] = {
    math.atan2: "atan2",
    math.hypot: "hypot",
    math.copysign: "copysign",
    math.nextafter: "nextafter",
    math.remainder: "remainder",
}
"""Functions of two floats, likewise."""

REALS = (types.float32, types.float64)


@typing.register_global(math.fmod)
class _FmodTemplate(ConcreteTemplate):
    cases = [signature(kind, kind, kind) for kind in reversed(REALS)]


@typing.register_global(math.remainder)
class _RemainderTemplate(ConcreteTemplate):
    cases = [
        signature(types.float64, types.int64, types.int64),
        signature(types.float64, types.uint64, types.uint64),
        *(signature(kind, kind, kind) for kind in REALS),
    ]


@typing.register_global(math.modf)
class _ModfTemplate(ConcreteTemplate):
    cases = [signature(types.UniTuple(kind, 2), kind) for kind in reversed(REALS)]


@typing.register_global(math.log)
class _LogTemplate(AbstractTemplate):
    """``math.log(x, base)``, which Numba has not."""

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
        kinds = tuple(map(types.unliteral, args))
        if kws or len(kinds) != 2 or not all(isinstance(kind, (types.Integer, *map(type, REALS))) for kind in kinds):
            return None
        return signature(types.float32 if set(kinds) == {types.float32} else types.float64, *kinds)


class _UnaryTemplate(ConcreteTemplate):
    cases = [
        signature(types.float64, types.int64),
        signature(types.float64, types.uint64),
        *(signature(kind, kind) for kind in REALS),
    ]


for _name in ("cbrt", "exp2"):  # since Python 3.11, and not typed by every supported Numba
    if hasattr(math, _name):
        UNARY[getattr(math, _name)] = _name
        typing.register_global(getattr(math, _name))(_UnaryTemplate)


def _call(context: Any, builder: ir.IRBuilder, name: str, sig: Any, args: Sequence[ir.Value]) -> ir.Value:
    """Call *name* with *args* cast to the type of the result."""
    values = [context.cast(builder, value, kind, sig.return_type) for value, kind in zip(args, sig.args, strict=True)]
    return context.call_math(builder, C_NAMES.get(name, name), values)


C_NAMES = {"gamma": "tgamma"}


def _lower_to_call(function: Callable[..., Any], name: str, *kinds: Any) -> None:
    @lowering.lower(function, *kinds)
    def _lowered(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        return _call(context, builder, name, sig, args)


@lowering.lower(math.log, types.Any, types.Any)
def _log_to_base(context: Any, builder: ir.IRBuilder, sig: Any, args: Sequence[ir.Value]) -> ir.Value:
    kind = sig.return_type
    logarithms = [
        context.call_math(builder, "log", [context.cast(builder, value, given, kind)])
        for value, given in zip(args, sig.args, strict=True)
    ]
    return builder.fdiv(*logarithms)


for _function, _name in UNARY.items():
    for _kind in (types.Integer, *REALS):
        _lower_to_call(_function, _name, _kind)
for _function, _name in BINARY.items():
    for _kind in (types.Integer, *REALS):
        _lower_to_call(_function, _name, _kind, _kind)


def _lower_rounding(function: Callable[..., Any], name: str) -> None:
    for kind in REALS:

        @lowering.lower(function, kind)
        def _rounded(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
            rounded = context.call_math(builder, name, args)
            if isinstance(sig.return_type, types.Integer):
                return to_integer(context, builder, rounded, sig.return_type)
            return context.cast(builder, rounded, sig.args[0], sig.return_type)  # as in Numba's divisions of floats

    @lowering.lower(function, types.Integer)
    def _integer(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        return context.cast(builder, args[0], sig.args[0], sig.return_type)


_lower_rounding(math.floor, "floor")
_lower_rounding(math.ceil, "ceil")
_lower_rounding(math.trunc, "trunc")


def _lower_predicate(function: Callable[..., Any], of_integer: bool, test: Callable[..., ir.Value]) -> None:
    for kind in REALS:

        @lowering.lower(function, kind)
        def _real(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
            del sig
            return test(context, builder, args[0])

    @lowering.lower(function, types.Integer)
    def _integer(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        return context.get_constant(types.boolean, of_integer)


def _magnitude_against_infinity(predicate: str) -> Callable[..., ir.Value]:
    def compare(context: Any, builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
        magnitude = context.call_math(builder, "fabs", [value])
        return builder.fcmp_ordered(predicate, magnitude, ir.Constant(value.type, float("inf")))

    return compare


_lower_predicate(math.isnan, False, lambda context, builder, value: builder.fcmp_unordered("uno", value, value))
_lower_predicate(math.isinf, False, _magnitude_against_infinity("=="))
_lower_predicate(math.isfinite, True, _magnitude_against_infinity("<"))


def _lower_scaling(function: Callable[..., Any], factor: float) -> None:
    for kind in (types.Integer, *REALS):

        @lowering.lower(function, kind)
        def _scaled(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
            value = context.cast(builder, args[0], sig.args[0], sig.return_type)
            return builder.fmul(value, ir.Constant(value.type, factor))


_lower_scaling(math.degrees, 180.0 / math.pi)
_lower_scaling(math.radians, math.pi / 180.0)


@lowering.lower(math.pow, types.Float, types.Float)
@lowering.lower(math.pow, types.Float, types.Integer)
def _pow(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    base = context.cast(builder, args[0], sig.args[0], sig.return_type)
    known = write_known_power(context, builder, base, args[1])
    return _call(context, builder, "pow", sig, args) if known is None else known


@lowering.lower(math.fmod, types.Float, types.Float)
def _fmod(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    del context, sig
    return builder.frem(*args)


@lowering.lower(math.modf, types.Float)
def _modf(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    (value,) = args
    whole = context.call_math(builder, "trunc", [value])
    infinite = builder.fcmp_ordered(
        "==", context.call_math(builder, "fabs", [value]), ir.Constant(value.type, math.inf)
    )
    rest = builder.select(infinite, ir.Constant(value.type, 0.0), builder.fsub(value, whole))
    return context.make_tuple(builder, sig.return_type, (context.call_math(builder, "copysign", [rest, value]), whole))


@lowering.lower(math.ldexp, types.Float, types.intc)
def _ldexp(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    value, exponent = args
    return scale_by_power_of_two(context, builder, value, exponent)


@lowering.lower(math.frexp, types.Float)
def _frexp(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    (value,) = args
    fraction, exponent = _split(context, builder, value)
    return context.make_tuple(builder, sig.return_type, (fraction, exponent))


def _formats(kind: ir.Type) -> tuple[ir.IntType, int, int]:
    """The integer type of the same width, the bits of the mantissa, and the bias of the exponent."""
    return (ir.IntType(32), 23, 127) if kind == ir.FloatType() else (ir.IntType(64), 52, 1023)


def _power_of_two(builder: ir.IRBuilder, exponent: ir.Value, kind: ir.Type) -> ir.Value:
    """2 to an *exponent* (i32) in the range of normal numbers, by its bits."""
    integer, mantissa, bias = _formats(kind)
    wide = builder.sext(exponent, integer) if integer.width > 32 else exponent
    biased = builder.add(wide, ir.Constant(integer, bias))
    return builder.bitcast(builder.shl(biased, ir.Constant(integer, mantissa)), kind)


def scale_by_power_of_two(context: Any, builder: ir.IRBuilder, value: ir.Value, exponent: ir.Value) -> ir.Value:
    """Multiply by a power of two in at most three steps, as one factor cannot span the whole range of exponents.

    Only one product rounds: a step that is not the last stays above the smallest normal number by the width of the
    mantissa, so that a rounded product takes the rest to zero.
    """
    del context
    _, mantissa, bias = _formats(value.type)
    i32 = exponent.type
    smallest, step_down, largest = (ir.Constant(i32, n) for n in (1 - bias, mantissa + 2 - bias, bias))
    beyond = 4 * bias
    left = exponent
    for bound, predicate in ((-beyond, "<"), (beyond, ">")):
        limit = ir.Constant(i32, bound)
        left = builder.select(builder.icmp_signed(predicate, left, limit), limit, left)
    for _ in range(3):
        step = builder.select(builder.icmp_signed(">", left, largest), largest, left)
        step = builder.select(builder.icmp_signed("<", left, smallest), step_down, step)
        left = builder.sub(left, step)
        value = builder.fmul(value, _power_of_two(builder, step, value.type))
    return value


def _split(context: Any, builder: ir.IRBuilder, value: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Fraction in [0.5, 1) and exponent (i32) of *value*; zeros, infinities and NaN come back with exponent 0."""
    integer, mantissa, bias = _formats(value.type)
    i32 = ir.IntType(32)
    scale = mantissa + 2
    magnitude = context.call_math(builder, "fabs", [value])
    smallest = ir.Constant(value.type, 2.0 ** (1 - bias))
    subnormal = builder.fcmp_ordered("<", magnitude, smallest)
    scaled = builder.fmul(value, ir.Constant(value.type, 2.0**scale))
    normal = builder.select(subnormal, scaled, value)
    bits = builder.bitcast(normal, integer)
    field = (1 << (integer.width - 1 - mantissa)) - 1
    raw = builder.and_(builder.lshr(bits, ir.Constant(integer, mantissa)), ir.Constant(integer, field))
    raw = builder.trunc(raw, i32) if integer.width > 32 else raw
    exponent = builder.sub(raw, ir.Constant(i32, bias - 1))
    exponent = builder.select(subnormal, builder.sub(exponent, ir.Constant(i32, scale)), exponent)
    kept = builder.and_(bits, ir.Constant(integer, ~(field << mantissa)))
    fraction = builder.bitcast(builder.or_(kept, ir.Constant(integer, (bias - 1) << mantissa)), value.type)
    zero = builder.fcmp_ordered("==", magnitude, ir.Constant(value.type, 0.0))
    finite = builder.fcmp_ordered("<", magnitude, ir.Constant(value.type, float("inf")))
    special = builder.or_(zero, builder.not_(finite))
    return builder.select(special, value, fraction), builder.select(special, ir.Constant(i32, 0), exponent)


def _greatest_common_divisor(left: int, right: int) -> int:
    while right:
        left, right = right, left % right
    return abs(left)


@lowering.lower(math.gcd, types.Integer, types.Integer)
def _gcd(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    return context.compile_internal(builder, _greatest_common_divisor, sig, args)


if hasattr(math, "fma"):  # since Python 3.13

    @typing.register_global(math.fma)
    class _FmaTemplate(ConcreteTemplate):
        cases = [signature(kind, kind, kind, kind) for kind in reversed(REALS)]

    @lowering.lower(math.fma, types.Float, types.Float, types.Float)
    def _fma(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        return _call(context, builder, "fma", sig, args)
