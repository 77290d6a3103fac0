"""Barriers within a block, and memory fences."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError

from hip_runtime.said_names import our
from numba_hip.language.stub import Lower, device_function


def _nothing(context: Any, builder: ir.IRBuilder) -> ir.Value:
    del builder
    return context.get_dummy_value()


@device_function("syncthreads")
def syncthreads() -> tuple[types.Type, Lower]:
    """``syncthreads()``: wait until every thread of the block is here; what they wrote before is seen by all after."""

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        context.barrier(builder)
        return _nothing(context, builder)

    return types.void, lower


def _voting(name: str, predicate: types.Type, result: Any) -> tuple[types.Type, Lower]:
    kind = types.unliteral(predicate)
    if not isinstance(kind, (types.Integer, types.Boolean)):
        raise TypingError(f"{our(name)}({kind}): the predicate has to be an integer or a boolean")

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        vote = context.is_true(builder, kind, context.cast(builder, args[0], sig.args[0], kind))
        return result(context, builder, vote)

    return types.int32, lower


@device_function("syncthreads_count")
def syncthreads_count(predicate: types.Type) -> tuple[types.Type, Lower]:
    """``syncthreads_count(predicate)``: `syncthreads`, and the number of threads whose *predicate* is true."""
    return _voting("syncthreads_count", predicate, lambda context, builder, vote: context.barrier_count(builder, vote))


@device_function("syncthreads_and")
def syncthreads_and(predicate: types.Type) -> tuple[types.Type, Lower]:
    """``syncthreads_and(predicate)``: `syncthreads`, and 1 if *predicate* is true for every thread, else 0."""

    def all_of(context: Any, builder: ir.IRBuilder, vote: ir.Value) -> ir.Value:
        against = context.barrier_count(builder, builder.not_(vote))
        return builder.zext(builder.icmp_signed("==", against, ir.Constant(against.type, 0)), against.type)

    return _voting("syncthreads_and", predicate, all_of)


@device_function("syncthreads_or")
def syncthreads_or(predicate: types.Type) -> tuple[types.Type, Lower]:
    """``syncthreads_or(predicate)``: `syncthreads`, and 1 if *predicate* is true for any thread, else 0."""

    def any_of(context: Any, builder: ir.IRBuilder, vote: ir.Value) -> ir.Value:
        votes = context.barrier_count(builder, vote)
        return builder.zext(builder.icmp_signed("!=", votes, ir.Constant(votes.type, 0)), votes.type)

    return _voting("syncthreads_or", predicate, any_of)


def _fence(scope: str) -> tuple[types.Type, Lower]:
    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        context.fence(builder, scope)
        return _nothing(context, builder)

    return types.void, lower


@device_function("threadfence")
def threadfence() -> tuple[types.Type, Lower]:
    """``threadfence()``: all threads of the device see what this thread wrote before, before what it writes after."""
    return _fence("device")


@device_function("threadfence_block")
def threadfence_block() -> tuple[types.Type, Lower]:
    """``threadfence_block()``: as `threadfence`, for the threads of this block."""
    return _fence("block")


@device_function("threadfence_system")
def threadfence_system() -> tuple[types.Type, Lower]:
    """``threadfence_system()``: as `threadfence`, for all threads of all devices and of the host."""
    return _fence("system")
