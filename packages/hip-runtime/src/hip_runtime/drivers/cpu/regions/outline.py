"""Outlines a region: makes it a function of its own, as a graph that returns where its threads wait.

What `scalar_region` writes around the instructions of a region is part of the graph here: a thread loads or
rematerializes its live-in values, and stores the values that are live after the sync point that it waits at. Context
arrays are indexed by thread, so lanes load and store contiguous vectors. If threads may have returned, or wait
elsewhere, the graph begins with a divergent branch on that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.abi.thread_order import AXES
from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.ir.model import Argument, Block, Call, Constant, Function, Instruction, Symbol, Value
from hip_runtime.drivers.cpu.llvmir import I1, I8, I32, I64, PTR, VOID
from hip_runtime.drivers.cpu.regions.context_values import Transfer
from hip_runtime.drivers.cpu.regions.formation import Region, SyncPoint, block_uses, region_successors
from hip_runtime.drivers.cpu.regions.scalar_region import RegionContext
from hip_runtime.drivers.cpu.regions.ssa_repair import SsaRepair
from hip_runtime.drivers.cpu.regions.storage import Slot

_INDEX = ir.FunctionType(I32, [PTR])

_CONDITIONS = frozenset({"icmp", "select", "and", "or"})
"""What conditions of branches on indices consist of."""


@dataclass(frozen=True)
class StatePlaces:
    """Where the next sync point is recorded: for each thread in ``states``, or once for all in ``next``."""

    states: Slot | None
    next: ir.Value
    returned: int
    """The number for a thread that has returned."""


@dataclass
class OutlinedRegion:
    """The graph, its arguments that follow those of the kernel, and its atomic operations on the block's own memory."""

    function: Function
    passed: list[ir.Value] = field(default_factory=list)
    demotable: frozenset[Instruction] = frozenset()


