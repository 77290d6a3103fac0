"""Clocks, waiting without work, and stops for a debugger."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.core.typing.templates import ConcreteTemplate, signature

from numba_hip.language.registry import lowering, typing
from numba_hip.language.stub import Lower, device_function, number_type


@device_function("clock64")
def clock64() -> tuple[types.Type, Lower]:
    """``clock64()``: cycles that a counter of this thread's processor has counted, an int64; modulo 2**20 on RDNA 3."""
    return types.int64, lambda context, builder, sig, args: context.clock(builder)


@device_function("wall_clock64")
def wall_clock64() -> tuple[types.Type, Lower]:
    """``wall_clock64()``: ticks of a counter of constant frequency, the same for all threads of a device, an int64."""
    return types.int64, lambda context, builder, sig, args: context.wall_clock(builder)


@device_function("nanosleep")
def nanosleep(ns: types.Type) -> tuple[types.Type, Lower]:
    """``nanosleep(ns)``: let other threads go first for about *ns* nanoseconds, an integer. A hint: on the CPU device,
    where the threads of a block take turns on one core, nothing waits."""
    if not isinstance(number_type(ns), types.Integer):
        raise TypingError(f"hip.nanosleep takes an integer, the number of nanoseconds, not a {number_type(ns)}")

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        context.sleep(builder, context.cast(builder, args[0], sig.args[0], types.uint32))
        return context.get_dummy_value()

    return types.void, lower


@typing.register_global(breakpoint)
class _Breakpoint(ConcreteTemplate):
    """``breakpoint()``: where ``rocgdb`` stops a wave; without it, and on the CPU device, threads go on."""

    cases = [signature(types.void)]


@lowering.lower(breakpoint)
def _stop(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    context.stop_for_debugger(builder)
    return context.get_dummy_value()
