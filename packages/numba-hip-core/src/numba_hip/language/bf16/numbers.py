"""Bfloat16 as a type of numbers: conversions, operators, and Python's functions of a number.

Sums, differences, products and quotients of two bfloat16 are a bfloat16, rounded once: rounding that of two float32
again gives the same, as a float32 has more than twice the bits. Combined with a number of another type, both are
converted as usual.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, signature

from numba_hip.bfloat import Bfloat16, bfloat16
from numba_hip.language.bf16.bits import DOUBLE, I16, from_integer, narrow, to_integer, to_odd, widen
from numba_hip.language.fp16 import ARITHMETIC, COMPARISONS, compare
from numba_hip.language.registry import lowering, typing

SIGN, MAGNITUDE = I16(0x8000), I16(0x7FFF)


@lowering.lower_cast(Bfloat16, types.Float)
def _to_float(context: Any, builder: ir.IRBuilder, source: types.Type, target: types.Type, value: ir.Value) -> ir.Value:
    return context.cast(builder, widen(builder, value), types.float32, target)


@lowering.lower_cast(Bfloat16, types.Complex)
def _to_complex(
    context: Any, builder: ir.IRBuilder, source: types.Type, target: types.Type, value: ir.Value
) -> ir.Value:
    return context.cast(builder, widen(builder, value), types.float32, target)


@lowering.lower_cast(Bfloat16, types.Integer)
def _to_integer(
    context: Any, builder: ir.IRBuilder, source: types.Type, target: types.Integer, value: ir.Value
) -> ir.Value:
    return to_integer(context, builder, value, target)


@lowering.lower_cast(Bfloat16, types.Boolean)
def _to_boolean(
    context: Any, builder: ir.IRBuilder, source: types.Type, target: types.Type, value: ir.Value
) -> ir.Value:
    return builder.icmp_unsigned("!=", builder.and_(value, MAGNITUDE), I16(0))


@lowering.lower_cast(types.Float, Bfloat16)
def _from_float(
    context: Any, builder: ir.IRBuilder, source: types.Float, target: types.Type, value: ir.Value
) -> ir.Value:
    if value.type == DOUBLE:
        return narrow(builder, to_odd(builder, value))
    return narrow(builder, context.cast(builder, value, source, types.float32))


@lowering.lower_cast(types.Integer, Bfloat16)
def _from_integer(
    context: Any, builder: ir.IRBuilder, source: types.Integer, target: types.Type, value: ir.Value
) -> ir.Value:
    return from_integer(builder, value, bool(source.signed))


@lowering.lower_cast(types.IntegerLiteral, Bfloat16)
def _from_literal(
    context: Any, builder: ir.IRBuilder, source: types.IntegerLiteral, target: types.Type, value: ir.Value
) -> ir.Value:
    known = source.literal_type
    return context.cast(builder, context.get_constant(known, source.literal_value), known, target)


@lowering.lower_cast(types.Boolean, Bfloat16)
def _from_boolean(
    context: Any, builder: ir.IRBuilder, source: types.Type, target: types.Type, value: ir.Value
) -> ir.Value:
    return from_integer(builder, context.cast(builder, value, source, types.int8), signed=False)


class _OfBfloats(AbstractTemplate):
    """Types a call whose arguments are bfloat16, all of them."""

    result: types.Type = bfloat16

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
        return signature(self.result, *args) if not kws and all(kind == bfloat16 for kind in args) else None


class _Truth(_OfBfloats):
    result = types.boolean


class _Whole(_OfBfloats):
    result = types.int64


class _Wide(_OfBfloats):
    result = types.float64


class _Power(AbstractTemplate):
    def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
        if kws or len(args) != 2 or args[0] != bfloat16:
            return None
        if isinstance(args[1], types.Integer):
            return signature(bfloat16, bfloat16, types.int64)
        return signature(bfloat16, *args) if args[1] == bfloat16 else None


def _register_arithmetic(function: Any, operation: Any) -> None:
    typing.register_global(function)(_OfBfloats)

    @lowering.lower(function, bfloat16, bfloat16)
    def _lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        return narrow(builder, operation(builder, *(widen(builder, value) for value in args)))


def _register_comparison(function: Any, predicate: str) -> None:
    typing.register_global(function)(_Truth)

    @lowering.lower(function, bfloat16, bfloat16)
    def _lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        return compare(builder, predicate, *(widen(builder, value) for value in args))


def _register_conversion(function: Any, template: type[_OfBfloats]) -> None:
    typing.register_global(function)(template)

    @lowering.lower(function, bfloat16)
    def _lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        return context.cast(builder, args[0], bfloat16, sig.return_type)


for _functions, _operation in ARITHMETIC.items():
    for _function in _functions:
        _register_arithmetic(_function, _operation)
for _function, _predicate in COMPARISONS.items():
    _register_comparison(_function, _predicate)
for _function, _template in ((int, _Whole), (float, _Wide), (bool, _Truth)):
    _register_conversion(_function, _template)
for _function in (operator.neg, operator.pos, abs):
    typing.register_global(_function)(_OfBfloats)


@lowering.lower(operator.neg, bfloat16)
def _negative(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    return builder.xor(args[0], SIGN)


@lowering.lower(operator.pos, bfloat16)
def _positive(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    return args[0]


@lowering.lower(abs, bfloat16)
def _absolute(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    return builder.and_(args[0], MAGNITUDE)


for _function in (operator.pow, operator.ipow, pow):
    typing.register_global(_function)(_Power)
    for _kind in (bfloat16, types.int64):

        @lowering.lower(_function, bfloat16, _kind)
        def _power(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
            values = [
                context.cast(builder, value, kind, types.float64) for value, kind in zip(args, sig.args, strict=True)
            ]
            return narrow(builder, to_odd(builder, context.call_math(builder, "pow", values)))
