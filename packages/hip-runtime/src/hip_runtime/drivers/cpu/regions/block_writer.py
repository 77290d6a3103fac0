"""What the parts of a block function share: storage, thread states, and transitions between regions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.fault_codes import divergence_code
from hip_runtime.drivers.cpu.abi.thread_states import state_bytes
from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.analyses.stack_usage import private_type
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.ir.debug_locations import keep_lines
from hip_runtime.drivers.cpu.ir.symbol_declarations import SymbolDeclarations
from hip_runtime.drivers.cpu.llvmir import I1, I32, I64, VOID, allocate
from hip_runtime.drivers.cpu.passes.demote_atomics import find_private_atomics
from hip_runtime.drivers.cpu.regions.context_values import RowDivisions, Transfer, plan_transfers
from hip_runtime.drivers.cpu.regions.formation import RegionGraph, SyncPoint
from hip_runtime.drivers.cpu.regions.private_memory import find_kept_allocas
from hip_runtime.drivers.cpu.regions.scalar_region import RegionContext
from hip_runtime.drivers.cpu.regions.storage import Slot, Storage
from hip_runtime.drivers.cpu.regions.thread_loop import Bounds, ThreadLoop

BLOCK_FUNCTION = "spmd.block"

Condition = Callable[[ir.Value], ir.Value]
"""Writes whether something holds for the thread with a linear index."""


class BlockWriter:
    """A block function that is being written, as the schedules and operations that are part of it see it."""

    def __init__(
        self,
        graph: RegionGraph,
        item: WorkItem,
        kind: ir.FunctionType,
        source: Any,
        size_of: SizeOf,
        in_gangs: bool = False,
    ) -> None:
        self.graph = graph
        joined = item.order.tile > 1
        plain = in_gangs and not graph.wave_scheduled and not graph.yields
        self.divisions = RowDivisions(graph, joined) if plain else None
        """The row divisions, if regions with such can run in gangs."""
        self.item = item
        self.function = ir.Function(item.module, kind, BLOCK_FUNCTION)
        for attribute in ("alwaysinline", "nounwind"):
            self.function.attributes.add(attribute)
        self.place = self.function.args[0]
        self.entry = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.builder = ir.IRBuilder(self.function.append_basic_block("block"))
        if item.has_lines:
            keep_lines(self.builder)
        if item.order.lengths is not None:
            length = item.load_length(self.entry, self.place)
            item.order.row_lanes = self.entry.and_(length, I32(-(item.order.multiple or 1)))  # so that LLVM knows it
        self.all_threads: Bounds = (I64(0), item.order.count_threads(self.entry))
        self.finish = self.function.append_basic_block("finish")
        self.point_blocks = {point: self.function.append_basic_block(f"point.{point.number}") for point in graph.points}
        self.storage = Storage(item.order.threads, size_of)
        self.waves = graph.wave_scheduled
        self.returned = len(graph.points)
        self.states = self._place_states()
        self.ctx = self._plan(SymbolDeclarations(item.module, source))
        if self.waves:
            self.selected = self.storage.per_thread(I1, "selected")
        self.next = allocate(self.entry, I32, "next")

    def _place_states(self) -> Slot | None:
        if not self.waves and not any(region.diverges for region in self.graph.regions):
            return None
        kind = ir.IntType(8 * state_bytes(self.returned))
        return self.storage.per_thread(kind, "waiting.at")

    def _plan(self, symbols: SymbolDeclarations) -> RegionContext:
        graph, storage = self.graph, self.storage
        transfers = plan_transfers(graph, self.divisions)
        kept = {
            value: (storage.per_block if how is Transfer.CONTEXT_SCALAR else storage.per_thread)(
                value.type, f"{value.name}.kept"
            )
            for value, how in transfers.items()
            if how is not Transfer.REMATERIALIZE
        }
        each, single = find_kept_allocas(graph)
        self.independent = not single
        allocas = {
            alloca: storage.private(private_type(alloca), alloca.align, alloca.name, alloca in each)
            for alloca in (*each, *single)
            if alloca not in graph.interleaved
        }
        for alloca, array in graph.interleaved.items():
            allocas[alloca] = storage.interleaved(array.kind, array.count, alloca.name)
        results: dict[SyncPoint, Slot] = {}
        passed: dict[SyncPoint, list[Slot]] = {}
        for point in graph.points:
            name = f"point.{point.number}"
            passed[point] = [storage.per_thread(value.type, f"{name}.passed") for value in point.call.arguments[1:]]
            if point.call.type != VOID:
                make = storage.per_block if point.is_block_wide else storage.per_thread
                results[point] = make(point.call.type, f"{name}.result")
        arguments = [*self.function.args]
        words = max((len(point.end.operands) - 1 for point in graph.points), default=0)
        keys = [storage.per_thread(I32, "key") for _ in range(words)]
        demotable = find_private_atomics(graph.homes)
        return RegionContext(
            graph,
            symbols,
            arguments,
            self.entry,
            transfers,
            kept,
            allocas,
            results,
            passed,
            keys,
            self.item.memory.totals,
            demotable,
        )

    # thread states

    def compare_state(self, relation: str, number: int, linear: ir.Value) -> ir.Value:
        """Whether the state of thread *linear* is in *relation* to *number*."""
        assert self.states is not None
        state = self.states.load(self.builder, linear)
        return self.builder.icmp_unsigned(relation, state, self.states.kind(number))

    def record_state(self, number: int, linear: ir.Value) -> None:
        """Record that thread *linear* waits at the sync point *number*."""
        assert self.states is not None
        self.states.store(self.builder, self.states.kind(number), linear)

    def has_not_returned(self, linear: ir.Value) -> ir.Value:
        """Whether thread *linear* has not returned."""
        return self.compare_state("!=", self.returned, linear)

    def skip_unless(self, active: Condition, loop: ThreadLoop) -> None:
        """Skip the body of *loop* for threads that are not *active*."""
        builder = self.builder
        body = builder.append_basic_block("active")
        builder.cbranch(active(loop.linear), body, loop.latch)
        builder.position_at_end(body)

    @contextmanager
    def each_thread(self, bounds: Bounds) -> Iterator[ir.Value]:
        """A loop over the linear indices of threads, with a body that ends in one block."""
        builder = self.builder
        before = builder.block
        head, after = builder.append_basic_block("each"), builder.append_basic_block("each.end")
        builder.branch(head)
        builder.position_at_end(head)
        index = builder.phi(I64)
        index.add_incoming(bounds[0], before)
        yield index
        following = builder.add(index, I64(1), flags=("nuw", "nsw"))
        index.add_incoming(following, builder.block)
        builder.cbranch(builder.icmp_unsigned("<", following, bounds[1]), head, after)
        builder.position_at_end(after)

    # transitions

    def write_common_transition(
        self, points: list[SyncPoint], may_finish: bool, extremes: tuple[ir.Value, ir.Value] | None = None
    ) -> None:
        """Jump to the one of *points* that all threads which have not returned wait at; report a fault if there is
        none. *extremes* are the lowest and the highest thread state, if these are known."""
        builder = self.builder
        if not points:
            builder.branch(self.finish)
            return
        low, high = extremes or self.find_state_range(self.all_threads)
        if may_finish:
            go = builder.append_basic_block("some.wait")
            builder.cbranch(builder.icmp_unsigned("==", low, I32(self.returned)), self.finish, go)
            builder.position_at_end(go)
        if len(points) > 1:
            same, apart = builder.append_basic_block("all.wait"), builder.append_basic_block("apart")
            builder.cbranch(builder.icmp_unsigned("==", low, high), same, apart)
            builder.position_at_end(apart)
            self._report_divergence(low, high)
            builder.position_at_end(same)
        switch = builder.switch(low, self.point_blocks[points[-1]])
        for point in points[:-1]:
            switch.add_case(I32(point.number), self.point_blocks[point])

    def find_state_range(self, bounds: Bounds) -> tuple[ir.Value, ir.Value]:
        """The lowest and the highest number of a sync point that threads wait at. A thread that has returned has a
        number above all others, and does not count for the highest."""
        assert self.states is not None
        builder = self.builder
        kind = self.states.kind
        low, high = (allocate(self.entry, kind) for _ in range(2))
        builder.store(kind(self.returned), low)
        builder.store(kind(0), high)
        with self.each_thread(bounds) as linear:
            state = self.states.load(builder, linear)
            least, most = builder.load(low, typ=kind), builder.load(high, typ=kind)
            builder.store(builder.select(builder.icmp_unsigned("<", state, least), state, least), low)
            waiting = builder.select(builder.icmp_unsigned("==", state, kind(self.returned)), kind(0), state)
            builder.store(builder.select(builder.icmp_unsigned(">", waiting, most), waiting, most), high)
        return tuple(builder.zext(builder.load(value, typ=kind), I32) for value in (low, high))

    def _report_divergence(self, low: ir.Value, high: ir.Value) -> None:
        """Report that threads wait at different sync points, *low* and *high*, with the first thread at *high*."""
        assert self.states is not None
        builder = self.builder
        found = allocate(self.entry, I64, "elsewhere")
        builder.store(self.all_threads[1], found)
        with self.each_thread(self.all_threads) as linear:
            state = builder.zext(self.states.load(builder, linear), I32)
            there = builder.icmp_unsigned("==", state, high)
            known = builder.load(found, typ=I64)
            first = builder.and_(there, builder.icmp_unsigned("<", linear, known))
            builder.store(builder.select(first, linear, known), found)
        rest = builder.trunc(builder.load(found, typ=I64), I32)
        thread = self.item.order.split_number(builder, rest)
        self.item.record_fault(builder, self.place, divergence_code(builder, low, high), thread)
        builder.branch(self.finish)
