"""Masked blocks that are run together: one after another, from where lanes part to where all of them go on."""

from __future__ import annotations

from dataclasses import dataclass

from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block
from hip_runtime.errors import UnsupportedError


@dataclass(eq=False)
class LinearizedRegion:
    """Masked blocks in the order in which they are run, and where the lanes go on; ``None`` where all return."""

    blocks: list[Block]
    exit: Block | None = None


def linearize(shapes: VectorShapes) -> dict[Block, LinearizedRegion]:
    """The cluster of each masked block; `UnsupportedError` where ways do not join as they should."""
    groups = {block: {block} for block in shapes.masked}

    def join(blocks: list[Block]) -> None:
        merged = set().union(*(groups[block] for block in blocks))
        for block in merged:
            groups[block] = merged

    for block in shapes.order.blocks:
        if block in shapes.masked or block in shapes.divergent:
            targets = [target for target in shapes.successors(block) if target in shapes.masked]
            join(([block] if block in shapes.masked else []) + targets)
    _check_loops(shapes)
    clusters: dict[Block, LinearizedRegion] = {}
    for members in {id(group): group for group in groups.values()}.values():
        cluster = LinearizedRegion([block for block in shapes.order.blocks if block in members])
        cluster.exit = _find_exit(shapes, members)
        clusters.update(dict.fromkeys(cluster.blocks, cluster))
    return clusters


def _find_exit(shapes: VectorShapes, members: set[Block]) -> Block | None:
    sources = set(members)
    for block in shapes.divergent - shapes.masked:
        if not members.isdisjoint(shapes.successors(block)):
            sources.add(block)
    exits = {target for block in sources for target in shapes.successors(block) if target not in members}
    if len(exits) > 1:
        raise UnsupportedError("the ways of threads that part at a branch do not join at one place")
    return next(iter(exits), None)


def _check_loops(shapes: VectorShapes) -> None:
    """A masked loop must be entered at its start only."""
    position = {block: number for number, block in enumerate(shapes.order.blocks)}
    for block in shapes.order.blocks:
        for target in shapes.successors(block):
            for loop in shapes.order.loops[target]:
                if block not in loop and loop <= shapes.masked and target is not min(loop, key=position.__getitem__):
                    raise UnsupportedError("a loop that threads leave in different rounds is entered at several places")
