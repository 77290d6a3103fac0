"""A region as a function of its own: a graph that begins where its threads do and returns where they wait.

What `scalar_region` writes around the instructions of a region is part of the graph here: a thread loads what was kept
for it, computes again what was not, and stores what is needed behind the operation that it waits at. Each kept value is
in memory next to that of the thread's neighbours, so that lanes load and store whole vectors. Where threads may have
returned, or wait elsewhere, the graph begins with a branch on that, at which lanes part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.abi.work_item import AXES
from hip_runtime.drivers.cpu.ir.model import Argument, Block, Call, Constant, Function, Instruction, Symbol, Value
from hip_runtime.drivers.cpu.llvmir import I1, I8, I32, I64, PTR, VOID
from hip_runtime.drivers.cpu.regions.context_values import Transfer
from hip_runtime.drivers.cpu.regions.form import Region, SyncPoint, block_uses, within
from hip_runtime.drivers.cpu.regions.scalar_region import RegionContext
from hip_runtime.drivers.cpu.regions.ssa_repair import SsaRepair
from hip_runtime.drivers.cpu.regions.storage import Place

_INDEX = ir.FunctionType(I32, [PTR])


@dataclass(frozen=True)
class Notes:
    """Where threads note what they wait at: each for itself in ``states``, or all in ``next``."""

    states: Place | None
    next: ir.Value
    returned: int
    """The number that stands for having returned."""


@dataclass
class OutlinedRegion:
    """The graph, what is passed to it behind the arguments of the kernel, and its atomic operations on memory of the
    block alone."""

    function: Function
    passed: list[ir.Value] = field(default_factory=list)
    demotable: frozenset[Instruction] = frozenset()


class RegionOutliner:
    """Makes the graph of one region of a block of the shape *extents*, for groups of neighbours along x or, where they
    are *numbered*, in the order of their numbers.

    *once* are values that are the same for all threads, loaded before any of them runs.
    """

    def __init__(
        self, ctx: RegionContext, region: Region, notes: Notes, extents: tuple[int, int, int],
        once: Mapping[Instruction, ir.Value], numbered: bool = False,
    ) -> None:  # fmt: skip
        self._ctx = ctx
        self._region = region
        self._notes = notes
        self._extents = extents
        self._once = once
        self._numbered = numbered
        kernel = ctx.program.function
        self._made = OutlinedRegion(Function(kernel.name, list(kernel.arguments), []))
        self._arguments: dict[ir.Value, Argument] = {}
        inside = frozenset(region.blocks)
        self._defined = {value for value, home in ctx.program.homes.items() if home in inside}
        self._given: dict[Instruction, Value] = {}
        self._computed: dict[Instruction, Value] = {}
        self._places: dict[Instruction, Value] = {}
        self._indices: dict[Instruction, Value] = {}
        """What calls that ask for an index of the thread give, where that follows from its number."""
        self._blocks = {block: Block(block.name) for block in region.blocks}
        self._at = Block("threads")
        self._made.function.blocks.append(self._at)

    def build(self) -> OutlinedRegion:
        """The graph."""
        number = self._find_indices() if self._numbered else self._thread_number()
        self._index = self._insert("zext", I64, [number], flags=("nneg",))
        if self._region.masked or self._follows_yield:
            self._leave_out_others()
        self._start, self._behind_index = self._at, len(self._at.instructions)
        self._restore()
        self._insert("br", VOID, [], targets=[self._blocks[self._region.entry]])
        ctx, region = self._ctx, self._region
        copies = {
            instruction: replace(instruction)
            for block in region.blocks
            for instruction in block.instructions
            if not instruction.is_terminator and instruction.opcode != "alloca" and instruction not in self._indices
        }
        computed = self._given.keys() & self._computed.keys()
        own = {value: copy for value, copy in copies.items() if value not in computed}
        self._names = SsaRepair(region, ctx.program.homes, self._given, own, self._blocks)
        for block in region.blocks:
            self._at = self._blocks[block]
            self._copy_block(block, copies)
            self._made.function.blocks.append(self._at)
        self._names.insert_phis()
        self._made.demotable = frozenset(copy for value, copy in copies.items() if value in ctx.demotable)
        return self._made

    # pieces

    def _insert(self, opcode: str, kind: ir.Type, operands: list[Value], **rest: Any) -> Instruction:
        made = Instruction(kind, opcode, operands, **rest)
        self._at.instructions.append(made)
        return made

    def _argument(self, value: ir.Value) -> Argument:
        """*value*, which code in front of the loop over the groups has, as an argument."""
        found = self._arguments.get(value)
        if found is None:
            arguments = self._made.function.arguments
            found = self._arguments[value] = Argument(value.type, len(arguments), f"passed.{len(arguments)}")
            arguments.append(found)
            self._made.passed.append(value)
        return found

    def _thread_number(self) -> Value:
        """The number of the thread in the block."""
        number: Value | None = None
        for axis, extent in reversed(list(zip(AXES, self._extents, strict=True))):
            if number is not None:
                number = self._insert("mul", I32, [number, _number(I32, extent)], flags=("nuw", "nsw"))
            if extent > 1:
                index = self._ask(spmd.thread_idx(axis))
                number = index if number is None else self._insert("add", I32, [number, index], flags=("nuw", "nsw"))
        return number or _number(I32, 0)

    def _find_indices(self) -> Value:
        """The number of the thread in the block, with the indices that follow from it."""
        number: Value = self._ask(intrinsics.NUMBER)
        rest = number
        for axis, extent in zip(AXES, self._extents, strict=True):
            index = self._insert("urem", I32, [rest, _number(I32, extent)])
            rest = self._insert("udiv", I32, [rest, _number(I32, extent)])
            for call in self._ctx.program.homes:
                if call.callee == spmd.thread_idx(axis):
                    self._indices[call] = index
        self._computed.update(self._indices)
        return number

    def _ask(self, name: str) -> Instruction:
        """What the function *name* gives for the work item."""
        item = self._made.function.arguments[0]
        return self._insert("call", I32, [item, Symbol(PTR, name)], call=Call(_INDEX, argument_attributes=((),)))

    def _address(self, place: Place) -> Value:
        base = self._argument(place.base)
        if place.count == 1:
            return base
        return self._insert("getelementptr", PTR, [base, self._index], source_type=place.stored, flags=("inbounds",))

    def _load(self, place: Place, name: str) -> Value:
        loaded = self._insert("load", place.stored, [self._address(place)], name=name)
        return self._insert("trunc", I1, [loaded]) if place.kind == I1 else loaded

    def _store(self, value: Value, place: Place) -> None:
        if place.kind == I1:
            value = self._insert("zext", I8, [value])
        self._insert("store", VOID, [value, self._address(place)])

    # the start

    @property
    def _follows_yield(self) -> bool:
        return self._region.start is not None and self._region.start.yields

    def _leave_out_others(self) -> None:
        """Leave out threads that have returned; behind a yield, all that do not wait there."""
        states, start = self._notes.states, self._region.start
        assert states is not None
        state = self._load(states, "state")
        if start is not None and start.yields:
            here = self._insert("icmp", I1, [state, _number(states.kind, start.number)], predicate="eq")
        else:
            here = self._insert("icmp", I1, [state, _number(states.kind, self._notes.returned)], predicate="ne")
        gone, stays = Block("gone", [Instruction(VOID, "ret", [])]), Block("stays")
        self._insert("br", VOID, [here], targets=[stays, gone])
        self._made.function.blocks += [gone, stays]
        self._at = stays

    def _restore(self) -> None:
        ctx, region = self._ctx, self._region
        used = {value for block in region.blocks for value in block_uses(block)}
        start = region.start
        if start is not None and start in ctx.results:
            once = self._once.get(start.call)
            self._given[start.call] = (
                self._load(ctx.results[start], start.call.name) if once is None else self._argument(once)
            )
        for value in sorted(region.live, key=lambda value: value.name):
            if value in used or value in self._defined:
                if ctx.transfers[value] is Transfer.REMATERIALIZE:
                    self._given[value] = self._compute(value)
                elif value in self._once:
                    self._given[value] = self._argument(self._once[value])
                else:
                    self._given[value] = self._load(ctx.kept[value], value.name)

    def _compute(self, value: Instruction) -> Value:
        """Compute *value* again. What its flags promise holds for each thread that is here, as it came by there."""
        known = self._computed.get(value)
        if known is None:
            if value.opcode == "alloca":
                return self._private(value)
            operands = [
                self._compute(operand) if isinstance(operand, Instruction) else operand for operand in value.operands
            ]
            known = self._computed[value] = replace(value, operands=operands)
            self._at.instructions.append(known)
        return known

    def _private(self, alloca: Instruction) -> Value:
        """The memory of *alloca*: a part of that of all threads, or memory of the group where nothing is kept in it."""
        found = self._places.get(alloca)
        if found is None:
            place = self._ctx.allocas[alloca]
            now, self._at = self._at, Block("places")
            if place.count > 1:
                found = self._address(place)
            else:
                found = replace(alloca)
                self._at.instructions.append(found)
            self._places[alloca] = found
            self._start.instructions[self._behind_index : self._behind_index] = self._at.instructions
            self._at = now
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
                self._at.instructions.append(copy)

    def _copy_phi(self, block: Block, copy: Instruction) -> None:
        directions = [
            (value, source)
            for value, source in zip(copy.operands, copy.targets, strict=True)
            if source in self._blocks and block in within(source)
        ]
        copy.operands = [self._operand(value, source) for value, source in directions]
        copy.targets = [self._blocks[source] for _, source in directions]
        self._at.instructions.append(copy)

    def _operand(self, value: Value, block: Block) -> Value:
        if not isinstance(value, Instruction):
            return value
        if value in self._indices:
            return self._indices[value]
        return self._private(value) if value.opcode == "alloca" else self._names.inside(value, block)

    def _copy_end(self, block: Block, end: Instruction) -> None:
        if end.opcode == "synchronise":
            point = next(point for point in self._region.exits if point.end is end)
            self._keep(point, block)
            self._leave(point)
        elif end.opcode == "ret":
            self._leave(None)
        else:
            operands = [self._operand(value, block) for value in end.operands]
            targets = [self._blocks[target] for target in end.targets]
            self._at.instructions.append(replace(end, operands=operands, targets=targets))

    def _keep(self, point: SyncPoint, block: Block) -> None:
        """Put away what is needed behind *point*, and what the thread passes to it."""
        ctx = self._ctx
        for place, passed in zip(ctx.passed[point], point.call.arguments[1:], strict=True):
            self._store(self._operand(passed, block), place)
        behind = next(region for region in ctx.program.regions if region.start is point)
        for value in sorted(behind.live, key=lambda value: value.name):
            if value in self._defined and ctx.transfers[value] is not Transfer.REMATERIALIZE:
                found = self._operand(value, block)
                if found is not self._given.get(value) or value not in self._region.live:
                    self._store(found, ctx.kept[value])

    def _leave(self, point: SyncPoint | None) -> None:
        number = self._notes.returned if point is None else point.number
        if self._region.diverges:
            assert self._notes.states is not None
            self._store(_number(self._notes.states.kind, number), self._notes.states)
        elif len(self._region.exits) + self._region.returns > 1:
            self._insert("store", VOID, [_number(I32, number), self._argument(self._notes.next)])
        self._insert("ret", VOID, [])


def _number(kind: ir.Type, number: int) -> Constant:
    return Constant(kind, str(number), number)
