"""The code of one region for one thread: the body of `block_function`'s loop over the threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi.worker_memory import CollectsTotals
from hip_runtime.drivers.cpu.analyses.cfg import order_blocks
from hip_runtime.drivers.cpu.analyses.effects import DIVISIONS
from hip_runtime.drivers.cpu.analyses.sources import are_all, operands_first
from hip_runtime.drivers.cpu.analyses.uniformity import is_arithmetic
from hip_runtime.drivers.cpu.ir.debug_locations import stand_at
from hip_runtime.drivers.cpu.ir.keywords import BINARY, CASTS
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value
from hip_runtime.drivers.cpu.ir.symbol_declarations import SymbolDeclarations
from hip_runtime.drivers.cpu.ir.writer import write_instruction
from hip_runtime.drivers.cpu.llvmir import I32, allocate
from hip_runtime.drivers.cpu.passes.checked_atomics import write_checked
from hip_runtime.drivers.cpu.passes.demote_atomics import write_demoted
from hip_runtime.drivers.cpu.regions.context_values import Transfer
from hip_runtime.drivers.cpu.regions.formation import Region, RegionGraph, SyncPoint, block_uses, region_successors
from hip_runtime.drivers.cpu.regions.storage import Slot

_COMPUTED = (BINARY | CASTS | {"icmp", "select", "freeze"}) - DIVISIONS


@dataclass
class RegionContext:
    """What the regions of a block function share."""

    graph: RegionGraph
    symbols: SymbolDeclarations
    arguments: list[ir.Value]
    entry: ir.IRBuilder
    """Builds the function's entry block, for stack slots."""
    transfers: Mapping[Instruction, Transfer]
    kept: Mapping[Instruction, Slot]
    """Where values are saved between regions."""
    allocas: Mapping[Instruction, Slot]
    results: Mapping[SyncPoint, Slot]
    """The results of synchronising operations."""
    passed: Mapping[SyncPoint, list[Slot]]
    """The arguments of synchronising operations, without the work item."""
    keys: list[Slot]
    """The words of the lanes' `reconvergence_keys`."""
    totals: CollectsTotals | None
    demotable: frozenset[Instruction] = frozenset()
    """Atomic operations on the block's own memory, see `demote_atomics`."""


