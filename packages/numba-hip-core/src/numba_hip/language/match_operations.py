"""Match operations: which lanes of a wave have the same value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types

from numba_hip.language.stub import Lower, device_function
from numba_hip.language.warp import I1, I32, I64, check_mask, masked, shuffled_type
from numba_hip.named_calls import call_named

PAIR = types.Tuple((types.uint64, types.boolean))
"""What asks whether all are the same gives: the lanes, and whether they are."""


def _matching_lanes(context: Any, builder: ir.IRBuilder, value: ir.Value, among: ir.Value) -> ir.Value:
    """The lanes in *among* with the same *value* as this lane: each value in turn, starting with its lowest lane."""
    before, loop, after = builder.block, builder.append_basic_block("value"), builder.append_basic_block("matched")
    builder.branch(loop)
    builder.position_at_end(loop)
    left, found = builder.phi(I64), builder.phi(I64)
    left.add_incoming(among, before)
    found.add_incoming(ir.Constant(I64, 0), before)
    leader = builder.trunc(call_named(builder, "llvm.cttz.i64", I64, left, ir.Constant(I1, 0)), I32)
    led = context.shuffle(builder, value, leader)
    is_float = isinstance(value.type, (ir.FloatType, ir.DoubleType))
    same = builder.fcmp_ordered("==", led, value) if is_float else builder.icmp_unsigned("==", led, value)
    own = builder.icmp_signed("==", context.lane(builder), leader)
    same = builder.or_(same, own)  # so that the leader of a NaN, which equals nothing, leaves the loop
    lanes = builder.and_(context.ballot(builder, same), left)
    rest = builder.and_(left, builder.not_(lanes))
    result = builder.select(same, lanes, found)
    left.add_incoming(rest, builder.block)
    found.add_incoming(result, builder.block)
    builder.cbranch(builder.icmp_unsigned("!=", rest, ir.Constant(I64, 0)), loop, after)
    builder.position_at_end(after)
    return result


Result = Callable[[Any, ir.IRBuilder, ir.Value, ir.Value], Any]
"""Makes the result: of context, builder, the lanes with the same value, and those among which they are."""


def _match(function: str, value: types.Type, result: Result, mask: types.Type | None = None) -> Lower:
    kind = shuffled_type(function, value)
    if mask is not None:
        check_mask(function, mask)

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        among = context.active_lanes(builder)
        number = context.cast(builder, args[-1], sig.args[-1], kind)
        lanes = _matching_lanes(context, builder, number, among)
        if mask is not None:
            lanes, among = (masked(context, builder, bits, sig.args[0], args[0]) for bits in (lanes, among))
        return result(context, builder, lanes, among)

    return lower


def _same_lanes(context: Any, builder: ir.IRBuilder, lanes: ir.Value, among: ir.Value) -> ir.Value:
    return lanes


def _all_of_them(context: Any, builder: ir.IRBuilder, lanes: ir.Value, among: ir.Value) -> Any:
    same = builder.icmp_unsigned("==", lanes, among)
    return context.make_tuple(builder, PAIR, (builder.select(same, lanes, ir.Constant(I64, 0)), same))


@device_function("match_any_sync")
def match_any_sync(mask: types.Type, value: types.Type) -> tuple[types.Type, Lower]:
    """``match_any_sync(mask, value)``: the active lanes in *mask* that have the same *value*, bits of a uint64."""
    return types.uint64, _match("match_any_sync", value, _same_lanes, mask)


@device_function("match_all_sync")
def match_all_sync(mask: types.Type, value: types.Type) -> tuple[types.Type, Lower]:
    """``match_all_sync(mask, value)``: the active lanes in *mask* and true where *value* is the same for all of
    them, else 0 and false."""
    return PAIR, _match("match_all_sync", value, _all_of_them, mask)


@device_function("match_any")
def match_any(value: types.Type) -> tuple[types.Type, Lower]:
    """``match_any(value)``: the active lanes that have the same *value*, bits of a uint64."""
    return types.uint64, _match("match_any", value, _same_lanes)


@device_function("match_all")
def match_all(value: types.Type) -> tuple[types.Type, Lower]:
    """``match_all(value)``: the active lanes and true where *value* is the same for all of them, else 0 and false."""
    return PAIR, _match("match_all", value, _all_of_them)
