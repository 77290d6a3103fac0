"""Cuts regions behind a branch that all threads take alike, as that of a loop around a barrier.

What each target begins is a region of its own then. Nothing happens before the branch, so that one thread finds the way
for all, and what follows may run for fewer threads than the block has, see `active_threads`.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.analyses.effects import has_effect
from hip_runtime.drivers.cpu.ir.model import Block, Call, Instruction, Symbol
from hip_runtime.drivers.cpu.ir.trace import record
from hip_runtime.drivers.cpu.llvmir import PTR, VOID
from hip_runtime.drivers.cpu.regions.active_threads import read_limit
from hip_runtime.drivers.cpu.regions.formation import Region, RegionGraph, insert_points, region_successors


def cut_behind_common_branches(graph: RegionGraph, axis: str) -> RegionGraph:
    """*graph* with such cuts where a number that is known at run time decides which threads along *axis* do anything
    behind them. Its function is modified."""
    if graph.wave_scheduled or graph.yields:
        return graph
    targets = dict.fromkeys(
        target for region in graph.regions if _decides_first(region, graph, axis)
        for target in region_successors(region.entry)
    )  # fmt: skip
    if not targets:
        return graph
    made = insert_points(graph, {target: call_cut(graph) for target in targets})
    record("cut_behind_common_branches", made.function)
    return made


def _decides_first(region: Region, graph: RegionGraph, axis: str) -> bool:
    """Whether all that happens in *region* is behind a branch at its start that all threads take alike, and there only
    the first of them do anything."""
    entry = region.entry
    targets = region_successors(entry)
    if region.start is None or region.diverges or len(targets) < 2 or entry in graph.uniformity.divergent_branches:
        return False
    if any(map(has_effect, entry.instructions)):
        return False
    return any(_limits(target, graph, axis) for target in targets)


def _limits(block: Block, graph: RegionGraph, axis: str) -> bool:
    end = block.terminator
    if end.opcode != "br" or len(end.targets) != 2:
        return False
    return any(read_limit(end.operands[0], expected, block, graph, axis) for expected in (True, False))


def call_cut(graph: RegionGraph) -> Instruction:
    """A sync point of *graph* that is a cut."""
    kind = ir.FunctionType(VOID, [PTR])
    operands = [graph.function.arguments[0], Symbol(PTR, intrinsics.CUT)]
    return Instruction(VOID, "call", operands, call=Call(kind, argument_attributes=((),)))
