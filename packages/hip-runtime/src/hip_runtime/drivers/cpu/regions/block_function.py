"""The function that runs the threads of one block, region after region.

Behind each region stands what decides where the block goes on. Where all threads end at the same place that is a jump.
Where they can end at different places, each thread notes where it waits, and a scan of these notes decides: when all
that have not returned wait at one operation, the block goes on there, else a barrier can never be passed, which is
reported as a fault. Threads in spin loops take turns first, see `spin_schedule`. Where lanes of a wave can wait at
different operations of the wave, waves are run one at a time, each until all of its lanes wait for the block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.abi.fault_codes import MAX_POINTS, MEMORY_CODE, divergence_code
from hip_runtime.drivers.cpu.abi.thread_states import UNKNOWN_BYTE, state_bytes
from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.abi.worker import Body
from hip_runtime.drivers.cpu.analyses.stack_usage import private_type
from hip_runtime.drivers.cpu.ir.debug_locations import keep_lines
from hip_runtime.drivers.cpu.ir.loop_metadata import mark_loop, rolled
from hip_runtime.drivers.cpu.ir.model import Block
from hip_runtime.drivers.cpu.ir.symbols import Symbols
from hip_runtime.drivers.cpu.llvmir import I1, I8, I32, I64, PTR, VOID, allocate, store_atomic
from hip_runtime.drivers.cpu.passes.demote_atomics import find_private_atomics
from hip_runtime.drivers.cpu.regions import grid_barrier, spin_schedule, wave_schedule
from hip_runtime.drivers.cpu.regions.bounds_versioning import BoundsVersioning
from hip_runtime.drivers.cpu.regions.context_values import Transfer, plan_transfers
from hip_runtime.drivers.cpu.regions.form import Region, RegionGraph, SyncPoint
from hip_runtime.drivers.cpu.regions.gang_region import GangPlan, GangRegionWriter
from hip_runtime.drivers.cpu.regions.outline import Notes
from hip_runtime.drivers.cpu.regions.parallel_loops import is_independent, mark_independent
from hip_runtime.drivers.cpu.regions.private_memory import find_kept_allocas
from hip_runtime.drivers.cpu.regions.scalar_region import RegionContext, ScalarRegion
from hip_runtime.drivers.cpu.regions.storage import Place, Storage
from hip_runtime.drivers.cpu.regions.thread_loop import Bounds, ThreadLoop
from hip_runtime.errors import UnsupportedError

BLOCK_FUNCTION = "spmd.block"

_REGIONS_WRITTEN_OUT = 32
"""Regions up to which LLVM may write out the loops over threads. Those of many regions, written out, are one block of
straight code with thousands of accesses, of which LLVM's code generator compares each with many others."""

Condition = Callable[[ir.Value], ir.Value]
"""Whether something holds for the thread with a number."""


SizeOf = Callable[[ir.Type], int]


def run_block(
    program: RegionGraph, item: WorkItem, kind: ir.FunctionType, source: Any, layout: Any, grouping: GangPlan
) -> Body:
    """A body of a worker that runs the blocks of the kernel of type *kind* that was cut into *program*.

    *source* is the binding layer's module that the kernel is in, *layout* LLVM's data layout. *grouping* says which
    regions run several threads at a time, and is told what was done.
    """
    if len(program.points) > MAX_POINTS:
        raise UnsupportedError(
            f"kernel {program.function.name!r} has {len(program.points)} synchronising operations after inlining; the "
            f"CPU device takes at most {MAX_POINTS}"
        )

    def body(builder: ir.IRBuilder, place: ir.Value, arguments: Sequence[ir.Value]) -> None:
        size_of: SizeOf = lambda stored: int(stored.get_abi_size(layout, item.module.context))  # noqa: E731
        function = BlockFunction(program, item, kind, source, size_of, grouping).build()
        builder.call(function, [place, *arguments])

    return body


