"""Integer division as in NumPy: ``//``, ``%``, ``divmod`` and the corresponding ufuncs.

Quotients are rounded down, and a remainder has the sign of the divisor. The quotient of the smallest integer and -1
wraps around to the smallest integer. Dividing by 0 gives 0, or raises in Python's error model. In LLVM both are
undefined, and processors trap; so the divisor is replaced by 1 in these cases, selected without a branch, so that
threads that run as lanes of vectors do not diverge. By powers of two that are numbers in the kernel, both are a shift
and a mask: LLVM finds that only where it does not see first that ``n // 2`` and ``n % 2`` have a division in common.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types, typing

from numba_hip._numba.lowering import in_one_unit
from numba_hip.language.registry import lowering

NOT_A_TIME = -(2**63)
"""The number that a timedelta is that is NaT."""

Quotient = tuple[ir.Value, ir.Value]
"""A quotient, rounded down, and the remainder."""


def divide(
    builder: ir.IRBuilder, signed: bool, dividend: ir.Value, divisor: ir.Value, *, wide: ir.IntType | None = None
) -> Quotient:
    """Quotient and remainder of any two integers of one type; in type *wide*, if it is given."""
    kind = wide or dividend.type
    power = _known_power(divisor)
    if signed and power is not None:
        rest = builder.and_(dividend, divisor.type((1 << power) - 1))
        return builder.sext(builder.ashr(dividend, divisor.type(power)), kind), builder.sext(rest, kind)
    return (_divide_signed if signed else _divide_unsigned)(builder, dividend, divisor, kind)


def _known_power(divisor: ir.Value) -> int | None:
    """The power of two that *divisor* is known to be as a number with a sign, if it is one."""
    number = divisor.constant if isinstance(divisor, ir.Constant) else None
    if not isinstance(number, int) or not 0 < number < 1 << divisor.type.width - 1 or number & (number - 1):
        return None
    return number.bit_length() - 1


def _divide_unsigned(builder: ir.IRBuilder, dividend: ir.Value, divisor: ir.Value, wide: ir.IntType) -> Quotient:
    zero, one = divisor.type(0), divisor.type(1)
    by_zero = builder.icmp_unsigned("==", divisor, zero)
    safe = builder.select(by_zero, one, divisor)  # the remainder by 1 is 0
    quotient = builder.select(by_zero, zero, builder.udiv(dividend, safe))
    return builder.zext(quotient, wide), builder.zext(builder.urem(dividend, safe), wide)


def _divide_signed(builder: ir.IRBuilder, dividend: ir.Value, divisor: ir.Value, wide: ir.IntType) -> Quotient:
    zero, one = divisor.type(0), divisor.type(1)
    special = builder.icmp_unsigned("<=", builder.add(divisor, one), one)  # 0 and -1
    safe = builder.select(special, one, divisor)
    towards_zero, rest = builder.sdiv(dividend, safe), builder.srem(dividend, safe)
    differ = builder.icmp_signed("<", builder.xor(rest, divisor), zero)
    above = builder.and_(builder.icmp_unsigned("!=", rest, zero), differ)
    rounded = builder.select(above, builder.sub(towards_zero, one), towards_zero)
    # By -1 the quotient is the dividend negated, which wraps around; the bits of -1 keep it, those of 0 do not.
    negated = builder.and_(builder.neg(builder.sext(dividend, wide)), builder.sext(divisor, wide))
    quotient = builder.select(special, negated, builder.sext(rounded, wide))
    return quotient, builder.sext(builder.select(above, builder.add(rest, divisor), rest), wide)


def _narrow(builder: ir.IRBuilder, values: Sequence[ir.Value], signed: bool) -> Sequence[ir.Value]:
    """*values* as 32 bits, if they were extended from 32 or fewer: Numba extends all integers to 64 bits first, whose
    division takes several times as long."""
    half = ir.IntType(32)
    sources = []
    for value in values:
        operation = value.opname if isinstance(value, ir.instructions.CastInstr) else ""
        if operation not in (("sext", "zext") if signed else ("zext",)):
            return values
        (source,) = value.operands
        if source.type.width + (signed and operation == "zext") > half.width:
            return values
        sources.append(getattr(builder, operation)(source, half))
    return sources


def _operator(
    function: Any, message: str, result: Callable[[ir.IRBuilder, Quotient], ir.Value]
) -> Callable[..., ir.Value]:
    """The lowering of the operator *function*; *message* is that of Python's exception."""

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        kind = sig.return_type.dtype if isinstance(sig.return_type, types.UniTuple) else sig.return_type
        values = [context.cast(builder, value, given, kind) for value, given in zip(args, sig.args, strict=True)]
        if not isinstance(kind, types.Integer):  # of an unsigned and a signed number of 64 bits Numba makes floats
            of_floats = typing.signature(sig.return_type, kind, kind)
            return context.get_function(function, of_floats)(builder, values)
        if context.error_model.raise_on_fp_zero_division:
            with cgutils.if_unlikely(builder, cgutils.is_scalar_zero(builder, values[1])):
                context.error_model.fp_zero_division(builder, (message,))
        signed = bool(kind.signed)
        return result(builder, divide(builder, signed, *_narrow(builder, values, signed), wide=values[0].type))

    return lower


