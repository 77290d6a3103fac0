"""Lane operations under the names of HIP and the hardware: ``readlane``, ``mbcnt``, ``ds_permute``."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError

from hip_runtime.said_names import our
from numba_hip.language.stub import Lower, device_function, number_type
from numba_hip.named_calls import call_named

I32, I64 = ir.IntType(32), ir.IntType(64)


def _integer(function: str, argument: types.Type) -> types.Type:
    kind = number_type(argument)
    if not isinstance(kind, types.Integer):
        raise TypingError(f"{our(function)} takes an integer here, not a {kind}")
    return kind


def _moved(function: str, argument: types.Type) -> types.Type:
    kind = number_type(argument)
    if kind in (types.int32, types.uint32, types.int64, types.uint64, types.float32, types.float64):
        return kind
    if isinstance(kind, (types.Integer, types.Boolean)):
        return types.int32
    raise TypingError(f"{our(function)} moves integers, float32 and float64 between lanes, not {kind}")


@device_function("readlane")
def readlane(value: types.Type, lane: types.Type) -> tuple[types.Type, Lower]:
    """``readlane(value, lane)``: the *value* of lane number *lane*, which has to be uniform across the active lanes."""
    kind = _moved("readlane", value)
    _integer("readlane", lane)

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        number = context.cast(builder, args[1], sig.args[1], types.int32)
        return context.read_lane(builder, context.cast(builder, args[0], sig.args[0], kind), number)

    return kind, lower


@device_function("readfirstlane")
def readfirstlane(value: types.Type) -> tuple[types.Type, Lower]:
    """``readfirstlane(value)``: the *value* of the lowest active lane."""
    kind = _moved("readfirstlane", value)

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        return context.read_first_lane(builder, context.cast(builder, args[0], sig.args[0], kind))

    return kind, lower


@device_function("same_in_wave")
def same_in_wave(value: types.Type) -> tuple[types.Type, Lower]:
    """``same_in_wave(value)``: *value*, which is the same in all active lanes: AMD GPUs keep it in scalar registers."""
    kind = _moved("same_in_wave", value)

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        return context.keep_in_scalar(builder, context.cast(builder, args[0], sig.args[0], kind))

    return kind, lower


@device_function("mbcnt")
def mbcnt(mask: types.Type, base: types.Type = 0) -> tuple[types.Type, Lower]:
    """``mbcnt(mask, base=0)``: how many lanes in the 64 bits of *mask* are below this one, plus *base*; an int32."""
    kind = _integer("mbcnt", mask)
    _integer("mbcnt", base)

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        lanes = context.cast(builder, context.cast(builder, args[0], sig.args[0], kind), kind, types.uint64)
        own = builder.shl(I64(1), builder.zext(context.lane(builder), I64))
        below = builder.and_(lanes, builder.sub(own, I64(1)))
        count = builder.trunc(call_named(builder, "llvm.ctpop.i64", I64, below), I32)
        if isinstance(sig.args[1], types.Omitted):
            return count
        return builder.add(count, context.cast(builder, args[1], sig.args[1], types.int32))

    return types.int32, lower


def _permutation(function: str, index: types.Type, src: types.Type, move: str) -> tuple[types.Type, Lower]:
    _integer(function, index)
    kind = number_type(src)
    if kind not in (types.int32, types.uint32, types.float32) and not isinstance(src, types.Literal):
        raise TypingError(f"{our(function)} moves words of 32 bits between lanes, not {kind}")
    kind = types.int32 if isinstance(src, types.Literal) else kind

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        address = context.cast(builder, args[0], sig.args[0], types.int32)
        value = context.cast(builder, args[1], sig.args[1], kind)
        last = builder.sub(context.wave_size(builder), I32(1))
        lane = builder.and_(builder.lshr(address, I32(2)), last)
        return getattr(context, move)(builder, value, lane)

    return kind, lower


@device_function("ds_bpermute")
def ds_bpermute(index: types.Type, src: types.Type) -> tuple[types.Type, Lower]:
    """``ds_bpermute(index, src)``: the *src* of lane number *index* / 4, modulo the wave size: each lane pulls."""
    return _permutation("ds_bpermute", index, src, "shuffle")


@device_function("ds_permute")
def ds_permute(index: types.Type, src: types.Type) -> tuple[types.Type, Lower]:
    """``ds_permute(index, src)``: each lane pushes its *src* to lane number *index* / 4, modulo the wave size.

    The result is what was pushed to this lane: by the highest lane where there were several, 0 where there was none."""
    return _permutation("ds_permute", index, src, "push")
