"""The bases of speculated strides, and the run-time checks that the speculation holds: that no index is negative or
wraps around."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.analyses.stride_speculation import speculate_strides, speculated_shape
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value
from hip_runtime.drivers.cpu.ir.writer import write_instruction
from hip_runtime.drivers.cpu.llvmir import I1
from hip_runtime.drivers.cpu.vectorize.vector_builder import VectorBuilder
from hip_runtime.errors import UnsupportedError


class SpeculativeBases:
    """Writes the bases of values with a speculated stride, and whether it holds. *place* gives memory for
    what belongs to a value, *scalar* the base of others."""

    def __init__(
        self, shapes: VectorShapes, lanes: VectorBuilder, place: Callable[[Instruction, ir.Type, str], ir.Value],
        scalar: Callable[[Value], ir.Value],
    ) -> None:  # fmt: skip
        self._shapes = shapes
        self._lanes = lanes
        self._builder = lanes.builder
        self._place = place
        self._scalar = scalar
        self._found = speculate_strides(shapes)
        self._block: Block
        self._values: dict[Instruction, tuple[ir.Value, ir.Value]] = {}
        self._variables: dict[Instruction, tuple[ir.Value, ir.Value]] = {}
        self._kept: set[Instruction] = set()

    def begin(self, block: Block) -> None:
        """Start another block."""
        self._block, self._values = block, {}

    def stride(self, value: Value) -> int:
        """The speculated or certain stride of *value*; 0 if it has none."""
        return speculated_shape(self._shapes, self._found, value, self._block) or 0

    def base(self, value: Value) -> tuple[ir.Value, ir.Value]:
        """The base of a value with a speculated or certain stride, and whether it holds."""
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
        """Write the base of *instruction*, if its stride is speculated."""
        speculated = self._found.get(instruction)
        if speculated is None:
            return
        if speculated.chosen is not None:
            base, holds = self.base(speculated.chosen)
        else:
            operands = [self.base(value) for value in instruction.operands]
            base = write_instruction(self._builder, as_base(instruction), [operand for operand, _ in operands])
            holds = I1(1)
            for _, one in operands:
                holds = self._both(holds, one)
        if speculated.index is not None:
            holds = self._both(holds, self._none_below(speculated.least, speculated.index))
        if speculated.bits is not None:
            holds = self._both(holds, self._fits(base, speculated.shape, speculated.bits))
        self._values[instruction] = base, holds

    def keep(self, instruction: Instruction) -> None:
        """Store the base of *instruction* for other blocks."""
        if instruction in self._values:
            self._kept.add(instruction)
            for value, place in zip(self._values[instruction], self._places(instruction), strict=True):
                self._builder.store(value, place)

    def check(self) -> None:
        """Raise `UnsupportedError` if a base was loaded that no block stored, once all blocks were written: lanes would
        access any memory."""
        for value in self._variables:
            if value not in self._kept:
                raise UnsupportedError(f"nothing keeps the speculated base of {value.name}")

    def _both(self, left: ir.Value, right: ir.Value) -> ir.Value:
        if isinstance(left, ir.Constant):
            return right if left.constant else left
        if isinstance(right, ir.Constant):
            return left if right.constant else right
        return self._builder.and_(left, right)

    def _places(self, value: Instruction) -> tuple[ir.Value, ir.Value]:
        found = self._variables.get(value)
        if found is None:
            base = self._place(value, value.type, f"{value.name}.base")
            found = self._variables[value] = base, self._place(value, I1, "holds")
        return found

    def _none_below(self, limit: int, index: Value) -> ir.Value:
        """Whether *index* is not below *limit*, 0 or 1, in any lane, and has not overflowed."""
        base, holds = self.base(index)
        return self._both(holds, self._fits(base, self.stride(index), index.type.width - 1, limit))

    def _fits(self, base: ir.Value, stride: int, bits: int, limit: int = 0) -> ir.Value:
        """Whether numbers that differ by *stride* from lane to lane, *base* in the first, are not below *limit* and
        have so many *bits* at most."""
        kind = base.type
        reach = (self._lanes.width - 1) * abs(stride)
        most = (1 << bits) - 1 - reach - limit
        if most < 0:
            return I1(0)
        least = base
        if stride < 0:
            least = self._builder.sub(least, ir.Constant(kind, reach))
        if limit:
            least = self._builder.sub(least, ir.Constant(kind, limit))
        return self._builder.icmp_unsigned("<=", least, ir.Constant(kind, most))


def as_base(instruction: Instruction) -> Instruction:
    """*instruction* for computing the base of a strided value. The base is the value of lane 0, which may be inactive,
    so that no flags hold, and an ``or`` that is a sum for active lanes has to become an ``add``."""
    is_sum = instruction.opcode == "or" and "disjoint" in instruction.flags
    return replace(instruction, opcode="add" if is_sum else instruction.opcode, flags=())
