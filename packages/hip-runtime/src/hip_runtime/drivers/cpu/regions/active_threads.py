"""Regions in which only the first threads do anything, as in the steps of a tree: loops over threads end there.

How many these are may be known at run time only, as for the steps of a triangle that a loop counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.cfg import order_blocks
from hip_runtime.drivers.cpu.analyses.conditions import mirror, read_order, split_condition
from hip_runtime.drivers.cpu.analyses.effects import has_effect
from hip_runtime.drivers.cpu.ir.model import Argument, Block, Instruction, Value
from hip_runtime.drivers.cpu.regions.context_values import Transfer
from hip_runtime.drivers.cpu.regions.formation import Region, RegionGraph, region_successors

_BOUNDS = {"ult": 0, "slt": 0, "ule": 1, "sle": 1}
"""What to add to the constant that an index is compared with, to get the first index for which it does not hold."""

_INVERSE = {"uge": "ult", "sge": "slt", "ugt": "ule", "sgt": "sle", "ne": "eq"}


@dataclass(frozen=True)
class Limit:
    """A number of threads, known at run time, from which on threads take a branch behind which nothing happens: that of
    indices for which ``index < bound - less`` holds or, if it is *inclusive*, for which these may be equal."""

    condition: Instruction
    expected: bool
    """What the condition of the branch is for threads that do anything."""
    bound: Value
    less: Value | None
    inclusive: bool
    signed: bool

    @property
    def values(self) -> list[Value]:
        """The numbers, the same for all threads, that it is computed from."""
        return [self.bound] if self.less is None else [self.bound, self.less]

    def write(self, builder: ir.IRBuilder, values: Sequence[ir.Value], most: ir.Value) -> ir.Value:
        """The number of threads, of *most* in a row, by `values`."""
        bound, order = values[0], "s" if self.signed else "u"
        if self.less is not None:
            bound = builder.call(_declare(builder, "ssub.sat", bound.type), values)
        highest = builder.zext(most, bound.type) if bound.type.width > most.type.width else most
        last = builder.sub(highest, highest.type(1)) if self.inclusive else highest
        number = builder.call(_declare(builder, f"{order}min", bound.type), [bound, last])
        if self.signed:
            number = builder.call(_declare(builder, "smax", bound.type), [number, bound.type(-self.inclusive)])
        if self.inclusive:
            number = builder.add(number, number.type(1))
        return builder.trunc(number, most.type) if number.type != most.type else number


def _declare(builder: ir.IRBuilder, name: str, kind: ir.IntType) -> ir.Function:
    return builder.module.declare_intrinsic(f"llvm.{name}", (kind,), ir.FunctionType(kind, [kind, kind]))


def count_active(
    region: Region, graph: RegionGraph, transfers: Mapping[Instruction, Transfer], axis: str, extent: int
) -> int:  # fmt: skip
    """How many of the *extent* threads along *axis*, from the first one on, do anything in *region*: the others take a
    branch at its start behind which nothing happens until all of them wait."""
    if region.diverges or region.is_spin_scheduled or _keeps_values(region, graph, transfers):
        return extent
    if not region.masked and _is_pure(region):
        return 1
    if not _ends_alike(region):
        return extent
    limits = [
        limit for condition, expected in _find_conditions(region) for limit in _find_limits(condition, expected, axis)
    ]  # fmt: skip
    return max(min([extent, *limits]), 1)


def find_limit(
    region: Region, graph: RegionGraph, transfers: Mapping[Instruction, Transfer], axis: str
) -> Limit | None:  # fmt: skip
    """The number of threads along *axis* that do anything in *region*, if that is decided by a comparison with a number
    that is known at run time."""
    if not _ends_alike(region) or region.masked or _keeps_values(region, graph, transfers):
        return None
    for condition, expected in _find_conditions(region):
        limit = read_limit(condition, expected, region.entry, graph, axis)
        if limit is not None:
            return limit
    return None


def only_writes(region: Region, graph: RegionGraph, transfers: Mapping[Instruction, Transfer]) -> bool:
    """Whether threads get to the same end of *region*, and keep nothing but what they write to memory."""
    return _ends_alike(region) and not _keeps_values(region, graph, transfers)


def read_limit(
    condition: Value, expected: bool, block: Block, graph: RegionGraph, axis: str
) -> Limit | None:  # fmt: skip
    """The number of threads along *axis* for which *condition* is *expected*, seen from *block*."""
    predicate = read_order(condition, expected)
    if not predicate or not isinstance(condition, Instruction):
        return None
    left, right = condition.operands
    if _is_index(right, axis) or _leaves(left, axis) is not None:
        left, right, predicate = right, left, mirror(predicate)
    bound, less = right, None
    if not _is_index(left, axis):
        difference = _leaves(right, axis)
        if difference is None or predicate[0] != "s":
            return None
        bound, less = difference, left
    uniform = not any(graph.uniformity.varies(value, block) for value in (bound, less) if value is not None)
    is_launched = any(isinstance(value, Instruction | Argument) for value in (bound, less))
    if predicate[1:] not in ("lt", "le") or not uniform or not is_launched:
        return None
    return Limit(condition, expected, bound, less, predicate[1:] == "le", predicate[0] == "s")


def _leaves(value: Value, axis: str) -> Value | None:
    """What *value* subtracts the index of the thread along *axis* from, without an overflow."""
    if not isinstance(value, Instruction) or value.opcode != "sub" or "nsw" not in value.flags:
        return None
    return value.operands[0] if _is_index(value.operands[1], axis) else None


def _ends_alike(region: Region) -> bool:
    """Whether all threads get to the same end of *region*."""
    return not region.diverges and not region.is_spin_scheduled and len(region.exits) + region.returns == 1


def _find_conditions(region: Region) -> Iterator[tuple[Value, bool]]:
    """Conditions at the start of *region*, and what they are for threads that do anything in it."""
    end = region.entry.terminator
    if end.opcode != "br" or len(region_successors(region.entry)) != 2 or _has_effects([region.entry]):
        return
    condition = end.operands[0]
    if any(region.entry in region_successors(block) for block in region.blocks) or _computes_again(region, condition):
        return
    for number in (0, 1):
        if _is_idle(end.targets[1 - number], condition, number == 1):
            yield condition, number == 0


def _computes_again(region: Region, condition: Value) -> bool:
    """Whether *region* computes *condition* behind its first block."""
    return any(condition in block.instructions for block in region.blocks if block is not region.entry)


def choose_directions(region: Region, condition: Value, holds: bool) -> dict[Block, Block]:
    """The targets of the branches of *region* on *condition*."""
    return {
        block: block.terminator.targets[0 if holds else 1]
        for block in region.blocks
        if block.terminator.opcode == "br" and block.terminator.operands[:1] == [condition]
    }


def _is_pure(region: Region) -> bool:
    """Whether all that threads do in *region* is to find where it ends."""
    loops = order_blocks(region.entry, region_successors).loops
    return not any(loops.values()) and not _has_effects(region.blocks)


def _keeps_values(region: Region, graph: RegionGraph, transfers: Mapping[Instruction, Transfer]) -> bool:
    """Whether threads save values at the end of *region*, but for those that the first one may save for all."""
    inside = frozenset(region.blocks)
    kinds = (Transfer.CONTEXT_ARRAY, Transfer.CONTEXT_SCALAR) if region.masked else (Transfer.CONTEXT_ARRAY,)
    if any(point.call.arguments[1:] for point in region.exits):
        return True
    return any(
        graph.homes[value] in inside and transfers[value] in kinds
        for behind in graph.regions
        if behind.start in region.exits
        for value in behind.live
    )


def _is_idle(first: Block, condition: Value, holds: bool) -> bool:
    """Whether a thread that goes to *first*, for which *condition* is known, does nothing until the region's end, which
    it reaches."""

    def successors(block: Block) -> list[Block]:
        end = block.terminator
        if end.opcode == "br" and end.operands[:1] == [condition]:
            return [end.targets[0 if holds else 1]]
        return region_successors(block)

    order = order_blocks(first, successors)
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
