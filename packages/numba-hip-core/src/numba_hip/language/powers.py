"""Powers with integer exponents: ``x ** -1`` is ``1 / x``, also where that is a division by 0.

Numba computes them as here, but in Python's error model in every case: a zero to a negative power raises there, and so
does the smallest integer as an exponent. Here they follow the error model of the kernel, as ``/`` does.
"""

from __future__ import annotations

import math
import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from numba_hip.language.registry import lowering

MOST_MULTIPLIED = 0x10000
"""The largest exponent for which the base is multiplied by itself."""

MESSAGE = "0.0 cannot be raised to a negative power"


@intrinsic
def _reciprocal(typing_context: Any, x: Any) -> Any:
    """One divided by a float, which may be 0."""
    return x(x), lambda context, builder, sig, args: builder.fdiv(args[0].type(1), args[0])


def _to_integer(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    """A float to the power of an integer."""
    kind, raises = sig.return_type, bool(context.error_model.raise_on_fp_zero_division)

    def power(a, b):  # type: ignore[no-untyped-def]
        base = kind(a)
        if raises and b < 0 and base == 0:
            raise ZeroDivisionError(MESSAGE)
        if b > MOST_MULTIPLIED or b < -MOST_MULTIPLIED:
            return math.pow(base, float(b))
        result, exponent = kind(1), abs(b)
        while exponent != 0:
            if exponent & 1:
                result *= base
            exponent >>= 1
            base *= base
        if b < 0:
            return _reciprocal(result)
        return result

    return context.compile_internal(builder, power, sig, args)


def _of_integers(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    """An integer to the power of an integer of its type."""
    step = _power_of_two(args[0])
    if step:
        return _shift(builder, args[1], step)
    kind, raises = sig.return_type, bool(context.error_model.raise_on_fp_zero_division)
    undefined = -1 << (kind.bitwidth - 1)

    def power(a, b):  # type: ignore[no-untyped-def]
        base = kind(a)
        if b < 0:
            if base == 0:
                if raises:
                    raise ZeroDivisionError("0 cannot be raised to a negative power")
                return kind(undefined)
            if base == -1 and b & 1:
                return base
            return kind(base == 1 or base == -1)
        if b > MOST_MULTIPLIED:
            return kind(math.pow(base, float(b)))
        result, exponent = kind(1), b
        while exponent != 0:
            if exponent & 1:
                result *= base
            exponent >>= 1
            base *= base
        return result

    return context.compile_internal(builder, power, sig, args)


def _power_of_two(base: ir.Value) -> int:
    """Of two, the power that *base* is; 0 if it is none, or not written in the kernel as a number."""
    number = base.constant if isinstance(base, ir.Constant) else None
    return number.bit_length() - 1 if isinstance(number, int) and number > 1 and not number & (number - 1) else 0


def _shift(builder: ir.IRBuilder, exponent: ir.Value, step: int) -> ir.Value:
    """``2 ** step`` to the power of *exponent*. Above the largest number it is 0, as products wrap around, and so it is
    below 1. But for the lesser of two numbers there is no choice in it: LLVM knows how often a loop runs whose end it
    tells, as the steps of a tree do."""
    kind = exponent.type
    last = kind(kind.width - 1)
    enough = kind(-(-kind.width // step))
    bits = builder.mul(_least(builder, exponent, enough), kind(step))
    one_more = builder.zext(builder.icmp_unsigned(">", bits, last), kind)
    return builder.shl(builder.shl(kind(1), _least(builder, bits, last)), one_more)


def _least(builder: ir.IRBuilder, one: ir.Value, other: ir.Value) -> ir.Value:
    """The lesser of two numbers without sign."""
    return builder.select(builder.icmp_unsigned("<", one, other), one, other)


def _to_literal(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    """A float to the power of an integer that is written in the kernel: products without a loop."""
    exponent, kind = sig.args[1].literal_value, sig.return_type
    if abs(exponent) > MOST_MULTIPLIED:
        raise NotImplementedError  # Numba takes the lowering of an integer that is not known
    base = context.cast(builder, args[0], sig.args[0], kind)
    if exponent < 0 and context.error_model.raise_on_fp_zero_division:
        with cgutils.if_unlikely(builder, cgutils.is_scalar_zero(builder, base)):
            context.error_model.fp_zero_division(builder, (MESSAGE,))
    result, left = base.type(1), abs(exponent)
    while left:
        if left & 1:
            result = builder.fmul(result, base)
        left >>= 1
        base = builder.fmul(base, base)
    return builder.fdiv(result.type(1), result) if exponent < 0 else result


for _function in (operator.pow, operator.ipow, pow):
    for _kind in (*types.signed_domain, *types.unsigned_domain):
        lowering.lower(_function, types.Float, _kind)(_to_integer)
        lowering.lower(_function, _kind, _kind)(_of_integers)
for _function in (operator.pow, operator.ipow):
    lowering.lower(_function, types.Float, types.IntegerLiteral)(_to_literal)
