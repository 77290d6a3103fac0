"""Loops in which lanes go through arrays in long steps, such as that of the grid.

Each round of such a loop is in another page of memory than the last one, so what it costs hardly depends on how much is
read there. Twice as many lanes go round half as often: ``y[i] = a * x[i] + y[i]`` over 16M numbers takes 6.4 ms of
processor time in groups of 64 threads, and 10 in groups of 32.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.end_lanes import is_told_by_ends
from hip_runtime.drivers.cpu.analyses.unit_stride_loops import UnitStrideLoops
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block

_MOST_INSTRUCTIONS = 40
"""In a loop: with more of them there are not enough registers for twice as many lanes."""

MOST_LANES = 64


def has_grid_stride_loop(shapes: VectorShapes, size_of: Callable[[ir.Type], int], width: int) -> bool:
    """Whether a kernel with *shapes* has such a loop, and is therefore better run by twice as many lanes as *width*."""
    rows = UnitStrideLoops(shapes, size_of)
    return any(
        block in shapes.divergent and _has_long_stride(loops[-1], block, shapes, rows, size_of, width)
        for block, loops in shapes.order.loops.items()
        if loops
    )


def _has_long_stride(
    loop: frozenset[Block],
    latch: Block,
    shapes: VectorShapes,
    rows: UnitStrideLoops,
    size_of: Callable[[ir.Type], int],
    width: int,
) -> bool:
    end = latch.terminator
    stays = [number for number, target in enumerate(end.targets) if target in loop]
    if end.opcode != "br" or len(stays) != 1 or not is_told_by_ends(shapes, end.operands[0], latch, stays[0] == 0):
        return False
    if sum(len(block.instructions) for block in loop) > _MOST_INSTRUCTIONS:
        return False
    for block in loop:
        for value in block.instructions:
            if value.opcode in ("load", "store"):
                nbytes = size_of(value.type if value.opcode == "load" else value.operands[0].type)
                step = rows.step(value.operands[-1], loop)
                if shapes.of(value.operands[-1], block) == nbytes and (step is None or abs(step) > 2 * nbytes * width):
                    return True
    return False
