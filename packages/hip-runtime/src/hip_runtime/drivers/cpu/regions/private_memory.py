"""Private memory of threads: which of a kernel's allocas need a place for each thread.

An alloca that is used within one region only, and that region is not run again by the same thread, needs no more than
one place, as its contents are of no use once the thread has left the region. All others need one for each thread.
"""

from __future__ import annotations

from collections.abc import Iterable

from hip_runtime.drivers.cpu.ir.model import Instruction
from hip_runtime.drivers.cpu.regions.form import Region, RegionGraph

_DERIVING = frozenset({"getelementptr", "bitcast", "addrspacecast", "phi", "select", "freeze"})
_ACCESSING = frozenset({"load", "icmp"})


def find_kept_allocas(program: RegionGraph) -> tuple[list[Instruction], list[Instruction]]:
    """The allocas of the kernel: those that need a place for each thread, and those that need one."""
    again = _repeated_regions(program.regions)
    kept: list[Instruction] = []
    passing: list[Instruction] = []
    for alloca in (value for value in program.homes if value.opcode == "alloca"):
        users, escapes = _users(program, alloca)
        blocks = {program.homes[user] for user in users if user in program.homes}
        regions = [region for region in program.regions if not blocks.isdisjoint(region.blocks)]
        single = len(regions) == 1 and regions[0] not in again
        (passing if len(program.regions) == 1 or (single and not escapes) else kept).append(alloca)
    return kept, passing


def _users(program: RegionGraph, alloca: Instruction) -> tuple[set[Instruction], bool]:
    """Instructions that use the memory of *alloca*, and whether others may."""
    derived = {alloca}
    users: set[Instruction] = set()
    escapes = False
    changed = True
    while changed:
        changed = False
        for instruction in _all_instructions(program):
            if instruction in users or derived.isdisjoint(instruction.operands):
                continue
            users.add(instruction)
            changed = True
            if instruction.opcode in _DERIVING:
                derived.add(instruction)
            elif not (instruction.opcode in _ACCESSING or _only_writes_to(instruction, derived)):
                escapes = True
    return users, escapes


def _all_instructions(program: RegionGraph) -> Iterable[Instruction]:
    for block in program.order.blocks:
        yield from block.instructions
    for point in program.points:
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
