"""Grid-stride loops: loops whose accesses are contiguous across lanes and far apart from one iteration to the next.

Each iteration touches another page, so its cost hardly depends on how much is read there, and twice as many lanes need
half as many iterations: ``y[i] = a * x[i] + y[i]`` over 16M numbers takes 6.4 ms of CPU time with gangs of 64 threads,
10 ms with gangs of 32.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.address_terms import take_apart
from hip_runtime.drivers.cpu.analyses.monotonic_conditions import is_decided_by_ends
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.analyses.unit_stride_loops import UnitStrideLoops
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block

_MAX_INSTRUCTIONS = 40
"""Of a loop: with more, there are not enough registers for twice as many lanes."""

_MOST_ITERATIONS = 4
"""With four, a saxpy of 4M float32 takes 0.8 ms of CPU time and a dot product 0.7; with one these are 1.2 and 1.2, with
eight 1.2 and 0.85."""

_PLACES = 8
"""Lines of a first-level cache whose addresses differ by a page, as do those of the iterations of a gang: ``z[i] = x[i]
* y[i] + w[i]`` takes 0.7 to 0.9 of the time with two iterations, whose lines find room, instead of four."""

MAX_LANES = 64

_PAGE = 4096
"""Bytes of a page: in shorter steps, as of a block that reads a row, one gang after another reads the same pages."""


def has_grid_stride_loop(shapes: VectorShapes, size_of: SizeOf, width: int) -> bool:
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
    size_of: SizeOf,
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


def is_grid_stride_loop(loop: frozenset[Block], shapes: VectorShapes, size_of: SizeOf, width: int) -> bool:
    """Whether *loop*, which lanes leave together, is such a loop, each iteration of which touches another page."""
    return _walks_far(loop, shapes, UnitStrideLoops(shapes, size_of), size_of, width, _PAGE)


def iterations_of_turn(loop: frozenset[Block], shapes: VectorShapes, size_of: SizeOf) -> int:
    """How many iterations of the grid-stride *loop* a gang should make before the next gang does."""
    arrays = {
        part
        for block in loop - shapes.masked
        for value in block.instructions
        if value.opcode in ("load", "store") and shapes.of(value.address, block) not in (0, VARYING)
        for part, _ in take_apart(value.address, size_of).terms
        if isinstance(part.type, ir.PointerType)
    }
    return min(max(_PLACES // max(len(arrays), 1), 2), _MOST_ITERATIONS)


def _walks_far(
    loop: frozenset[Block],
    shapes: VectorShapes,
    unit_stride: UnitStrideLoops,
    size_of: SizeOf,
    width: int,
    least: int = 0,
) -> bool:
    """Whether *loop* has neighbours in memory that are *least* bytes apart from one iteration to the next, or more, and
    further than two gangs reach."""
    if not least and sum(len(block.instructions) for block in loop) > _MAX_INSTRUCTIONS:
        return False
    for block in loop:
        for value in block.instructions:
            if value.opcode in ("load", "store"):
                nbytes = size_of(value.accessed)
                step = unit_stride.step(value.address, loop)
                if shapes.of(value.address, block) == nbytes and (
                    step is None or abs(step) >= max(least, 2 * nbytes * width + 1)
                ):
                    return True
    return False