class BlockFunction:
    """A block function that is being written."""

    def __init__(
        self,
        program: RegionGraph,
        item: WorkItem,
        kind: ir.FunctionType,
        source: Any,
        size_of: SizeOf,
        grouping: GangPlan,
    ) -> None:
        self.program = program
        self.item = item
        self.function = ir.Function(item.module, kind, BLOCK_FUNCTION)
        for attribute in ("alwaysinline", "nounwind"):
            self.function.attributes.add(attribute)
        self.place = self.function.args[0]
        self.entry = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.builder = ir.IRBuilder(self.function.append_basic_block("block"))
        if item.has_lines:
            keep_lines(self.builder)
        self.finish = self.function.append_basic_block("finish")
        self.starts = {point: self.function.append_basic_block(f"point.{point.number}") for point in program.points}
        self.storage = Storage(item.threads, size_of)
        self.waves = program.wave_scheduled
        self.returned = len(program.points)
        self.states = self._place_states()
        self.around = self._plan(Symbols(item.module, source))
        self.turn = self.storage.per_thread(I1, "turn")
        self.next = allocate(self.entry, I32, "next")
        self._grouping = grouping
        self._groups = GangRegionWriter(self.around, item, size_of, grouping)

    def build(self) -> ir.Function:
        builder = self.builder
        first = builder.block
        self.context = grid_barrier.Context(self) if self.item.waits_for_grid else None
        if self.context is not None:
            self.context.begin()
        else:
            there = self.storage.make(builder, self._load_memory_word)
            if there is not None:
                self._check_memory(there)
            self._show_states()
        if self.waves:
            scheduler = wave_schedule.WaveScheduler(self)
            scheduler.write()
        else:
            self._write_lockstep()
        self.entry.branch(first)
        finish = ir.IRBuilder(self.finish)
        if self._shows_states:
            store_atomic(finish, PTR(None), self.item.layout.load(finish, self.place, "states_word"))
        self.storage.give_back(finish, self._load_memory_word)
        if self.context is not None:
            self.context.end(finish)
        finish.ret_void()
        return self.function

    @property
    def _shows_states(self) -> bool:
        """Whether others can see what each thread waits for: where some spin, so that the kernel may not go on."""
        return self.states is not None and self.context is None and bool(self.program.yields)

    def _show_states(self) -> None:
        """Note where it is kept what each thread waits for, which is not known of any yet."""
        if not self._shows_states:
            return
        assert self.states is not None
        clear = self.builder.module.declare_intrinsic("llvm.memset", (PTR, I64))
        nbytes = self.states.count * state_bytes(self.returned)
        self.builder.call(clear, [self.states.base, I8(UNKNOWN_BYTE), I64(nbytes), I1(0)])
        store_atomic(self.builder, self.states.base, self.item.layout.load(self.builder, self.place, "states_word"))

    def _load_memory_word(self, builder: ir.IRBuilder) -> ir.Value:
        return self.item.layout.load(builder, self.place, "memory_word")

    # what is kept where

    def _place_states(self) -> Place | None:
        if not self.waves and not any(region.parts for region in self.program.regions):
            return None
        kind = ir.IntType(8 * state_bytes(self.returned))
        return self.storage.per_thread(kind, "waiting.at")

    def _plan(self, symbols: Symbols) -> RegionContext:
        program, storage = self.program, self.storage
        keeping = plan_transfers(program)
        kept = {
            value: (storage.per_block if how is Transfer.PER_BLOCK else storage.per_thread)(
                value.type, f"{value.name}.kept"
            )
            for value, how in keeping.items()
            if how is not Transfer.COMPUTED
        }
        each, single = find_kept_allocas(program)
        self.independent = not single
        allocas = {
            alloca: storage.private(private_type(alloca), alloca.align, alloca.name, alloca in each)
            for alloca in (*each, *single)
        }
        results: dict[SyncPoint, Place] = {}
        passed: dict[SyncPoint, list[Place]] = {}
        for point in program.points:
            name = f"point.{point.number}"
            passed[point] = [storage.per_thread(value.type, f"{name}.passed") for value in point.call.arguments[1:]]
            if point.call.type != VOID:
                make = storage.per_block if point.is_block_wide else storage.per_thread
                results[point] = make(point.call.type, f"{name}.result")
        arguments = [*self.function.args]
        words = max((len(point.end.operands) - 1 for point in program.points), default=0)
        keys = [storage.per_thread(I32, "key") for _ in range(words)]
        exclusive = find_private_atomics(program.homes)
        return RegionContext(
            program, symbols, arguments, self.entry, keeping, kept, allocas, results, passed, keys, exclusive
        )

    def _check_memory(self, there: ir.Value) -> None:
        builder = self.builder
        with builder.if_then(builder.not_(there), likely=False):
            self.item.record_fault(builder, self.place, I32(MEMORY_CODE), [I32(0)] * 3)
            builder.branch(self.finish)

    # all threads of the block together

    def _write_lockstep(self) -> None:
        regions = {region.start: region for region in self.program.regions}
        if any(
            regions[point].masked and not (region.masked or region.parts)
            for region in self.program.regions
            for point in region.exits
        ):
            self._clear_notes()
        rounds = spin_schedule.SpinSchedule(self) if self.program.yields else None
        self._write_region(regions[None])
        self._go_on(regions[None], rounds)
        for point, block in self.starts.items():
            self.builder.position_at_end(block)
            self.perform(point, masked=regions[point].masked)
            self._write_region(regions[point])
            self._go_on(regions[point], rounds)
        if rounds is not None:
            rounds.write_end()

    def _clear_notes(self) -> None:
        """Note that no thread has returned, before a region that asks is run without one that tells in front of it."""
        with self.each_thread((I64(0), I64(self.item.threads))) as linear:
            self.note(0, linear)

    def _write_region(self, region: Region) -> None:
        builder = self.builder
        code = ScalarRegion(self.around, region, builder)
        code.load_common()
        independent = self.independent and is_independent(region)
        if self._grouping.suits(region, self.program, independent):
            notes = Notes(self.states, self.next, self.returned)
            if self._groups.write(builder, region, notes, code.once, self.function.args):
                return
        agreement = BoundsVersioning(self.around, region, code.once)
        if not agreement.ways:
            self._write_threads(region, code, {}, independent)
            return
        with builder.if_else(agreement.write(builder, self.item.block)) as (together, apart):
            with together:
                self._write_threads(region, code, agreement.ways, independent)
            with apart:
                self._write_threads(region, code.copy(), {}, independent)

    def _write_threads(
        self, region: Region, code: ScalarRegion, ways: Mapping[Block, Block], independent: bool
    ) -> None:  # fmt: skip
        """A loop over the threads, all of which go *ways*."""
        builder = self.builder
        first = len(self.function.blocks)
        loop = ThreadLoop(builder, self.item, self.place)
        if region.start is not None and region.start.yields:
            number = region.start.number
            self.skip_unless(lambda linear: self.waits("==", number, linear), loop)
        elif region.masked:
            self.skip_unless(self.has_not_returned, loop)
        choices = len(region.exits) + region.returns > 1

        def leave(point: SyncPoint | None) -> None:
            number = self.returned if point is None else point.number
            if region.parts:
                self.note(number, loop.linear)
            elif choices:
                builder.store(I32(number), self.next)
            builder.branch(loop.latch)

        code.write(loop.linear, leave, ways)
        branches = loop.end()
        module = self.item.module
        properties = [rolled(module)] if len(self.program.regions) > _REGIONS_WRITTEN_OUT else []
        if independent:
            properties.append(mark_independent(self.function.blocks[first:], code.variables))
        for branch in branches if properties else ():
            mark_loop(branch, module, *properties)

    def skip_unless(self, active: Condition, loop: ThreadLoop) -> None:
        """End the turn of a thread that is not *active*."""
        builder = self.builder
        body = builder.append_basic_block("active")
        builder.cbranch(active(loop.linear), body, loop.latch)
        builder.position_at_end(body)

    def has_not_returned(self, linear: ir.Value) -> ir.Value:
        """Whether thread *linear* still runs."""
        return self.waits("!=", self.returned, linear)

    def waits(self, relation: str, number: int, linear: ir.Value) -> ir.Value:
        """Whether the note of where thread *linear* waits is in *relation* to *number*."""
        assert self.states is not None
        state = self.states.load(self.builder, linear)
        return self.builder.icmp_unsigned(relation, state, self.states.kind(number))

    def note(self, number: int, linear: ir.Value) -> None:
        """Note where thread *linear* waits."""
        assert self.states is not None
        self.states.store(self.builder, self.states.kind(number), linear)

    def _go_on(self, region: Region, rounds: spin_schedule.SpinSchedule | None) -> None:
        """Jump to where the block goes on behind *region*."""
        if rounds is not None and rounds.go_on(region):
            return
        builder = self.builder
        targets = [self.starts[point] for point in region.exits] + [self.finish] * region.returns
        if region.parts:
            self.go_where_all_wait(region.exits, may_finish=region.returns or region.masked)
        elif not targets:
            builder.branch(self.finish)
        elif len(targets) == 1:
            builder.branch(targets[0])
        else:
            switch = builder.switch(builder.load(self.next, typ=I32), targets[-1])
            for point in region.exits:
                if self.starts[point] is not targets[-1]:
                    switch.add_case(I32(point.number), self.starts[point])

    def go_where_all_wait(
        self, points: list[SyncPoint], may_finish: bool, extremes: tuple[ir.Value, ir.Value] | None = None
    ) -> None:
        """Jump to the one of *points* that all threads which have not returned wait at; report where there is none.
        *extremes* are the lowest and highest of the numbers that they wait at, if these are known."""
        builder = self.builder
        if not points:
            builder.branch(self.finish)
            return
        low, high = extremes or self.find_extremes((I64(0), I64(self.item.threads)))
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
        switch = builder.switch(low, self.starts[points[-1]])
        for point in points[:-1]:
            switch.add_case(I32(point.number), self.starts[point])

    def find_extremes(self, bounds: Bounds) -> tuple[ir.Value, ir.Value]:
        """The lowest and highest number of the operations that threads wait at; those that returned count for the
        lowest only, with a number above all."""
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
            waits = builder.select(builder.icmp_unsigned("==", state, kind(self.returned)), kind(0), state)
            builder.store(builder.select(builder.icmp_unsigned(">", waits, most), waits, most), high)
        return tuple(builder.zext(builder.load(value, typ=kind), I32) for value in (low, high))

    @contextmanager
    def each_thread(self, bounds: Bounds) -> Iterator[ir.Value]:
        """A loop over the numbers of threads, with a body of one way through."""
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

    def _report_divergence(self, low: ir.Value, high: ir.Value) -> None:
        """Report that threads wait at the operations *low* and *high*, with the first thread that waits at *high*."""
        assert self.states is not None
        builder = self.builder
        found = allocate(self.entry, I64, "elsewhere")
        builder.store(I64(self.item.threads), found)
        with self.each_thread((I64(0), I64(self.item.threads))) as linear:
            state = builder.zext(self.states.load(builder, linear), I32)
            there = builder.icmp_unsigned("==", state, high)
            known = builder.load(found, typ=I64)
            first = builder.and_(there, builder.icmp_unsigned("<", linear, known))
            builder.store(builder.select(first, linear, known), found)
        rest = builder.trunc(builder.load(found, typ=I64), I32)
        thread = []
        for extent in self.item.block:
            thread.append(builder.urem(rest, I32(extent)))
            rest = builder.udiv(rest, I32(extent))
        self.item.record_fault(builder, self.place, divergence_code(builder, low, high), thread)
        builder.branch(self.finish)

    # operations

    def perform(self, point: SyncPoint, masked: bool) -> None:
        """What *point* does once all threads that take part are there."""
        name = point.operation
        if self.context is not None and name == intrinsics.GRID_BARRIER:
            self.context.wait(point)
        elif name == intrinsics.BARRIER_COUNT:
            self._count_votes(point, masked)
        elif point in self.around.results:
            wave_schedule.WaveOperation(self, point, self.has_not_returned if masked else None).write_all()

    def _count_votes(self, point: SyncPoint, masked: bool) -> None:
        builder = self.builder
        (votes,) = self.around.passed[point]
        total = self.around.results[point]
        total.store(builder, I32(0))
        with self.each_thread((I64(0), I64(self.item.threads))) as linear:
            vote = builder.zext(self._vote(votes, linear, masked), I32)
            total.store(builder, builder.add(total.load(builder), vote))

    def _vote(self, votes: Place, linear: ir.Value, masked: bool) -> ir.Value:
        """A vote as a bit; that of a thread that has returned, which may never have voted, is 0."""
        builder = self.builder
        vote = votes.load(builder, linear)
        if not masked:
            return vote
        return builder.select(self.has_not_returned(linear), vote, I1(0))
