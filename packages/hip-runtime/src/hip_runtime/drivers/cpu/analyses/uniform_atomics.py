"""Atomic operations of all lanes on one address: the lanes' operands can be combined, and the operation done once."""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction

INTEGER_REDUCTIONS = {
    "add": "add", "sub": "add", "and": "and", "or": "or", "xor": "xor",
    "max": "smax", "min": "smin", "umax": "umax", "umin": "umin",
}  # fmt: skip
FLOAT_REDUCTIONS = {
    "fadd": "fadd", "fsub": "fadd", "fmax": "fmax", "fmin": "fmin", "omax": "fmax", "omin": "fmin",
}  # fmt: skip
"""The reductions of LLVM that combine the operands of lanes, by atomic operation. Rounding depends on the order of
sums, which is up to the device for atomic operations of several threads."""

SUMS = frozenset({"add", "sub"})
"""Operations for which a lane's result follows from the old value and the operands of the lanes before it."""


def is_uniform_load(instruction: Instruction, block: Block, shapes: VectorShapes) -> bool:
    """Whether *instruction* in *block* is an atomic load from an address that is the same for all lanes, which can be
    made once for all of them."""
    if instruction.opcode != "load" or instruction.volatile or instruction.atomic is None:
        return False
    return instruction.atomic.orderings == ("monotonic",) and shapes.of(instruction.operands[0], block) == 0


def is_combinable(instruction: Instruction, block: Block, shapes: VectorShapes) -> bool:
    """Whether *instruction* in *block* is an atomic operation on an address that is the same for all lanes, which can
    be done once for all of them."""
    if instruction.opcode != "atomicrmw" or instruction.volatile:
        return False
    is_integer = isinstance(instruction.type, ir.IntType)
    if not is_integer and not isinstance(instruction.type, ir.FloatType | ir.DoubleType):
        return False
    if instruction.operation not in (INTEGER_REDUCTIONS if is_integer else FLOAT_REDUCTIONS):
        return False
    is_used = shapes.uses[instruction] > 0
    return shapes.of(instruction.operands[0], block) == 0 and (not is_used or instruction.operation in SUMS)


def gives_places(shapes: VectorShapes) -> bool:
    """Whether a kernel with *shapes* has an atomic operation from which each lane gets a result of its own, such as its
    place in a list. Gangs wait for it one after another, so fewer of them with more lanes take less time."""
    return any(
        value.opcode == "atomicrmw" and shapes.uses[value] > 0 and is_combinable(value, block, shapes)
        for block in shapes.order.blocks
        for value in block.instructions
    )
