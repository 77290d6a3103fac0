"""Addresses that are strided as long as no index is negative.

Python counts an index below 0 from the end, so Numba adds the extent of the axis to it: a choice for each lane, which
makes an address vary that would be strided. Where the index itself is strided, one comparison of its base tells
whether any lane has a negative one. Hardly ever does; then the address has its *usual* shape.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.launch_frame import I1, allocate
from hip_runtime.drivers.cpu.analyses.vector_shapes import VARYING, Shape, VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Constant, Instruction, Value
from hip_runtime.drivers.cpu.ir.writer import write_instruction
from hip_runtime.drivers.cpu.vectorize.vector_builder import VectorBuilder

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
            usual = None
            if instruction.opcode == "select":
                usual = _choose(shapes, found, instruction, block)
            elif instruction.opcode in _CARRYING:
                usual = _carry(shapes, found, instruction, block)
            if usual is not None:
                found[instruction] = usual
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


def _shape_of(shapes: VectorShapes, found: dict[Instruction, SpeculatedStride], value: Value, block: Block) -> Shape:
    """The stride that *value* has for *block*, usually or always."""
    shape = shapes.of(value, block)
    if shape is VARYING and isinstance(value, Instruction) and value in found:
        return VARYING if shapes.leaves_masked_loop(value, block) else found[value].shape
    return shape


def _carry(
    shapes: VectorShapes, found: dict[Instruction, SpeculatedStride], instruction: Instruction, block: Block
) -> SpeculatedStride | None:
    operands = [_shape_of(shapes, found, value, block) for value in instruction.operands]
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
    shape = _shape_of(shapes, found, chosen, block)
    if shape is VARYING or shapes.of(index, block) is VARYING:
        return None
    return SpeculatedStride(shape, index, chosen)


class SpeculativeBases:
    """Writes the bases of what is usually strided, and whether it is so now. *scalar* gives those of other values."""

    def __init__(
        self, shapes: VectorShapes, lanes: VectorBuilder, entry: ir.IRBuilder, scalar: Callable[[Value], ir.Value]
    ) -> None:
        self._shapes = shapes
        self._lanes = lanes
        self._builder = lanes.builder
        self._entry = entry
        self._scalar = scalar
        self._found = speculate_strides(shapes)
        self._block: Block
        self._values: dict[Instruction, tuple[ir.Value, ir.Value]] = {}
        self._variables: dict[Instruction, tuple[ir.Value, ir.Value]] = {}

    def begin(self, block: Block) -> None:
        """Go on with another block."""
        self._block, self._values = block, {}

    def has_stride(self, value: Value, stride: int) -> bool:
        """Whether *value* usually has *stride*, which is not 0."""
        return stride > 0 and _shape_of(self._shapes, self._found, value, self._block) == stride

    def base(self, value: Value) -> tuple[ir.Value, ir.Value]:
        """The base of what is strided, usually or always, and whether it is."""
        if self._shapes.of(value, self._block) is not VARYING:
            return self._scalar(value), I1(1)
        assert isinstance(value, Instruction)
        known = self._values.get(value)
        if known is None:
            base, holds = self._places(value)
            known = self._builder.load(base, typ=value.type), self._builder.load(holds, typ=I1)
            self._values[value] = known
        return known

    def write(self, instruction: Instruction) -> None:
        """Write the base of *instruction*, where it has one usually."""
        usual = self._found.get(instruction)
        if usual is None:
            return
        if usual.index is not None:
            assert usual.chosen is not None
            base, holds = self.base(usual.chosen)
            self._values[instruction] = base, self._both(holds, self._none_negative(usual.index))
            return
        operands = [self.base(value) for value in instruction.operands]
        base = write_instruction(self._builder, as_base(instruction), [operand for operand, _ in operands])
        holds = I1(1)
        for _, one in operands:
            holds = self._both(holds, one)
        self._values[instruction] = base, holds

    def keep(self, instruction: Instruction) -> None:
        """Store what was written for *instruction* where other blocks find it."""
        if instruction in self._values:
            for value, place in zip(self._values[instruction], self._places(instruction), strict=True):
                self._builder.store(value, place)

    def _both(self, left: ir.Value, right: ir.Value) -> ir.Value:
        if isinstance(left, ir.Constant):
            return right if left.constant else left
        if isinstance(right, ir.Constant):
            return left if right.constant else right
        return self._builder.and_(left, right)

    def _places(self, value: Instruction) -> tuple[ir.Value, ir.Value]:
        found = self._variables.get(value)
        if found is None:
            places = allocate(self._entry, value.type, f"{value.name}.usual"), allocate(self._entry, I1, "is.usual")
            found = self._variables[value] = places
        return found

    def _none_negative(self, index: Value) -> ir.Value:
        """Whether no lane has a negative *index*, and none has overflowed."""
        shape = self._shapes.of(index, self._block)
        assert shape is not VARYING
        kind = index.type
        reach = (self._lanes.width - 1) * abs(shape)
        most = (1 << kind.width - 1) - 1 - reach
        if most < 0:
            return I1(0)
        least = self._scalar(index)
        if shape < 0:
            least = self._builder.sub(least, ir.Constant(kind, reach))
        return self._builder.icmp_unsigned("<=", least, ir.Constant(kind, most))


def as_base(instruction: Instruction) -> Instruction:
    """*instruction* as the base of something strided has it: that of a lane which may not be active, so no flag holds,
    and an ``or`` is the sum that it is for active lanes."""
    return replace(instruction, opcode="add" if instruction.opcode == "or" else instruction.opcode, flags=())
