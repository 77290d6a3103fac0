"""Bit operations on integers, and arithmetic for which processors have instructions."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, signature

from hip_runtime.said_names import our
from numba_hip.language.registry import lowering, typing
from numba_hip.language.stub import Lower, device_function, number_type
from numba_hip.named_calls import call_named


def _integer(function: str, argument: types.Type) -> types.Type:
    kind = number_type(argument)
    if isinstance(kind, types.Boolean):
        return types.int32
    if not isinstance(kind, types.Integer):
        raise TypingError(f"{our(function)}({kind}) takes an integer")
    return kind


def _of_bits(
    function: str, argument: types.Type, result: types.Type | None, operation: Any
) -> tuple[types.Type, Lower]:
    kind = _integer(function, argument)

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        value = operation(builder, context.cast(builder, args[0], sig.args[0], kind))
        target = context.get_value_type(sig.return_type)
        if value.type.width > target.width:
            return builder.trunc(value, target)
        return builder.zext(value, target) if value.type.width < target.width else value

    return result or kind, lower


def _call(builder: ir.IRBuilder, name: str, *values: ir.Value) -> ir.Value:
    kind = values[0].type
    return call_named(builder, f"llvm.{name}.i{kind.width}", kind, *values)


FALSE = ir.Constant(ir.IntType(1), 0)
"""LLVM's counts of zeros take a flag: whether the count for zero is undefined. It never is here."""


@device_function("popc")
def popc(x: types.Type) -> tuple[types.Type, Lower]:
    """``popc(x)``: how many bits of the integer *x* are set, an int32."""
    return _of_bits("popc", x, types.int32, lambda builder, value: _call(builder, "ctpop", value))


@device_function("brev")
def brev(x: types.Type) -> tuple[types.Type, Lower]:
    """``brev(x)``: the bits of the integer *x* in reverse."""
    return _of_bits("brev", x, None, lambda builder, value: _call(builder, "bitreverse", value))


@device_function("clz")
def clz(x: types.Type) -> tuple[types.Type, Lower]:
    """``clz(x)``: how many zeros the integer *x* starts with at its high end, an int32; its width for 0."""
    return _of_bits("clz", x, types.int32, lambda builder, value: _call(builder, "ctlz", value, FALSE))


@device_function("ffs")
def ffs(x: types.Type) -> tuple[types.Type, Lower]:
    """``ffs(x)``: position of the lowest bit of the integer *x* that is set, from 1 on, an int32; 0 for 0."""

    def position(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
        one, zero = ir.Constant(value.type, 1), ir.Constant(value.type, 0)
        found = builder.add(_call(builder, "cttz", value, FALSE), one)
        return builder.select(builder.icmp_signed("==", value, zero), zero, found)

    return _of_bits("ffs", x, types.int32, position)


class _BitCount(AbstractTemplate):
    key = "hip.integer.bit_count"

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
        if args or kws:
            raise TypingError("bit_count takes no arguments")
        return signature(types.int64, recvr=self.this)


@typing.register_attr
class _IntegerMethods(AttributeTemplate):
    key = types.Integer

    def resolve_bit_count(self, integer: types.Integer) -> types.BoundFunction:
        return types.BoundFunction(_BitCount, integer)


@lowering.lower(_BitCount.key, types.Integer)
def _bit_count(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    """As in Python: the bits of the absolute value."""
    (value,) = args
    if sig.args[0].signed:
        negative = builder.icmp_signed("<", value, ir.Constant(value.type, 0))
        value = builder.select(negative, builder.neg(value), value)
    return builder.zext(_call(builder, "ctpop", value), ir.IntType(64))


def _float(function: str, *arguments: types.Type) -> types.Type:
    kinds = [number_type(argument) for argument in arguments]
    if not all(isinstance(kind, (types.Float, types.Integer, types.Boolean)) for kind in kinds):
        raise TypingError(f"{our(function)}({', '.join(map(str, kinds))}) takes numbers")
    return types.float32 if all(kind == types.float32 for kind in kinds) else types.float64


def _by_math(function: str, *arguments: types.Type) -> tuple[types.Type, Lower]:
    kind = _float(function, *arguments)

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        values = [context.cast(builder, value, given, kind) for value, given in zip(args, sig.args, strict=True)]
        return context.call_math(builder, function, values)

    return kind, lower


@device_function("fma")
def fma(a: types.Type, b: types.Type, c: types.Type) -> tuple[types.Type, Lower]:
    """``fma(a, b, c)``: a * b + c, rounded once; float32 where all three are, else float64."""
    return _by_math("fma", a, b, c)


@device_function("cbrt")
def cbrt(x: types.Type) -> tuple[types.Type, Lower]:
    """``cbrt(x)``: the cube root of *x*; float32 where *x* is, else float64."""
    return _by_math("cbrt", x)


@device_function("selp")
def selp(predicate: types.Type, a: types.Type, b: types.Type) -> tuple[types.Type, Lower]:
    """``selp(predicate, a, b)``: *a* where *predicate* is true, else *b*, without a branch. Both are numbers."""
    condition, kind, other = (number_type(argument) for argument in (predicate, a, b))
    if not isinstance(condition, (types.Boolean, types.Integer)):
        raise TypingError(f"{our('selp')}: the predicate is a {condition}; it has to be an integer or a boolean")
    if not isinstance(kind, types.Number) or not isinstance(other, types.Number):
        raise TypingError(f"{our('selp')} selects between numbers, not between {kind} and {other}")
    if kind != other:
        from numpy import promote_types

        from numba_hip._numba.typing import as_dtype, from_dtype

        kind = from_dtype(promote_types(as_dtype(kind), as_dtype(other)))

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        which = context.is_true(builder, condition, context.cast(builder, args[0], sig.args[0], condition))
        values = [context.cast(builder, value, of, kind) for value, of in zip(args[1:], sig.args[1:], strict=True)]
        return builder.select(which, *values)

    return kind, lower
