"""Comparisons that are made in another block than the branch on them, made once more where lanes branch.

Of ``for i in range(y, height, step_y): for j in range(x, width, step_x)``, LLVM moves ``x < width`` out of the loop
over rows. Where it is known what is compared, the first and the last lane tell for all (`uniform_condition`), so that
gangs which take the branch as a whole need no mask for the inner loop. Whether a loop goes on is often decided at its
beginning, too, and asked at its end.
"""

from __future__ import annotations

from dataclasses import replace

from hip_runtime.drivers.cpu.analyses.conditions import split_condition
from hip_runtime.drivers.cpu.analyses.monotonic_conditions import is_decided_by_ends
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value


def bring_conditions(shapes: VectorShapes) -> bool:
    """Make such comparisons again in the blocks that end in a divergent branch on them; whether there were any."""
    found = False
    for block in filter(shapes.divergent.__contains__, shapes.order.blocks):
        if block in shapes.masked and not _ends_loop(block, shapes):
            continue
        end = block.terminator
        condition = end.operands[0] if end.opcode == "br" else None
        if not isinstance(condition, Instruction) or shapes.homes[condition] is block:
            continue
        for expected in (True, False):
            if is_decided_by_ends(shapes, condition, block, expected, anywhere=True):
                end.operands = [_bring(condition, expected, block, shapes)]
                found = True
                break
    return found


def _ends_loop(block: Block, shapes: VectorShapes) -> bool:
    """Whether *block* goes back to the beginning of a loop, which lanes may run without a mask until one leaves it."""
    loops = shapes.order.loops[block]
    return bool(loops) and shapes.order.header_of(loops[-1]) in block.terminator.targets


def _bring(condition: Value, expected: bool, block: Block, shapes: VectorShapes) -> Value:
    """*condition*, or a copy of it at the end of *block* if it varies."""
    if not isinstance(condition, Instruction) or shapes.of(condition, block) == 0:
        return condition
    copy = replace(condition)
    if parts := split_condition(condition, expected):
        brought = {part: _bring(part, expected, block, shapes) for part in parts}
        copy.operands = [brought.get(operand, operand) for operand in condition.operands]
    block.instructions.insert(-1, copy)
    return copy
