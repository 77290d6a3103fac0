"""Addresses that are strided as long as no index is negative.

Python counts an index below 0 from the end, so Numba adds the extent of the axis to it: a choice for each lane, which
makes an address vary that would be strided. Where the index itself is strided, one comparison of its base tells
whether any lane has a negative one. Hardly ever does; then the address has its *speculated* shape.
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.vector_shapes import VARYING, Shape, VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Constant, Instruction, Value

_CARRYING = frozenset({"add", "sub", "or", "mul", "shl", "getelementptr"})
"""Instructions that are strided where their operands are."""


@dataclass(frozen=True)
class SpeculatedStride:
    """The stride that something varying usually has. Of a ``select``, also the index that no lane has a negative one
    of then, and the operand that it is then."""

    shape: int
    index: Value | None = None
    chosen: Value | None = None


def speculate_strides(shapes: VectorShapes) -> dict[Instruction, SpeculatedStride]:
    """What varies, and usually does not."""
    found: dict[Instruction, SpeculatedStride] = {}
    for block in shapes.order.blocks:
        for instruction in block.instructions:
            if shapes.own(instruction) is not VARYING:
                continue
            speculated = None
            if instruction.opcode == "select":
                speculated = _choose(shapes, found, instruction, block)
            elif instruction.opcode in _CARRYING:
                speculated = _carry(shapes, found, instruction, block)
            if speculated is not None:
                found[instruction] = speculated
    return found


def find_choices(shapes: VectorShapes) -> dict[Instruction, Value]:
    """Choices by whether an index is negative, with what is chosen where it is not."""
    found = {}
    for value, block in shapes.homes.items():
        if value.opcode == "select":
            read = _read_choice(value, block, shapes)
            if read is not None:
                found[value] = read[1]
    return found


def speculated_shape(
    shapes: VectorShapes, found: dict[Instruction, SpeculatedStride], value: Value, block: Block
) -> Shape:
    """The stride that *value* has for *block*, usually or always."""
    shape = shapes.of(value, block)
    if shape is VARYING and isinstance(value, Instruction) and value in found:
        return VARYING if shapes.leaves_masked_loop(value, block) else found[value].shape
    return shape


def _carry(
    shapes: VectorShapes, found: dict[Instruction, SpeculatedStride], instruction: Instruction, block: Block
) -> SpeculatedStride | None:
    operands = [speculated_shape(shapes, found, value, block) for value in instruction.operands]
    shape = shapes.infer_from(instruction, block, operands)
    return None if shape is VARYING else SpeculatedStride(shape)


def _read_choice(choice: Instruction, block: Block, shapes: VectorShapes) -> tuple[Value, Value] | None:
    """The index that a choice is made by, and what is chosen where that is not negative."""
    condition, *arms = choice.operands
    if not isinstance(condition, Instruction) or condition.opcode != "icmp" or shapes.homes[condition] is not block:
        return None
    index, limit = condition.operands
    if not isinstance(index.type, ir.IntType) or not isinstance(limit, Constant):
        return None
    if (condition.predicate, limit.number) == ("slt", 0):
        return index, arms[1]
    if (condition.predicate, limit.number) == ("sgt", (1 << index.type.width) - 1):
        return index, arms[0]
    return None


def _choose(
    shapes: VectorShapes, found: dict[Instruction, SpeculatedStride], choice: Instruction, block: Block
) -> SpeculatedStride | None:
    read = _read_choice(choice, block, shapes)
    if read is None:
        return None
    index, chosen = read
    shape = speculated_shape(shapes, found, chosen, block)
    if shape is VARYING or shapes.of(index, block) is VARYING:
        return None
    return SpeculatedStride(shape, index, chosen)