def _first(builder: ir.IRBuilder, both: Quotient) -> ir.Value:
    return both[0]


def _second(builder: ir.IRBuilder, both: Quotient) -> ir.Value:
    return both[1]


for _functions, _message, _result in (
    ((operator.floordiv, operator.ifloordiv), "integer division by zero", _first),
    ((operator.mod, operator.imod), "integer modulo by zero", _second),
    ((divmod,), "integer divmod by zero", lambda builder, both: cgutils.pack_array(builder, both)),
):
    for _function in _functions:
        lowering.lower(_function, types.Integer, types.Integer)(_operator(_function, _message, _result))


def floor_divide_loop(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    """One element of ``np.floor_divide`` of integers of one type."""
    return divide(builder, bool(sig.args[0].signed), *args)[0]


def remainder_loop(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    """One element of ``np.remainder`` of integers of one type."""
    return divide(builder, bool(sig.args[0].signed), *args)[1]


def divmod_loop(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    """One element of ``np.divmod`` of integers of one type."""
    return context.make_tuple(builder, sig.return_type, divide(builder, bool(sig.args[0].signed), *args))


def _divide_timedeltas(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> tuple[ir.Value, Quotient]:
    """Whether two timedeltas can be divided, of which neither is NaT nor the second 0, and the result if so."""
    dividend, divisor = in_one_unit(context, builder, sig.args, args)
    nowhere, zero = args[0].type(NOT_A_TIME), args[0].type(0)
    are_times = builder.and_(*(builder.icmp_unsigned("!=", value, nowhere) for value in args))
    possible = builder.and_(are_times, builder.icmp_unsigned("!=", divisor, zero))
    return possible, divide(builder, True, dividend, divisor)


@lowering.lower(operator.floordiv, types.NPTimedelta, types.NPTimedelta)
@lowering.lower(operator.ifloordiv, types.NPTimedelta, types.NPTimedelta)
def floor_divide_timedeltas_loop(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    """The quotient of two timedeltas; 0 if it is undefined."""
    possible, (quotient, _) = _divide_timedeltas(context, builder, sig, args)
    number = builder.select(possible, quotient, quotient.type(0))
    return context.cast(builder, number, types.int64, sig.return_type)


def remainder_of_timedeltas_loop(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    """One element of ``np.remainder`` of timedeltas; NaT if it is undefined."""
    possible, (_, rest) = _divide_timedeltas(context, builder, sig, args)
    return builder.select(possible, rest, rest.type(NOT_A_TIME))
