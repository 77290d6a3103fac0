"""Private memory: which of a kernel's allocas need memory for each thread.

An alloca that is used in a single region, which no thread runs twice, can be shared by all threads, as its contents are
dead once a thread has left the region. All others need memory for each thread.
"""

from __future__ import annotations

from collections.abc import Iterable

from hip_runtime.drivers.cpu.ir.model import Instruction
from hip_runtime.drivers.cpu.regions.formation import Region, RegionGraph

_DERIVING = frozenset({"getelementptr", "bitcast", "addrspacecast", "phi", "select", "freeze"})
_ACCESSING = frozenset({"load", "icmp"})


def find_kept_allocas(graph: RegionGraph) -> tuple[list[Instruction], list[Instruction]]:
    """The kernel's allocas: those that need memory for each thread, and those that threads can share."""
    repeated = _repeated_regions(graph.regions)
    kept: list[Instruction] = []
    shared: list[Instruction] = []
    for alloca in (value for value in graph.homes if value.opcode == "alloca"):
        users, escapes = _users(graph, alloca)
        blocks = {graph.homes[user] for user in users if user in graph.homes}
        regions = [region for region in graph.regions if not blocks.isdisjoint(region.blocks)]
        single = len(regions) == 1 and regions[0] not in repeated
        (shared if len(graph.regions) == 1 or (single and not escapes) else kept).append(alloca)
    return kept, shared


def _users(graph: RegionGraph, alloca: Instruction) -> tuple[set[Instruction], bool]:
    """Instructions that use the memory of *alloca*, and whether others may."""
    derived = {alloca}
    users: set[Instruction] = set()
    escapes = False
    changed = True
    while changed:
        changed = False
        for instruction in _all_instructions(graph):
            if instruction in users or derived.isdisjoint(instruction.operands):
                continue
            users.add(instruction)
            changed = True
            if instruction.opcode in _DERIVING:
                derived.add(instruction)
            elif not (instruction.opcode in _ACCESSING or _only_writes_to(instruction, derived)):
                escapes = True
    return users, escapes


def _all_instructions(graph: RegionGraph) -> Iterable[Instruction]:
    for block in graph.order.blocks:
        yield from block.instructions
    for point in graph.points:
        yield point.call


def _only_writes_to(instruction: Instruction, derived: set[Instruction]) -> bool:
    if instruction.opcode == "store":
        return instruction.operands[0] not in derived
    if instruction.opcode in ("atomicrmw", "cmpxchg"):
        return derived.isdisjoint(instruction.operands[1:])
    return instruction.callee.startswith(("llvm.memcpy.", "llvm.memmove.", "llvm.memset."))


def _repeated_regions(regions: list[Region]) -> set[Region]:
    """Regions that a thread can run more than once."""
    by_start = {region.start: region for region in regions}
    repeated = set()
    for region in regions:
        found: set[Region] = set()
        waiting = [region]
        while waiting:
            for point in waiting.pop().exits:
                target = by_start[point]
                if target not in found:
                    found.add(target)
                    waiting.append(target)
        if region in found:
            repeated.add(region)
    return repeated
