"""Loops in which a thread waits for another one: what it tries again is the very same as before.

Threads that run one after another pass a lock on: each gives it back before the next asks for it. Lanes do not: the one
that has it waits behind the loop for those that ask.
"""

from __future__ import annotations

from hip_runtime.drivers.cpu.spmd.ir.graph import Block, Constant, Instruction, Value
from hip_runtime.drivers.cpu.spmd.vectors.shapes import Shapes

_SAME_AGAIN = frozenset("xchg and or max min umax umin fmax fmin".split())
"""Atomic modifications that change nothing when they are done twice."""


def waits_for_lanes(shapes: Shapes, loop: frozenset[Block]) -> bool:
    """Whether lanes leave *loop* depending on what an access to one and the same place finds, which changes nothing
    when it is done again."""
    waiting: list[Value] = [
        block.terminator.operands[0]
        for block in loop & shapes.parting
        if any(target not in loop for target in shapes.successors(block))
    ]
    fenced = any(value.opcode == "fence" for block in loop for value in block.instructions)
    seen: set[Value] = set()
    while waiting:
        value = waiting.pop()
        if value in seen or not isinstance(value, Instruction) or shapes.homes.get(value) not in loop:
            continue
        seen.add(value)
        if _looks_again(value, fenced) and all(_stays(operand, shapes, loop) for operand in value.operands):
            return True
        waiting += value.operands
    return False


def _looks_again(instruction: Instruction, fenced: bool) -> bool:
    """Whether *instruction* may find something else when it is done again; a plain load does so behind a fence."""
    if instruction.opcode == "load":
        return instruction.volatile or instruction.atomic is not None or fenced
    if instruction.opcode == "atomicrmw":
        operand = instruction.operands[1]
        adds_nothing = isinstance(operand, Constant) and operand.number == 0
        return instruction.operation in _SAME_AGAIN or adds_nothing
    return instruction.opcode == "cmpxchg"


def _stays(value: Value, shapes: Shapes, loop: frozenset[Block]) -> bool:
    """Whether *value* is the same in each round."""
    if not isinstance(value, Instruction) or shapes.homes.get(value) not in loop:
        return True
    return value.opcode in ("getelementptr", "freeze") and all(
        _stays(operand, shapes, loop) for operand in value.operands
    )
