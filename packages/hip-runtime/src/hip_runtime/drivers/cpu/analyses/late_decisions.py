"""Branches of a loop that wait for what it loads from anywhere in memory.

A processor predicts that the loop goes on. When the load is there and it does not, nothing of what follows has begun:
not the next thread's loads, either, which would have been on their way together.
"""

from __future__ import annotations

from hip_runtime.drivers.cpu.analyses.unit_stride_loops import UnitStrideLoops
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction
from hip_runtime.drivers.cpu.llvmir import I1


def is_decided_late(block: Block, loop: frozenset[Block], shapes: VectorShapes, steps: UnitStrideLoops) -> bool:
    """Whether what an iteration of *loop* loads decides where it goes from *block*; not what is loaded in known
    *steps*, nor what goes through a row by steps that data chooses: the processor guesses what is loaded next."""
    waiting, seen = list(block.terminator.operands), set(block.terminator.operands)
    while waiting:
        value = waiting.pop()
        if not isinstance(value, Instruction) or shapes.homes.get(value) not in loop:
            continue
        if value.opcode == "load" and steps.step(value.address, loop) is None:
            return True
        if value.opcode != "phi" and not _is_chosen(value):
            waiting += set(value.operands) - seen
            seen.update(value.operands)
    return False


def _is_chosen(value: Instruction) -> bool:
    """Whether *value* is a number that a condition chooses."""
    return value.type != I1 and any(operand.type == I1 for operand in value.operands)
