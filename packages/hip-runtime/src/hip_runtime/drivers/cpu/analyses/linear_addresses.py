"""Addresses that grow by the same number from lane to lane, which is known at run time only: as of the rows of an array
of which neither the compiler nor a guess (`stride_arguments`) knows how long they are.
"""

from __future__ import annotations

from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I64

_MOST_STEPS = 12
"""Instructions that are looked at for one address."""


def is_linear(pointer: Value, block: Block, shapes: VectorShapes) -> bool:
    """Whether *pointer*, which differs between lanes, grows by the same number from lane to lane as seen from *block*.
    Numbers of 64 bits wrap around as addresses do."""
    return find_leaves(pointer, block, shapes) is not None


def find_leaves(pointer: Value, block: Block, shapes: VectorShapes) -> tuple[Value, ...] | None:
    """What *pointer*, which is such an address, is computed from: values whose shapes tell how they grow. ``None`` if
    it is none."""
    search = _Search(shapes)
    return tuple(search.leaves) if search.follow(pointer, block) else None


class _Search:
    def __init__(self, shapes: VectorShapes) -> None:
        self.leaves: list[Value] = []
        self._shapes = shapes
        self._steps = 0

    def follow(self, value: Value, block: Block) -> bool:
        """Whether *value* grows by the same number from lane to lane as seen from *block*."""
        if self._shapes.of(value, block) is not VARYING:
            self.leaves.append(value)
            return True
        self._steps += 1
        if not isinstance(value, Instruction) or self._steps > _MOST_STEPS:
            return False
        if self._shapes.leaves_masked_loop(value, block):
            return False
        home, operands = self._shapes.homes[value], value.operands
        if value.opcode == "getelementptr":
            is_sum = len(operands) == 2 and operands[1].type == I64
        elif value.opcode in ("mul", "shl"):  # of a number that is the same in all lanes
            factors = operands if value.opcode == "mul" else operands[1:]
            is_sum = value.type == I64 and any(self._shapes.of(factor, home) == 0 for factor in factors)
        else:
            is_sum = value.type == I64 and value.opcode in ("add", "sub")
        return is_sum and all(self.follow(operand, home) for operand in operands)
