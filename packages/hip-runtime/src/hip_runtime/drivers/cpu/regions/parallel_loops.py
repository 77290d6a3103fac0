"""Telling LLVM that the turns of a loop over threads do not depend on each other, so that it can be vectorised.

Between two synchronising operations the threads of a block run in any order, or at once: what one of them writes no
other may read or write there, or they race. So the plain loads and stores of a region are independent from one turn to
the next, which ``llvm.loop.parallel_accesses`` says. This does not hold

- of atomic and volatile accesses, and of calls that may hold some: a region with one is left as it is;
- of private memory that threads use one after another in the same place: a kernel with some is left as it is;
- of the variables that regions are written with: these are not marked, and LLVM makes registers of them.

Values that are the same for all threads are stored by each of them to one place; in any order that gives the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.analyses.uniformity import is_arithmetic
from hip_runtime.drivers.cpu.ir.loop_metadata import DistinctNode
from hip_runtime.drivers.cpu.ir.model import Instruction
from hip_runtime.drivers.cpu.ir.writer import Assembled
from hip_runtime.drivers.cpu.regions.form import Region


def is_independent(region: Region) -> bool:
    """Whether the turns of the loop over the threads of *region* do not depend on each other."""
    return all(_is_independent(instruction) for block in region.blocks for instruction in block.instructions)


def _is_independent(instruction: Instruction) -> bool:
    if instruction.opcode == "call":
        return intrinsics.is_pure(instruction.callee) or is_arithmetic(instruction.callee)
    return not (
        instruction.volatile
        or instruction.atomic is not None
        or instruction.opcode in ("atomicrmw", "cmpxchg", "fence")
    )


def mark_independent(blocks: Sequence[ir.Block], variables: set[ir.Value]) -> ir.values.MDValue:
    """What says that the turns of a loop that consists of *blocks* do not depend on each other; *variables* are the
    places of its local variables."""
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
