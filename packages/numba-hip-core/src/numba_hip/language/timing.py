"""Clocks, sleeping, and breakpoints."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.core.typing.templates import ConcreteTemplate, signature

from hip_runtime.said_names import our
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
    """``nanosleep(ns)``: pause for about *ns* nanoseconds, an integer. A hint: on the CPU device, which runs the
    threads of a block on one core, it takes no time. What is read before and after it is read twice, so a loop around
    it may wait for another thread."""
    if not isinstance(number_type(ns), types.Integer):
        raise TypingError(f"{our('nanosleep')} takes an integer, the number of nanoseconds, not a {number_type(ns)}")

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        context.sleep(builder, context.cast(builder, args[0], sig.args[0], types.uint32))
        return context.get_dummy_value()

    return types.void, lower


@typing.register_global(breakpoint)
class _Breakpoint(ConcreteTemplate):
    """``breakpoint()``: stops a wave in ``rocgdb``; without it, and on the CPU device, threads continue."""

    cases = [signature(types.void)]


@lowering.lower(breakpoint)
def _stop(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    context.stop_for_debugger(builder)
    return context.get_dummy_value()
