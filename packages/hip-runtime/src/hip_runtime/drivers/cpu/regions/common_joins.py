"""Cuts regions where branches that all threads take alike join again, if there are many with a barrier in one of them.

A region is all that may follow a sync point up to the next: behind ``if mode[k]: ...; syncthreads()`` for one ``k``,
what stands behind all further ones. So the code grows with the square of how many there are.
"""

from __future__ import annotations

from collections import Counter

from hip_runtime.drivers.cpu.analyses.cfg import find_following, immediate_postdominators
from hip_runtime.drivers.cpu.ir.model import Block
from hip_runtime.drivers.cpu.ir.trace import record
from hip_runtime.drivers.cpu.regions.common_branches import call_cut
from hip_runtime.drivers.cpu.regions.formation import RegionGraph, insert_points

_MOST_COPIES = 16
"""Regions that a join may be in: a cut takes a loop over the threads, and keeps what is needed behind it for each."""


def cut_at_common_joins(graph: RegionGraph) -> RegionGraph:
    """*graph* with such cuts. Its function is modified."""
    if graph.wave_scheduled or graph.yields:
        return graph
    copies = Counter(block for region in graph.regions for block in region.blocks)
    often = {block for block in _joins(graph) if copies[block] > _MOST_COPIES}
    joins = often.difference(_reached_apart(graph)) if often else often
    if not joins:
        return graph
    made = insert_points(graph, {block: call_cut(graph) for block in graph.order.blocks if block in joins})
    record("cut_at_common_joins", made.function)
    return made


def _joins(graph: RegionGraph) -> list[Block]:
    """Blocks with several predecessors that are no headers of loops."""
    before = Counter(target for block in graph.order.blocks for target in {*block.successors})
    headers = set(graph.order.headers().values())
    return [block for block, count in before.items() if count > 1 and block not in headers]


def _reached_apart(graph: RegionGraph) -> set[Block]:
    """Blocks that some threads may reach and others not, or not as often: those behind a branch that threads take apart
    up to where all come again."""
    behind = immediate_postdominators(graph.order.blocks, _successors)
    branches = graph.uniformity.divergent_branches
    return {block for branch in branches for block in find_following(branch, _successors, behind[branch])}


def _successors(block: Block) -> list[Block]:
    return block.successors