class RegionOutliner:
    """Outlines one region of the block of *item*, for gangs of neighbours along its axis of lanes or, if *numbered*, by
    linear index.

    *hoisted* are uniform values, loaded before any of the threads runs; *known* are conditions, and what they are for
    all threads that run.
    """

    def __init__(
        self, ctx: RegionContext, region: Region, state_places: StatePlaces, item: WorkItem,
        hoisted: Mapping[Instruction, ir.Value], numbered: bool, known: Mapping[Value, bool],
    ) -> None:  # fmt: skip
        self._known = {condition: Constant(I1, str(int(holds)), int(holds)) for condition, holds in known.items()}
        self._ctx = ctx
        self._region = region
        self._state_places = state_places
        self._item = item
        self._hoisted = hoisted
        self._numbered = numbered
        kernel = ctx.graph.function
        self._made = OutlinedRegion(Function(kernel.name, list(kernel.arguments), []))
        self._arguments: dict[ir.Value, Argument] = {}
        inside = frozenset(region.blocks)
        self._defined = {value for value, home in ctx.graph.homes.items() if home in inside}
        self._live_in: dict[Instruction, Value] = {}
        self._rematerialized: dict[Instruction, Value] = {}
        self._derived: set[Instruction] = set()
        """Those that are not the same in all regions, as they are derived from values that are saved for the block."""
        self._places: dict[Instruction, Value] = {}
        self._indices: dict[Instruction, Value] = {}
        """The values of calls for a thread index, in gangs that are formed by linear index."""
        self._blocks = {block: Block(block.name) for block in region.blocks}
        self._current = Block("threads")
        self._made.function.blocks.append(self._current)

    def build(self) -> OutlinedRegion:
        """The outlined region."""
        number = self._find_indices() if self._numbered else self._thread_number()
        self._index = self._insert("zext", I64, [number], flags=("nneg",))
        if self._region.masked or self._follows_yield:
            self._skip_inactive()
        self._start, self._after_index = self._current, len(self._current.instructions)
        self._load_live_ins()
        self._insert("br", VOID, [], targets=[self._blocks[self._region.entry]])
        ctx, region = self._ctx, self._region
        copies = {
            instruction: replace(instruction)
            for block in region.blocks
            for instruction in block.instructions
            if not instruction.is_terminator and instruction.opcode != "alloca" and instruction not in self._indices
        }
        computed = self._live_in.keys() & self._rematerialized.keys() - self._derived
        own = {value: copy for value, copy in copies.items() if value not in computed}
        self._names = SsaRepair(region, ctx.graph.homes, self._live_in, own, self._blocks)
        for block in region.blocks:
            self._current = self._blocks[block]
            self._copy_block(block, copies)
            self._made.function.blocks.append(self._current)
        self._names.insert_phis()
        self._made.demotable = frozenset(copy for value, copy in copies.items() if value in ctx.demotable)
        return self._made

    # pieces

    def _insert(self, opcode: str, kind: ir.Type, operands: list[Value], **rest: Any) -> Instruction:
        made = Instruction(kind, opcode, operands, **rest)
        self._current.instructions.append(made)
        return made

    def _argument(self, value: ir.Value) -> Argument:
        """*value*, which is available before the loop over the gangs, as an argument."""
        found = self._arguments.get(value)
        if found is None:
            arguments = self._made.function.arguments
            found = self._arguments[value] = Argument(value.type, len(arguments), f"passed.{len(arguments)}")
            arguments.append(found)
            self._made.passed.append(value)
        return found

    def _thread_number(self) -> Value:
        """The thread's linear index in the block."""
        number: Value | None = None
        for axis in reversed(self._item.order.axes):
            extent = self._item.order.block[axis]
            if number is not None:
                number = self._insert("mul", I32, [number, _number(I32, extent)], flags=("nuw", "nsw"))
            if extent > 1:
                index = self._call_intrinsic(spmd.thread_idx(AXES[axis]))
                number = index if number is None else self._insert("add", I32, [number, index], flags=("nuw", "nsw"))
        return number or _number(I32, 0)

    def _find_indices(self) -> Value:
        """The thread's linear index in the block; its indices along each axis are computed from that."""
        number: Value = self._call_intrinsic(intrinsics.NUMBER)
        rest = number
        for axis, extent in zip(AXES, self._item.order.block, strict=True):
            index = self._insert("urem", I32, [rest, _number(I32, extent)])
            rest = self._insert("udiv", I32, [rest, _number(I32, extent)])
            for call in self._ctx.graph.homes:
                if call.callee == spmd.thread_idx(axis):
                    self._indices[call] = index
        self._rematerialized.update(self._indices)
        return number

    def _call_intrinsic(self, name: str) -> Instruction:
        """A call of the intrinsic *name* for the work item."""
        item = self._made.function.arguments[0]
        return self._insert("call", I32, [item, Symbol(PTR, name)], call=Call(_INDEX, argument_attributes=((),)))

    def _address(self, place: Slot) -> Value:
        base = self._argument(place.base)
        if place.count == 1:
            return base
        return self._insert("getelementptr", PTR, [base, self._index], source_type=place.stored, flags=("inbounds",))

    def _load(self, place: Slot, name: str) -> Value:
        loaded = self._insert("load", place.stored, [self._address(place)], name=name)
        return self._insert("trunc", I1, [loaded]) if place.kind == I1 else loaded

    def _store(self, value: Value, place: Slot) -> None:
        if place.kind == I1:
            value = self._insert("zext", I8, [value])
        self._insert("store", VOID, [value, self._address(place)])

    # the start

    @property
    def _follows_yield(self) -> bool:
        return self._region.start is not None and self._region.start.yields

    def _skip_inactive(self) -> None:
        """Skip threads that have returned and, after a yield, all that do not wait there."""
        states, start = self._state_places.states, self._region.start
        assert states is not None
        state = self._load(states, "state")
        if start is not None and start.yields:
            here = self._insert("icmp", I1, [state, _number(states.kind, start.number)], predicate="eq")
        else:
            here = self._insert("icmp", I1, [state, _number(states.kind, self._state_places.returned)], predicate="ne")
        inactive, active = Block("gone", [Instruction(VOID, "ret", [])]), Block("stays")
        self._insert("br", VOID, [here], targets=[active, inactive])
        self._made.function.blocks += [inactive, active]
        self._current = active

    def _load_live_ins(self) -> None:
        ctx, region = self._ctx, self._region
        used = {value for block in region.blocks for value in block_uses(block)}
        start = region.start
        if start is not None and start in ctx.results:
            hoisted = self._hoisted.get(start.call)
            self._live_in[start.call] = (
                self._load(ctx.results[start], start.call.name) if hoisted is None else self._argument(hoisted)
            )
        for value in region.live_in_order:
            if value in used or value in self._defined:
                if ctx.transfers[value] is Transfer.REMATERIALIZE:
                    self._live_in[value] = self._rematerialize(value)
                elif value in self._hoisted:
                    self._live_in[value] = self._argument(self._hoisted[value])
                else:
                    self._live_in[value] = self._load(ctx.kept[value], value.name)

    def _rematerialize(self, value: Instruction) -> Value:
        """Compute *value* again. Its flags hold, as each active thread has executed it before."""
        known = self._rematerialized.get(value)
        if known is None:
            if value.opcode == "alloca":
                return self._private(value)
            if self._ctx.transfers.get(value) is Transfer.CONTEXT_SCALAR:
                self._derived.add(value)
                known = self._rematerialized[value] = self._load_uniform(value)
                return known
            operands = [
                self._rematerialize(operand) if isinstance(operand, Instruction) else operand
                for operand in value.operands
            ]
            if not self._derived.isdisjoint(value.operands):
                self._derived.add(value)
            known = self._rematerialized[value] = replace(value, operands=operands)
            self._current.instructions.append(known)
        return known

    def _load_uniform(self, value: Instruction) -> Value:
        """*value*, which is saved once for the block."""
        hoisted = self._hoisted.get(value)
        return self._load(self._ctx.kept[value], value.name) if hoisted is None else self._argument(hoisted)

    def _private(self, alloca: Instruction) -> Value:
        """The memory of *alloca*: the thread's part of an array, or an alloca of the gang if it is not live across sync
        points."""
        found = self._places.get(alloca)
        if found is None:
            place = self._ctx.allocas[alloca]
            now, self._current = self._current, Block("places")
            if place.count > 1:
                found = self._address(place)
            else:
                found = replace(alloca)
                self._current.instructions.append(found)
            self._places[alloca] = found
            self._start.instructions[self._after_index : self._after_index] = self._current.instructions
            self._current = now
        return found

    # the blocks

    def _copy_block(self, block: Block, copies: Mapping[Instruction, Instruction]) -> None:
        for instruction in block.instructions:
            if instruction.is_terminator:
                self._copy_end(block, instruction)
            elif instruction.opcode == "phi":
                self._copy_phi(block, copies[instruction])
            elif instruction in copies:
                copy = copies[instruction]
                copy.operands = [self._operand(value, block) for value in instruction.operands]
                self._current.instructions.append(copy)

    def _copy_phi(self, block: Block, copy: Instruction) -> None:
        directions = [
            (value, source)
            for value, source in zip(copy.operands, copy.targets, strict=True)
            if source in self._blocks and block in region_successors(source)
        ]
        copy.operands = [self._operand(value, source) for value, source in directions]
        copy.targets = [self._blocks[source] for _, source in directions]
        self._current.instructions.append(copy)

    def _operand(self, value: Value, block: Block) -> Value:
        if not isinstance(value, Instruction):
            return value
        if value in self._known:
            return self._known[value]
        if value in self._indices:
            return self._indices[value]
        return self._private(value) if value.opcode == "alloca" else self._names.value_in(value, block)

    def _copy_end(self, block: Block, end: Instruction) -> None:
        if end.opcode == "synchronise":
            point = next(point for point in self._region.exits if point.end is end)
            self._store_live_outs(point, block)
            self._end_thread(point)
        elif end.opcode == "ret":
            self._end_thread(None)
        else:
            operands = [self._compute_condition(value) or self._operand(value, block) for value in end.operands]
            targets = [self._blocks[target] for target in end.targets]
            self._current.instructions.append(replace(end, operands=operands, targets=targets))

    def _compute_condition(self, value: Value) -> Value | None:
        """*value*, a condition that is rematerialized, computed once more where a branch depends on it: only there do
        the first and the last lane decide, see `uniform_condition`. ``None`` if it is another value."""
        if not isinstance(value, Instruction) or value.type != I1 or value.opcode not in _CONDITIONS:
            return None
        if value in self._known:
            return self._known[value]
        if value in self._defined or value not in self._rematerialized:
            return None
        computed = [operand for operand in value.operands if isinstance(operand, Instruction)]
        if not self._rematerialized.keys() >= set(computed):  # the address of an alloca
            return None
        operands = [
            self._compute_condition(operand) or self._rematerialized[operand] if operand in computed else operand
            for operand in value.operands
        ]
        made = replace(value, operands=operands)
        self._current.instructions.append(made)
        return made

    def _store_live_outs(self, point: SyncPoint, block: Block) -> None:
        """Store the values that are live after *point*, and the thread's arguments to it."""
        ctx = self._ctx
        for place, passed in zip(ctx.passed[point], point.call.arguments[1:], strict=True):
            self._store(self._operand(passed, block), place)
        behind = next(region for region in ctx.graph.regions if region.start is point)
        for value in behind.live_in_order:
            if value in self._defined and ctx.transfers[value] is not Transfer.REMATERIALIZE:
                found = self._operand(value, block)
                if found is not self._live_in.get(value) or value not in self._region.live:
                    self._store(found, ctx.kept[value])

    def _end_thread(self, point: SyncPoint | None) -> None:
        number = self._state_places.returned if point is None else point.number
        if self._region.diverges:
            assert self._state_places.states is not None
            self._store(_number(self._state_places.states.kind, number), self._state_places.states)
        elif len(self._region.exits) + self._region.returns > 1:
            self._insert("store", VOID, [_number(I32, number), self._argument(self._state_places.next)])
        self._insert("ret", VOID, [])


def _number(kind: ir.Type, number: int) -> Constant:
    return Constant(kind, str(number), number)
