"""Barriers at the end of a kernel, behind which no thread does anything: nobody notices whether threads wait there.

Only those that every thread reaches count. Where some return before, or go another way, the barrier is an error of the
program, which has to be found.
"""

from __future__ import annotations

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.analyses.cfg import block_successors, find_following
from hip_runtime.drivers.cpu.analyses.effects import has_effect
from hip_runtime.drivers.cpu.ir.control_flow import ControlFlow
from hip_runtime.drivers.cpu.ir.model import Block, Function


def waits_at_end_only(function: Function) -> bool:
    """Whether all that threads of the kernel *function* wait for is one barrier that all reach, and that nothing
    follows."""
    waiting = [block for block in function.blocks if _place(block) is not None]
    if len(waiting) != 1:
        return False
    (last,) = waiting
    place = _place(last)
    behind = find_following(last, block_successors)
    if place is None or last in behind or any(has_effect(value) for value in last.instructions[place + 1 :]):
        return False
    if any(has_effect(value) for block in behind for value in block.instructions):
        return False
    flow = ControlFlow(function)
    ends = [block for block in flow.reachable if not block.successors]
    return all(flow.dominates(last, block) for block in ends)


def _place(block: Block) -> int | None:
    """Where *block* has a barrier."""
    calls = (place for place, value in enumerate(block.instructions) if value.callee == spmd.BARRIER)
    return next(calls, None)
