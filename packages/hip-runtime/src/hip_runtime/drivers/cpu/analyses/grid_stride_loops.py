"""Grid-stride loops: loops whose accesses are contiguous across lanes and far apart from one iteration to the next.

Each iteration touches another page, so its cost hardly depends on how much is read there, and twice as many lanes need
half as many iterations: ``y[i] = a * x[i] + y[i]`` over 16M numbers takes 6.4 ms of CPU time with gangs of 64 threads,
10 ms with gangs of 32.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.monotonic_conditions import is_decided_by_ends
from hip_runtime.drivers.cpu.analyses.unit_stride_loops import UnitStrideLoops
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block

_MAX_INSTRUCTIONS = 40
"""Of a loop: with more, there are not enough registers for twice as many lanes."""

MAX_LANES = 64

_PAGE = 4096
"""Bytes of a page: in shorter steps, as of a block that reads a row, one gang after another reads the same pages."""


def has_grid_stride_loop(shapes: VectorShapes, size_of: Callable[[ir.Type], int], width: int) -> bool:
    """Whether a kernel with *shapes* has such a loop, so that twice as many lanes as *width* are better."""
    unit_stride = UnitStrideLoops(shapes, size_of)
    return any(
        block in shapes.divergent and _has_long_stride(loops[-1], block, shapes, unit_stride, size_of, width)
        for block, loops in shapes.order.loops.items()
        if loops
    )


def _has_long_stride(
    loop: frozenset[Block],
    latch: Block,
    shapes: VectorShapes,
    unit_stride: UnitStrideLoops,
    size_of: Callable[[ir.Type], int],
    width: int,
) -> bool:
    terminator = latch.terminator
    staying = [number for number, target in enumerate(terminator.targets) if target in loop]
    if (
        terminator.opcode != "br"
        or len(staying) != 1
        or not is_decided_by_ends(shapes, terminator.operands[0], latch, staying[0] == 0)
    ):
        return False
    return _walks_far(loop, shapes, unit_stride, size_of, width)


def is_grid_stride_loop(
    loop: frozenset[Block], shapes: VectorShapes, size_of: Callable[[ir.Type], int], width: int
) -> bool:
    """Whether *loop*, which lanes leave together, is such a loop, each iteration of which touches another page."""
    return _walks_far(loop, shapes, UnitStrideLoops(shapes, size_of), size_of, width, _PAGE)


def _walks_far(
    loop: frozenset[Block],
    shapes: VectorShapes,
    unit_stride: UnitStrideLoops,
    size_of: Callable[[ir.Type], int],
    width: int,
    least: int = 0,
) -> bool:
    """Whether *loop* has neighbours in memory that are *least* bytes apart from one iteration to the next, or more, and
    further than two gangs reach."""
    if sum(len(block.instructions) for block in loop) > _MAX_INSTRUCTIONS:
        return False
    for block in loop:
        for value in block.instructions:
            if value.opcode in ("load", "store"):
                nbytes = size_of(value.type if value.opcode == "load" else value.operands[0].type)
                step = unit_stride.step(value.operands[-1], loop)
                if shapes.of(value.operands[-1], block) == nbytes and (
                    step is None or abs(step) >= max(least, 2 * nbytes * width + 1)
                ):
                    return True
    return False
