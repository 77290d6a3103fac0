"""Blocks whose masks depend on data, rather than on the indices of threads."""

from __future__ import annotations

from hip_runtime.drivers.cpu.analyses.cfg import find_following
from hip_runtime.drivers.cpu.analyses.monotonic_conditions import is_decided_by_ends
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block


def find_data_masked(shapes: VectorShapes) -> frozenset[Block]:
    """The blocks that lanes run or not by a branch on anything else than how indices compare. Of these, a gang knows
    nothing; the others have masks of the same few lanes again and again, as at the edges of an image."""
    found: set[Block] = set()
    for block in shapes.divergent:
        condition = block.terminator.operands[0]
        if not any(is_decided_by_ends(shapes, condition, block, holds, anywhere=True) for holds in (True, False)):
            found.update(find_following(block, shapes.successors, shapes.reconvergence(block)))
    return frozenset(found & shapes.masked)
