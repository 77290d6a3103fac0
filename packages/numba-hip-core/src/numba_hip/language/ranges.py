"""Loops over ``range``, lowered so that LLVM knows the range of the numbers.

Numba counts the remaining iterations, which needs a division if the step is only known at run time. Here a number is
compared with the last one, and LLVM is told that none wraps around: for a range that starts at 0 or more and goes up,
it then knows that no number is negative, and removes the code for negative indices. In threads that run as lanes, the
end is uniform.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from numba_hip._numba.lowering import RefType, iternext_impl
from numba_hip.language.registry import lowering
from numba_hip.named_calls import call_named


def _start(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    """The iterator of a range, with the fields of Numba's own: ``count`` is 1 or 0, whether a number is left, and
    ``stop`` is the bound below which another number follows."""
    (kind,) = sig.args
    span = cgutils.create_struct_proxy(kind)(context, builder, value=args[0])
    start, stop, step = span.start, span.stop, span.step
    with cgutils.if_unlikely(builder, builder.icmp_signed("==", step, step.type(0))):
        context.call_conv.return_user_exc(builder, ValueError, ("range() arg 3 must not be zero",))
    iterator = cgutils.create_struct_proxy(sig.return_type)(context, builder)
    iterator.iter = cgutils.alloca_once_value(builder, start)
    signed = _is_signed(kind)
    iterator.stop, iterator.step = (_limit if signed else _limit_unsigned)(builder, stop, step), step
    some = builder.zext(_is_before(builder, start, stop, step, signed), step.type)
    iterator.count = cgutils.alloca_once_value(builder, some)
    return iterator._getvalue()


def _limit(builder: ir.IRBuilder, stop: ir.Value, step: ir.Value) -> ir.Value:
    """``stop - step``, saturated to the range of the type: no number is beyond it."""
    # A range that has a number has room for the plain difference where the step is one, and LLVM understands that.
    single = builder.icmp_unsigned("<=", builder.add(step, step.type(1)), step.type(2))
    plain = builder.sub(stop, step, flags=("nsw",))
    return builder.select(single, plain, call_named(builder, f"llvm.ssub.sat.{stop.type}", stop.type, stop, step))


def _limit_unsigned(builder: ir.IRBuilder, stop: ir.Value, step: ir.Value) -> ir.Value:
    """The same for unsigned numbers, whose step is signed all the same."""
    kind = stop.type
    less = call_named(builder, f"llvm.usub.sat.{kind}", kind, stop, step)
    more = call_named(builder, f"llvm.uadd.sat.{kind}", kind, stop, builder.neg(step))
    return builder.select(builder.icmp_signed(">", step, step.type(0)), less, more)


def _is_before(builder: ir.IRBuilder, number: ir.Value, end: ir.Value, step: ir.Value, signed: bool) -> ir.Value:
    """Whether *number* comes before *end* in the direction of *step*."""
    upwards = builder.icmp_signed(">", step, step.type(0))
    compare = builder.icmp_signed if signed else builder.icmp_unsigned
    return builder.select(upwards, compare("<", number, end), compare(">", number, end))


def _is_signed(kind: Any) -> bool:
    """Whether a range or its iterator has signed numbers."""
    return bool(kind.dtype.signed if isinstance(kind, types.RangeType) else kind.yield_type.signed)


@iternext_impl(RefType.UNTRACKED)
def _advance(context: Any, builder: ir.IRBuilder, sig: Any, args: Any, result: Any) -> None:
    """The next number, if one is left."""
    (kind,) = sig.args
    iterator = cgutils.create_struct_proxy(kind)(context, builder, value=args[0])
    count, step = builder.load(iterator.count), iterator.step
    is_left = builder.icmp_unsigned("!=", count, count.type(0))
    result.set_valid(is_left)
    with builder.if_then(is_left):
        number = builder.load(iterator.iter)
        result.yield_(number)
        signed = _is_signed(kind)
        follows = _is_before(builder, number, iterator.stop, step, signed)
        builder.store(builder.zext(follows, count.type), iterator.count)
        # Behind the last number this may be too large; that is poison, which nothing uses.
        builder.store(builder.add(number, step, flags=("nsw",) if signed else ()), iterator.iter)


def _length(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    """The length of a range, computed without a sign, so that neither the distance nor a quotient overflows."""
    (kind,) = sig.args
    span = cgutils.create_struct_proxy(kind)(context, builder, value=args[0])
    start, stop, step = span.start, span.stop, span.step
    zero, one = step.type(0), step.type(1)
    with cgutils.if_unlikely(builder, builder.icmp_signed("==", step, zero)):
        context.call_conv.return_user_exc(builder, ValueError, ("range() arg 3 must not be zero",))
    upwards = builder.icmp_signed(">", step, zero)
    distance = builder.select(upwards, builder.sub(stop, start), builder.sub(start, stop))
    stride = builder.select(upwards, step, builder.neg(step))
    safe = builder.select(builder.icmp_unsigned("==", stride, zero), one, stride)
    some = builder.add(builder.udiv(builder.sub(distance, one), safe), one)
    length = builder.select(_is_before(builder, start, stop, step, _is_signed(kind)), some, zero)
    return context.cast(builder, length, types.Integer.from_bitwidth(length.type.width, False), sig.return_type)


for _range, _iterator in (
    (types.range_state32_type, types.range_iter32_type),
    (types.range_state64_type, types.range_iter64_type),
    (types.unsigned_range_state64_type, types.unsigned_range_iter64_type),
):
    lowering.lower("getiter", _range)(_start)
    lowering.lower("iternext", _iterator)(_advance)
    lowering.lower(len, _range)(_length)
