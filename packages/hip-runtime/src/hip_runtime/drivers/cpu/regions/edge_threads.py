"""Regions in which single threads of a row do more than the others, as those at the edges of a tile that load its halo.

LLVM takes a loop over threads apart at such branches: what is left of a row of 16 or 32 is too short for its vectors,
or runs under masks that do not fit them. Gangs execute a row at once, and then the rest for its one lane.
"""

from __future__ import annotations

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.ir.model import Instruction, Value
from hip_runtime.drivers.cpu.regions.formation import Region, RegionGraph

_DERIVING = frozenset({"zext", "sext", "trunc", "add", "sub", "or", "xor", "and", "select", "freeze"})
"""What conditions on indices are computed by."""


def has_edge_threads(region: Region, graph: RegionGraph, axis: str) -> bool:
    """Whether *region* has a branch that tells threads by whether their index along *axis* equals some number."""
    divergent = graph.uniformity.divergent_branches
    return any(_compares_index(block.terminator, axis) for block in region.blocks if block in divergent)


def _compares_index(end: Instruction, axis: str) -> bool:
    """Whether the branch or ``switch`` *end* depends on whether a thread's index along *axis* equals a number."""
    waiting: list[tuple[Value, bool]] = [(end.operands[0], end.opcode == "switch")]
    seen = set(waiting)
    while waiting:
        value, is_compared = waiting.pop()
        if not isinstance(value, Instruction):
            continue
        if is_compared and value.callee == spmd.thread_idx(axis):
            return True
        if value.opcode in _DERIVING or (value.opcode == "icmp" and value.predicate in ("eq", "ne")):
            parts = [(part, is_compared or value.opcode == "icmp") for part in value.operands]
            waiting += [part for part in parts if part not in seen]
            seen.update(parts)
    return False
