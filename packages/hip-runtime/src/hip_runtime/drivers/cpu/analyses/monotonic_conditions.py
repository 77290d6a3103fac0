"""Conditions that are monotonic across the lanes of a gang, so that its first and last lane decide for all."""

from __future__ import annotations

from hip_runtime.drivers.cpu.analyses.conditions import is_difference, read_order, split_condition
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value


def is_decided_by_ends(
    shapes: VectorShapes, condition: Value, block: Block, expected: bool, *, anywhere: bool = False
) -> bool:
    """Whether *condition*, defined in *block* or *anywhere* before it, is *expected* in all lanes if it is in the first
    and in the last; where numbers have to differ, with the same one the larger in both."""
    if not isinstance(condition, Instruction) or not (anywhere or shapes.homes.get(condition) is block):
        return False
    if parts := split_condition(condition, expected):
        return all(
            shapes.of(part, block) == 0 or is_decided_by_ends(shapes, part, block, expected, anywhere=anywhere)
            for part in parts
        )
    if not (read_order(condition, expected) or (condition.opcode == "icmp" and is_difference(condition, expected))):
        return False
    return all(shapes.of(value, block) is not VARYING for value in condition.operands)
