"""Conditions that the first and the last lane of a gang decide for all of them."""

from __future__ import annotations

from hip_runtime.drivers.cpu.analyses.conditions import read_order, split_condition
from hip_runtime.drivers.cpu.analyses.vector_shapes import VARYING, VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value


def is_told_by_ends(shapes: VectorShapes, condition: Value, block: Block, wanted: bool) -> bool:
    """Whether the first and the last lane tell that *condition*, of which *block* is the home, is *wanted* in all."""
    if not isinstance(condition, Instruction) or shapes.homes.get(condition) is not block:
        return False
    if parts := split_condition(condition, wanted):
        return all(shapes.of(part, block) == 0 or is_told_by_ends(shapes, part, block, wanted) for part in parts)
    if not read_order(condition, wanted):
        return False
    return all(shapes.of(value, block) is not VARYING for value in condition.operands)
