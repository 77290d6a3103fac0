"""Marks loops over threads whose iterations are independent, so that LLVM vectorises them.

Between two sync points the threads of a block run in any order, or in parallel: what one writes, no other may read or
write there without a race. So the plain accesses of a region are independent across iterations, which
``llvm.loop.parallel_accesses`` states. Exceptions are

- atomic and volatile accesses, and calls that may make some: a region with one is not marked;
- private memory that threads use one after another at the same address: a kernel with some is not marked;
- what a thread stores and then accesses again: LLVM makes one vector store of what several threads store to neighbours,
  at the last of these stores, and in loops with this mark it does not look whether one of the threads accesses such an
  element before. A region where that may be is not marked;
- the stack slots of a region's values: these are not marked, and LLVM promotes them to registers.

Uniform values are stored by every thread to the same address, with the same result in any order.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.analyses.block_memory import may_overlap
from hip_runtime.drivers.cpu.analyses.cfg import find_following
from hip_runtime.drivers.cpu.analyses.uniformity import is_arithmetic
from hip_runtime.drivers.cpu.ir.loop_metadata import DistinctNode
from hip_runtime.drivers.cpu.ir.model import Instruction
from hip_runtime.drivers.cpu.ir.writer import Assembled
from hip_runtime.drivers.cpu.regions.formation import Region


def is_independent(region: Region) -> bool:
    """Whether the iterations of a loop over the threads of *region* are independent."""
    instructions = [instruction for block in region.blocks for instruction in block.instructions]
    return all(map(_is_independent, instructions)) and not _accesses_again(region)


def _is_independent(instruction: Instruction) -> bool:
    if instruction.opcode == "call":
        return intrinsics.is_pure(instruction.callee) or is_arithmetic(instruction.callee)
    return not (
        instruction.volatile
        or instruction.atomic is not None
        or instruction.opcode in ("atomicrmw", "cmpxchg", "fence")
    )


def _accesses_again(region: Region) -> bool:
    """Whether a thread may store something, and then access the same memory by another instruction."""
    inside = set(region.blocks)
    for block in region.blocks:
        for position, store in enumerate(block.instructions):
            if store.opcode != "store":
                continue
            behind = find_following(block, lambda other: [target for target in other.successors if target in inside])
            rest = [] if block in behind else block.instructions[position + 1 :]
            following = [*rest, *(value for other in behind for value in other.instructions)]
            if any(value is not store and _overlap(store, value) for value in following):
                return True
    return False


def _overlap(store: Instruction, access: Instruction) -> bool:
    if access.opcode not in ("load", "store"):
        return False
    return may_overlap(store.operands[1], access.address)


def mark_independent(blocks: Sequence[ir.Block], variables: set[ir.Value]) -> ir.values.MDValue:
    """Loop metadata for a loop of *blocks* with independent iterations; *variables* are the stack slots of its
    values."""
    module = blocks[0].function.module
    group = DistinctNode(module, [], loop=False)
    for block in blocks:
        for instruction in block.instructions:
            if _accesses_memory(instruction) and variables.isdisjoint(instruction.operands):
                instruction.set_metadata("llvm.access.group", group)
    return module.add_metadata([ir.MetaDataString(module, "llvm.loop.parallel_accesses"), group])


def _accesses_memory(instruction: ir.Instruction) -> bool:
    if isinstance(instruction, Assembled):
        return str(instruction.opname).startswith(("load ", "store "))
    return isinstance(instruction, ir.instructions.LoadInstr | ir.instructions.StoreInstr)
