"""Linearizes divergent control flow: masked blocks run one after another, up to where all lanes reconverge."""

from __future__ import annotations

from dataclasses import dataclass

from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block
from hip_runtime.errors import UnsupportedError


@dataclass(eq=False)
class LinearizedRegion:
    """Masked blocks in the order in which they run, and the block where lanes reconverge; ``None`` if they return."""

    blocks: list[Block]
    exit: Block | None = None


def linearize(shapes: VectorShapes) -> dict[Block, LinearizedRegion]:
    """The linearized region of each masked block; `UnsupportedError` for irreducible loops and for paths that do not
    reconverge at one block."""
    region_of = {block: {block} for block in shapes.order.blocks if block in shapes.masked}

    def join(blocks: list[Block]) -> None:
        merged = set().union(*(region_of[block] for block in blocks))
        for block in merged:
            region_of[block] = merged

    for block in shapes.order.blocks:
        if block in shapes.masked or block in shapes.divergent:
            targets = [target for target in shapes.successors(block) if target in shapes.masked]
            join(([block] if block in shapes.masked else []) + targets)
    _check_loops(shapes)
    linearized: dict[Block, LinearizedRegion] = {}
    for members in {id(members): members for members in region_of.values()}.values():
        region = LinearizedRegion([block for block in shapes.order.blocks if block in members])
        region.exit = _find_exit(shapes, members)
        linearized.update(dict.fromkeys(region.blocks, region))
    return linearized


def _find_exit(shapes: VectorShapes, members: set[Block]) -> Block | None:
    sources = set(members)
    for block in shapes.divergent - shapes.masked:
        if not members.isdisjoint(shapes.successors(block)):
            sources.add(block)
    exits = {target for block in sources for target in shapes.successors(block) if target not in members}
    if len(exits) > 1:
        raise UnsupportedError("the paths of threads that diverge at a branch do not reconverge at one block")
    return next(iter(exits), None)


def _check_loops(shapes: VectorShapes) -> None:
    """Refuse masked loops with an entry that is not their header."""
    for block in shapes.order.blocks:
        for target in shapes.successors(block):
            for loop in shapes.order.loops[target]:
                if block not in loop and loop <= shapes.masked and target is not shapes.order.header_of(loop):
                    raise UnsupportedError("a loop that threads leave in different iterations has several entries")
