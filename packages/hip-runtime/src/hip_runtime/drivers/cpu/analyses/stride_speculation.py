"""Addresses that are strided unless an index is negative, or wraps around.

Python counts a negative index from the end, so Numba adds the axis's extent to it. This ``select`` makes the address
varying. If the index itself is strided, one comparison of its base tells whether it is negative in any lane. It hardly
ever is; in that case the address has its *speculated* shape. The same comparison tells whether an index of fewer bits
than an address wraps around in any lane, as ``int32(i + k)`` may, where *k* is the counter of a loop. LLVM writes such
an index as the upper bits of a number that was shifted to the left, or the lower bits of one.
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING, Shape
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Constant, Instruction, Value

_EXTENSIONS = frozenset({"sext", "zext"})
_SHIFTS = frozenset({"ashr", "lshr"})

_FEWEST_BITS = 9
"""Bits of the shortest index that is speculated on: one in eight gangs of 64 lanes reaches over its end at most."""

_PROPAGATING = frozenset({"add", "sub", "or", "mul", "shl", "getelementptr"})
"""Instructions that are strided if their operands are."""


@dataclass(frozen=True)
class SpeculatedStride:
    """The stride that a varying value has unless an index is negative or wraps around. For a ``select``, also a number
    that is at *least* so much in all lanes then, such as the index, and the operand that is chosen if it is; for an
    index that is extended, that index; for the low *bits* of a number, how many these are."""

    shape: int
    index: Value | None = None
    chosen: Value | None = None
    least: int = 0
    bits: int | None = None


def speculate_strides(shapes: VectorShapes) -> dict[Instruction, SpeculatedStride]:
    """The varying values that are strided unless an index is negative or wraps around."""
    found: dict[Instruction, SpeculatedStride] = {}
    for block in shapes.order.blocks:
        for instruction in block.instructions:
            if shapes.at_definition(instruction) is not VARYING:
                continue
            speculated = None
            if instruction.opcode == "select":
                speculated = _speculate_select(shapes, found, instruction, block)
            elif instruction.opcode in _PROPAGATING:
                speculated = _propagate(shapes, found, instruction, block)
            elif instruction.opcode in _EXTENSIONS | _SHIFTS:
                speculated = _speculate_extension(shapes, found, instruction, block)
            elif instruction.opcode == "and":
                speculated = _speculate_mask(shapes, instruction, block)
            if speculated is not None:
                found[instruction] = speculated
    return found


def find_index_selects(shapes: VectorShapes) -> dict[Instruction, Value]:
    """Each ``select`` on whether an index is negative, with the operand that is chosen if it is not."""
    selects = (value for value in shapes.homes if value.opcode == "select")
    return {value: matched[1] for value in selects if (matched := match_index_select(value)) is not None}


def speculated_shape(
    shapes: VectorShapes, found: dict[Instruction, SpeculatedStride], value: Value, block: Block
) -> Shape:
    """The stride of *value* as seen from *block*, speculated or certain."""
    shape = shapes.of(value, block)
    if shape is VARYING and isinstance(value, Instruction) and value in found:
        return VARYING if shapes.leaves_masked_loop(value, block) else found[value].shape
    return shape


def _propagate(
    shapes: VectorShapes, found: dict[Instruction, SpeculatedStride], instruction: Instruction, block: Block
) -> SpeculatedStride | None:
    operands = [speculated_shape(shapes, found, value, block) for value in instruction.operands]
    shape = shapes.infer_from(instruction, block, operands)
    return None if shape is VARYING else SpeculatedStride(shape)


def _speculate_extension(
    shapes: VectorShapes, found: dict[Instruction, SpeculatedStride], extension: Instruction, block: Block
) -> SpeculatedStride | None:
    """An index that is extended, or the upper bits of a number of which neighbours have the same lower ones."""
    index, *by = extension.operands
    bits = signed_number(by[0]) if by else 0
    shape = speculated_shape(shapes, found, index, block)
    assert isinstance(index.type, ir.IntType)
    if not shape or bits is None or not 0 <= bits <= index.type.width - _FEWEST_BITS or shape % (1 << bits):
        return None
    return SpeculatedStride(shape >> bits, index)


def _speculate_mask(shapes: VectorShapes, mask: Instruction, block: Block) -> SpeculatedStride | None:
    number, low = mask.operands
    shape, ones = shapes.of(number, block), signed_number(low)
    if not shape or ones is None or ones & (ones + 1) or ones.bit_length() < _FEWEST_BITS:
        return None
    return SpeculatedStride(shape, bits=ones.bit_length())


def match_index_select(select: Instruction) -> tuple[Value, Value, int] | None:
    """The index that a ``select`` compares with 0, the operand that is chosen if it is not negative, and the least that
    the index is then. LLVM writes ``i + w - 1 < 0`` as ``i + w < 1``, without a sign where *i* and *w* are known not to
    be negative, and ``i - 1 < 0`` as ``i == 0`` then."""
    condition, *arms = select.operands
    if not isinstance(condition, Instruction) or condition.opcode != "icmp":
        return None
    index, limit = condition.operands
    if not isinstance(index.type, ir.IntType) or not isinstance(limit, Constant):
        return None
    number, predicate = signed_number(limit), condition.predicate
    has_sign = predicate.startswith("s")
    if number is not None and abs(number) < 1 << index.type.width // 2 and (has_sign or number >= 0):
        if predicate in ("slt", "ult") and (number == 0 or signed_number(arms[1]) == 0):
            return index, arms[1], number
        if predicate in ("sgt", "ugt") and (number == -1 or signed_number(arms[0]) == 0):
            return index, arms[0], number + 1
    if predicate in ("eq", "ne") and limit.number == 0:
        return index, arms[predicate == "eq"], 1
    return None


def is_tested_in(block: Block, select: Instruction, shapes: VectorShapes) -> bool:
    """Whether it is in *block* that the condition of *select* is computed."""
    condition = select.operands[0]
    return isinstance(condition, Instruction) and shapes.homes[condition] is block


def _speculate_select(
    shapes: VectorShapes, found: dict[Instruction, SpeculatedStride], select: Instruction, block: Block
) -> SpeculatedStride | None:
    matched = match_index_select(select)
    if matched is None or not is_tested_in(block, select, shapes):
        return None
    index, chosen, least = matched
    shape = speculated_shape(shapes, found, chosen, block)
    if shape is VARYING or speculated_shape(shapes, found, index, block) is VARYING:
        return None
    return SpeculatedStride(shape, index, chosen, least)