class ScalarRegion:
    """Writes one region. Values that cross blocks are in stack slots, which LLVM promotes to registers."""

    def __init__(self, ctx: RegionContext, region: Region, builder: ir.IRBuilder) -> None:
        self._ctx = ctx
        self._region = region
        self._builder = builder
        self._variables: dict[Instruction, ir.Value] = {}
        self._incoming: dict[Instruction, ir.Value] = {}
        self._blocks: dict[Block, ir.Block] = {}
        self._values: dict[Instruction, ir.Value] = {}
        """The values that are available in the block that is being written."""
        self._linear: ir.Value | None = None
        self._directions: Mapping[Block, Block] = {}
        inside = frozenset(region.blocks)
        self._defined = {value for value, home in ctx.graph.homes.items() if home in inside}
        self._used = {value for block in region.blocks for value in block_uses(block)}
        self._live_ins = [value for value in region.live_in_order if value in self._used or value in self._defined]
        self.hoisted: dict[Instruction, ir.Value] = {}
        """The values that `hoist_uniform` loaded."""

    @property
    def variables(self) -> set[ir.Value]:
        """The stack slots of the region's values."""
        return {*self._variables.values(), *self._incoming.values()}

    def hoist_uniform(self) -> None:
        """Before the loop over the threads: load uniform values, before any thread changes them."""
        ctx = self._ctx
        for value in self._live_ins:
            if ctx.transfers[value] is Transfer.CONTEXT_SCALAR:
                self.hoisted[value] = ctx.kept[value].load(self._builder)
        start = self._region.start
        if start is not None and start in ctx.results and ctx.results[start].count == 1:
            self.hoisted[start.call] = ctx.results[start].load(self._builder)

    def can_compute(self, value: Value) -> bool:
        """Whether `compute_first` can compute *value*."""

        def judge(value: Value) -> bool | list[Value]:
            if not isinstance(value, Instruction) or self._is_hoisted(value):
                return True
            if value.opcode == "call":
                return value.arguments if spmd.is_uniform(value.callee) or is_arithmetic(value.callee) else False
            return value.operands if value.opcode in _COMPUTED else False

        return are_all(value, judge)

    def compute_first(self, values: Sequence[Value]) -> list[ir.Value]:
        """*values*, the same for all threads, before the loop over them: as they are in the region's first block."""
        known: dict[Value, ir.Value] = {value: held for value, held in self.hoisted.items() if self._is_hoisted(value)}

        def read(value: Value) -> ir.Value:
            return known[value] if value in known else self._operand(value)

        found = []
        for value in values:
            for part in operands_first(value, known, lambda part: part.operands):
                known[part] = write_instruction(self._builder, part, [read(operand) for operand in part.operands])
            found.append(read(value))
        return found

    def _is_hoisted(self, value: Instruction) -> bool:
        """Whether *value* is the one that was loaded before the threads run, and not that of an earlier iteration."""
        return value in self.hoisted and value not in self._defined

    def copy(self) -> ScalarRegion:
        """A writer for another version of the region, with the same hoisted values."""
        other = ScalarRegion(self._ctx, self._region, self._builder)
        other.hoisted = self.hoisted
        return other

    def write(
        self,
        linear: ir.Value,
        end_thread: Callable[[SyncPoint | None], None],
        directions: Mapping[Block, Block] | None = None,
    ) -> None:
        """Write the region for the thread *linear*. *end_thread* is called where it waits at a sync point, or returns;
        *directions* are branches with a known target."""
        self._linear = linear
        self._directions = directions or {}
        self._load_live_ins()
        builder = self._builder
        reached = order_blocks(self._region.entry, self._next).blocks if directions else self._region.blocks
        for block in reached:
            self._blocks[block] = builder.append_basic_block(block.name)
        builder.branch(self._blocks[self._region.entry])
        for block in reached:
            builder.position_at_end(self._blocks[block])
            self._values = {}
            self._write_block(block, end_thread)

    def _next(self, block: Block) -> list[Block]:
        return [self._directions[block]] if block in self._directions else region_successors(block)

    def _load_live_ins(self) -> None:
        ctx, builder = self._ctx, self._builder
        start = self._region.start
        if start is not None and start in ctx.results:
            result = self.hoisted.get(start.call)
            if result is None:
                result = ctx.results[start].load(builder, self._linear)
            builder.store(result, self._variable(start.call))
        for value in self._live_ins:
            if ctx.transfers[value] is Transfer.REMATERIALIZE:
                loaded = self._rematerialize(value)
            elif value in self.hoisted:
                loaded = self.hoisted[value]
            else:
                loaded = ctx.kept[value].load(builder, self._linear)
            builder.store(loaded, self._variable(value))

    def _rematerialize(self, value: Instruction) -> ir.Value:
        """Compute *value* again."""
        known = self._values.get(value)
        if known is None:
            if value.opcode == "alloca":
                return self._operand(value)
            if self._ctx.transfers.get(value) is Transfer.CONTEXT_SCALAR:
                return self.hoisted[value] if value in self.hoisted else self._ctx.kept[value].load(self._builder)
            operands = [
                self._rematerialize(operand) if isinstance(operand, Instruction) else self._operand(operand)
                for operand in value.operands
            ]
            known = self._values[value] = write_instruction(self._builder, value, operands)
        return known

    def _write_block(self, block: Block, end_thread: Callable[[SyncPoint | None], None]) -> None:
        builder = self._builder
        crossing = self._ctx.graph.crossing
        for phi in block.phis:
            self._values[phi] = builder.load(self._incoming_variable(phi), typ=phi.type, name=phi.name)
        for instruction in block.instructions:
            stand_at(builder, instruction.location)
            if instruction.is_terminator:
                self._write_incoming(block)
                self._write_end(block, end_thread)
                return
            if instruction.opcode == "alloca":
                continue
            if instruction.opcode != "phi":
                operands = [self._operand(operand) for operand in instruction.operands]
                if instruction.total is not None:
                    self._collect(instruction, operands)
                    continue
                write = write_demoted if instruction in self._ctx.demotable else write_checked
                self._values[instruction] = write(builder, instruction, operands)
            if instruction in crossing:
                builder.store(self._values[instruction], self._variable(instruction))

    def _collect(self, update: Instruction, operands: list[ir.Value]) -> None:
        """Combine the operand of *update* with that of other threads of the chunk of blocks."""
        ctx = self._ctx
        assert ctx.totals is not None
        ctx.totals.collect(self._builder, ctx.arguments[0], update, *operands)

    def _write_incoming(self, block: Block) -> None:
        """Store the values of the successors' phis: all are read before any is written."""
        if block.terminator.opcode == "synchronise":
            return
        pairs = [
            (phi, self._operand(operand))
            for successor in self._next(block)
            for phi in successor.phis
            for operand in [dict(zip(phi.targets, phi.operands, strict=True))[block]]
        ]
        for phi, value in pairs:
            self._builder.store(value, self._incoming_variable(phi))

    def _write_end(self, block: Block, end_thread: Callable[[SyncPoint | None], None]) -> None:
        builder, end = self._builder, block.terminator
        if end.opcode == "synchronise":
            point = next(point for point in self._region.exits if point.end is end)
            self._store_live_outs(point)
            end_thread(point)
        elif end.opcode == "ret":
            end_thread(None)
        elif end.opcode == "unreachable":
            builder.unreachable()
        elif len(self._next(block)) == 1:
            builder.branch(self._blocks[self._next(block)[0]])
        elif end.opcode == "switch":
            kind = end.operands[0].type
            switch = builder.switch(self._operand(end.operands[0]), self._blocks[end.targets[0]])
            for number, target in zip(end.cases, end.targets[1:], strict=True):
                switch.add_case(ir.Constant(kind, number), self._blocks[target])
        else:
            builder.cbranch(self._operand(end.operands[0]), *(self._blocks[target] for target in end.targets))

    def _store_live_outs(self, point: SyncPoint) -> None:
        """Store the values that are live after *point*, and the thread's arguments to it."""
        ctx, builder = self._ctx, self._builder
        for place, operand in zip(ctx.passed[point], point.call.arguments[1:], strict=True):
            place.store(builder, self._operand(operand), self._linear)
        for number, place in enumerate(ctx.keys if not point.is_block_wide else ()):
            key = point.end.operands[1:]
            place.store(builder, self._operand(key[number]) if number < len(key) else I32(0), self._linear)
        region = next(region for region in ctx.graph.regions if region.start is point)
        for value in region.live_in_order:
            if value in self._defined and ctx.transfers[value] is not Transfer.REMATERIALIZE:
                index = self._linear if ctx.transfers[value] is Transfer.CONTEXT_ARRAY else None
                ctx.kept[value].store(builder, self._operand(value), index)

    def _operand(self, value: Value) -> ir.Value:
        ctx, builder = self._ctx, self._builder
        if not isinstance(value, Instruction):
            return ctx.symbols.leaf(value, ctx.arguments)
        known = self._values.get(value)
        if known is None:
            if value.opcode == "alloca":
                known = ctx.allocas[value].address(builder, self._linear)
            else:
                known = builder.load(self._variable(value), typ=value.type, name=value.name)
            self._values[value] = known
        return known

    def _variable(self, value: Instruction) -> ir.Value:
        found = self._variables.get(value)
        if found is None:
            found = self._variables[value] = allocate(self._ctx.entry, value.type, f"{value.name}.variable")
        return found

    def _incoming_variable(self, phi: Instruction) -> ir.Value:
        found = self._incoming.get(phi)
        if found is None:
            found = self._incoming[phi] = allocate(self._ctx.entry, phi.type, f"{phi.name}.incoming")
        return found
