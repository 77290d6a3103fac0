"""Regions in which only the first threads do anything, as in the steps of a tree: loops over threads end there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.cfg import order_blocks
from hip_runtime.drivers.cpu.analyses.conditions import split_condition
from hip_runtime.drivers.cpu.analyses.effects import has_effect
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value
from hip_runtime.drivers.cpu.regions.context_values import Transfer
from hip_runtime.drivers.cpu.regions.formation import Region, RegionGraph, region_successors

_BOUNDS = {"ult": 0, "slt": 0, "ule": 1, "sle": 1}
"""What to add to the constant that an index is compared with, to get the first index for which it does not hold."""

_INVERSE = {"uge": "ult", "sge": "slt", "ugt": "ule", "sgt": "sle", "ne": "eq"}


def count_active(
    region: Region, graph: RegionGraph, transfers: Mapping[Instruction, Transfer], axis: str, extent: int
) -> int:  # fmt: skip
    """How many of the *extent* threads along *axis*, from the first one on, do anything in *region*: the others take a
    branch at its start behind which nothing happens until all of them wait."""
    if region.diverges or region.is_spin_scheduled or len(region.exits) + region.returns != 1:
        return extent
    if _keeps_values(region, graph, transfers):
        return extent
    end = region.entry.terminator
    if end.opcode != "br" or len(region_successors(region.entry)) != 2 or _has_effects([region.entry]):
        return extent
    active = [number for number in (0, 1) if _is_idle(end.targets[1 - number])]
    limits = [limit for number in active for limit in _find_limits(end.operands[0], number == 0, axis)]
    return max(min([extent, *limits]), 1)


def _keeps_values(region: Region, graph: RegionGraph, transfers: Mapping[Instruction, Transfer]) -> bool:
    """Whether threads save values at the end of *region*."""
    inside = frozenset(region.blocks)
    if any(point.call.arguments[1:] for point in region.exits):
        return True
    return any(
        graph.homes[value] in inside and transfers[value] is not Transfer.REMATERIALIZE
        for behind in graph.regions
        if behind.start in region.exits
        for value in behind.live
    )


def _is_idle(first: Block) -> bool:
    """Whether a thread that goes to *first* does nothing until the region's end, which it reaches."""
    order = order_blocks(first, region_successors)
    return not any(order.loops.values()) and not _has_effects(order.blocks)


def _has_effects(blocks: list[Block]) -> bool:
    return any(
        has_effect(instruction) for block in blocks for instruction in block.instructions
        if instruction.opcode != "synchronise"
    )  # fmt: skip


def _find_limits(condition: Value, expected: bool, axis: str) -> Iterator[int]:
    """Numbers of threads along *axis* beyond which *condition* is not *expected*."""
    if parts := split_condition(condition, expected):
        for part in parts:
            yield from _find_limits(part, expected, axis)
        return
    if not isinstance(condition, Instruction) or condition.opcode != "icmp":
        return
    index, number = condition.operands[0], signed_number(condition.operands[1])
    if number is None or number < 0 or not _is_index(index, axis):
        return
    predicate = condition.predicate if expected else _INVERSE.get(condition.predicate, "")
    if predicate == "eq":
        yield number + 1
    elif predicate in _BOUNDS:
        yield number + _BOUNDS[predicate]


def _is_index(value: Value, axis: str) -> bool:
    """Whether *value* is the index of a thread, which is never negative, along *axis*."""
    while isinstance(value, Instruction) and value.opcode in ("zext", "sext"):
        value = value.operands[0]
    return isinstance(value, Instruction) and value.callee == spmd.thread_idx(axis)
