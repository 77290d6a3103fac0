"""Arguments of a kernel that limit how many of its threads do anything."""

from __future__ import annotations

from collections.abc import Mapping

from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.analyses.conditions import mirror, read_order, split_condition
from hip_runtime.drivers.cpu.ir.model import Argument, Block, Instruction, Value


def find_index_bound(early_exits: Mapping[Block, Block], axis: str) -> Argument | None:
    """The argument that the global index along *axis* is below in all threads that take none of *early_exits*, each of
    which is given with the block that threads go on in."""
    for block, target in early_exits.items():
        end = block.terminator
        found = _find_bound(end.operands[0], target is end.targets[0], intrinsics.global_idx(axis))
        if found is not None:
            return found
    return None


def _find_bound(condition: Value, expected: bool, index: str) -> Argument | None:
    """The argument that the number *index* is below if *condition* is *expected*."""
    for part in split_condition(condition, expected):
        if (found := _find_bound(part, expected, index)) is not None:
            return found
    predicate = read_order(condition, expected)
    if not predicate or not isinstance(condition, Instruction):
        return None
    left, right = condition.operands
    if isinstance(left, Argument):
        left, right, predicate = right, left, mirror(predicate)
    is_index = isinstance(left, Instruction) and left.callee == index
    return right if is_index and predicate == "slt" and isinstance(right, Argument) else None
