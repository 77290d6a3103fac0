"""NumPy's universal functions of integers in kernels, one element at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types, typing

from numba_hip.language.division import divmod_loop, floor_divide_loop, remainder_loop

INTEGERS = frozenset("bBhHiIlLqQ")
"""NumPy's letters for types of integers."""

Loop = Callable[[Any, ir.IRBuilder, Any, Any], ir.Value]
"""Lowers one element: of context, builder, signature and values, all of the types of the loop."""


def _fmod(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    """The remainder with the sign of the dividend; 0 if the divisor is 0, without an overflow in the quotient."""
    dividend, divisor = args
    zero, one, minus_one = (ir.Constant(divisor.type, n) for n in (0, 1, -1))
    plain = builder.icmp_signed("==", divisor, zero)
    if sig.args[0].signed:
        plain = builder.or_(plain, builder.icmp_signed("==", divisor, minus_one))
    safe = builder.select(plain, one, divisor)
    return builder.srem(dividend, safe) if sig.args[0].signed else builder.urem(dividend, safe)


def _power_of_bits(base: int, exponent: int) -> int:
    """*base* to the power *exponent*, an unsigned number; wraps around."""
    result = 1
    while exponent != 0:
        if exponent & 1:
            result *= base
        base *= base
        exponent = (exponent >> 1) & 0x7FFFFFFFFFFFFFFF
    return result


def _power_with_sign(base: int, exponent: int) -> int:
    """The same for a signed exponent; for a negative one the integer part of the exact result."""
    if exponent >= 0:
        result = 1
        while exponent != 0:
            if exponent & 1:
                result *= base
            base *= base
            exponent >>= 1
        return result
    if base == -1:
        return 1 - 2 * (exponent & 1)
    return 1 if base == 1 else 0


def _power(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    """Powers that wrap around, as in NumPy: a power of floats has neither all digits nor the range."""
    kind, wide = sig.return_type, types.int64
    values = [context.cast(builder, value, given, wide) for value, given in zip(args, sig.args, strict=True)]
    function = _power_with_sign if kind.signed else _power_of_bits
    power = context.compile_internal(builder, function, typing.signature(wide, wide, wide), values)
    return context.cast(builder, power, wide, kind)


def _sign(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    """-1, 0 or 1; of an unsigned number 0 or 1."""
    del context
    (value,) = args
    zero, one, minus_one = (ir.Constant(value.type, n) for n in (0, 1, -1))
    positive = builder.select(builder.icmp_unsigned("!=", value, zero), one, zero)
    if not sig.args[0].signed:
        return positive
    return builder.select(builder.icmp_signed("<", value, zero), minus_one, positive)


def _left_shift(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    """0 where all bits are shifted out, or the amount is negative: LLVM's shift is anything then."""
    del context, sig
    value, amount = args
    within, shifted_by = _amount_within(builder, amount)
    return builder.select(within, builder.shl(value, shifted_by), value.type(0))


def _right_shift(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    """0, or -1 for a negative number, where all bits are shifted out or the amount is negative."""
    del context
    value, amount = args
    within, shifted_by = _amount_within(builder, amount)
    if not sig.args[0].signed:
        return builder.select(within, builder.lshr(value, shifted_by), value.type(0))
    sign = builder.ashr(value, value.type(value.type.width - 1))
    return builder.select(within, builder.ashr(value, shifted_by), sign)


def _amount_within(builder: ir.IRBuilder, amount: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Whether *amount* is less than the bits that there are, and it, or 0."""
    within = builder.icmp_unsigned("<", amount, amount.type(amount.type.width))
    return within, builder.select(within, amount, amount.type(0))


def _multiple_of_bits(one: int, two: int) -> int:
    """The least common multiple of unsigned numbers, which wraps around; 0 of 0."""
    divisor, rest = one, two
    while rest != 0:
        divisor, rest = rest, divisor % rest
    return one // divisor * two if divisor != 0 else divisor


def _multiple_with_sign(one: int, two: int) -> int:
    """The same of the absolute values of signed numbers."""
    first, second = abs(one), abs(two)
    divisor, rest = first, second
    while rest != 0:
        divisor, rest = rest, divisor % rest
    return first // divisor * second if divisor != 0 else divisor


def _lcm(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    kind = sig.return_type
    wide, function = (types.int64, _multiple_with_sign) if kind.signed else (types.uint64, _multiple_of_bits)
    values = [context.cast(builder, value, given, wide) for value, given in zip(args, sig.args, strict=True)]
    found = context.compile_internal(builder, function, typing.signature(wide, wide, wide), values)
    return context.cast(builder, found, wide, kind)


_LOOPS: dict[np.ufunc, Loop] = {
    np.floor_divide: floor_divide_loop, np.remainder: remainder_loop, np.divmod: divmod_loop, np.fmod: _fmod,
    np.power: _power, np.sign: _sign, np.left_shift: _left_shift, np.right_shift: _right_shift, np.lcm: _lcm,
}  # fmt: skip


def integer_loop(ufunc: np.ufunc) -> Loop | None:
    """The lowering of *ufunc* for integers, where Numba's gives other results than NumPy or may divide by zero."""
    return _LOOPS.get(ufunc)
