"""The block function, which runs the threads of one block region by region.

After each region, control passes to the next one. If all threads end at the same sync point, that is a jump. Otherwise
each thread records its state, the sync point that it waits at, and a scan of the states decides: if all threads that
have not returned wait at the same sync point, the block continues there; if not, the barrier is divergent, which is
reported as a fault. Threads in spin loops run first, see `spin_schedule`. If lanes of a wave can wait at different wave
operations, waves run one at a time, each until all of its lanes wait for the block, see `wave_schedule`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi.fault_codes import MEMORY_CODE
from hip_runtime.drivers.cpu.abi.thread_states import UNKNOWN_BYTE, state_bytes
from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.analyses.alignments import align_gangs
from hip_runtime.drivers.cpu.analyses.shape_rules import MAX_STRIDE
from hip_runtime.drivers.cpu.analyses.thread_strides import ThreadStrides
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.ir import remarks
from hip_runtime.drivers.cpu.ir.loop_metadata import mark_loop, rolled, unvectorized
from hip_runtime.drivers.cpu.ir.model import Block
from hip_runtime.drivers.cpu.llvmir import I1, I8, I32, I64, PTR, store_atomic
from hip_runtime.drivers.cpu.regions import grid_barrier, spin_schedule, wave_schedule
from hip_runtime.drivers.cpu.regions.active_threads import (
    Limit,
    choose_directions,
    find_limit,
)
from hip_runtime.drivers.cpu.regions.block_writer import BlockWriter
from hip_runtime.drivers.cpu.regions.bounds_versioning import BoundsVersioning
from hip_runtime.drivers.cpu.regions.context_values import divides_rows, splits_gangs_in
from hip_runtime.drivers.cpu.regions.edge_threads import has_edge_threads
from hip_runtime.drivers.cpu.regions.formation import Region, RegionGraph, SyncPoint
from hip_runtime.drivers.cpu.regions.gang_region import (
    GangPlan,
    GangRegionWriter,
    LimitedThreads,
    PausingGangs,
    SharedSteps,
)
from hip_runtime.drivers.cpu.regions.outline import StatePlaces
from hip_runtime.drivers.cpu.regions.parallel_loops import is_independent, mark_independent
from hip_runtime.drivers.cpu.regions.row_prefetches import find_row_loads, write_prefetches
from hip_runtime.drivers.cpu.regions.scalar_region import ScalarRegion
from hip_runtime.drivers.cpu.regions.shared_steps import find_gang_work
from hip_runtime.drivers.cpu.regions.storage import Slot
from hip_runtime.drivers.cpu.regions.thread_loop import ThreadLoop
from hip_runtime.drivers.cpu.regions.wave_operation import WaveOperation
from hip_runtime.errors import UnsupportedError

_SHORTEST_VECTOR = 8
"""Threads of a row that are worth a vector."""

_REGIONS_WRITTEN_OUT = 32
"""The most regions with which LLVM may unroll the loops over threads. Unrolled, many regions are one basic block with
thousands of accesses, each of which LLVM's code generator compares with many others."""


class BlockFunction(BlockWriter):
    """A block function that is being written."""

    def __init__(
        self,
        graph: RegionGraph,
        item: WorkItem,
        kind: ir.FunctionType,
        source: Any,
        size_of: SizeOf,
        gang_plan: GangPlan,
    ) -> None:
        super().__init__(graph, item, kind, source, size_of, gang_plan.width > 1 and not gang_plan.numbered)
        self._gang_plan = gang_plan
        self._size_of = size_of
        self._strides = ThreadStrides(item.order.along, graph.uniformity.varying, size_of)
        self._work = find_gang_work(graph, self.ctx.transfers, item, gang_plan, size_of, self._strides)
        self._alignments = align_gangs(
            gang_plan.width, item.order.along, item.order.block[item.order.lane_axis], False, item.order.multiple or 1
        )
        self._gang_regions = GangRegionWriter(self.ctx, item, size_of, gang_plan)

    def build(self) -> ir.Function:
        builder = self.builder
        first = builder.block
        if self.item.order.tile > 1:
            self._check_joined()
            self.item.order.row_lanes = self.item.load_row_lanes(self.entry, self.place)
        self.context = grid_barrier.BlockSuspension(self) if self.item.waits_for_grid else None
        if self.context is not None:
            self.context.begin()
        else:
            there = self.storage.allocate(builder, self._load_memory_word)
            if there is not None:
                self._check_memory(there)
            self._show_states()
        if self.waves:
            scheduler = wave_schedule.WaveScheduler(self, self.perform)
            scheduler.write()
        else:
            self._write_block_wide()
        self.entry.branch(first)
        finish = ir.IRBuilder(self.finish)
        if self._shows_states:
            store_atomic(finish, PTR(None), self.item.layout.load(finish, self.place, "states_word"))
        self.storage.free(finish, self._load_memory_word)
        if self.context is not None:
            self.context.end(finish)
        finish.ret_void()
        return self.function

    def _check_joined(self) -> None:
        """Check that nothing is kept for each thread of a block: gangs that reach over several have no place for it."""
        if self.storage.is_per_thread or self.ctx.allocas:
            raise UnsupportedError("values are kept for each thread of a block")

    @property
    def pausing(self) -> PausingGangs | None:
        """The gangs that pause, once the function was built."""
        return self._gang_regions.pausing

    @property
    def _may_pause(self) -> bool:
        """Whether gangs of the first region may run before those of another block have run all regions."""
        plan = self._gang_plan
        waits = bool(self.graph.points) or plan.waves
        return waits and self.context is None and not (self.waves or self.graph.yields or plan.lockstep)

    @property
    def _shows_states(self) -> bool:
        """Whether stall reports can read the thread states: in kernels with spin loops, which may never end."""
        return self.states is not None and self.context is None and bool(self.graph.yields)

    def _show_states(self) -> None:
        """Clear the thread states, and publish their address for stall reports."""
        if not self._shows_states:
            return
        assert self.states is not None
        clear = self.builder.module.declare_intrinsic("llvm.memset", (PTR, I64))
        nbytes = self.states.count * state_bytes(self.returned)
        self.builder.call(clear, [self.states.base, I8(UNKNOWN_BYTE), I64(nbytes), I1(0)])
        store_atomic(self.builder, self.states.base, self.item.layout.load(self.builder, self.place, "states_word"))

    def _load_memory_word(self, builder: ir.IRBuilder) -> ir.Value:
        return self.item.layout.load(builder, self.place, "memory_word")

    def _check_memory(self, there: ir.Value) -> None:
        builder = self.builder
        with builder.if_then(builder.not_(there), likely=False):
            self.item.record_fault(builder, self.place, I32(MEMORY_CODE), [I32(0)] * 3)
            builder.branch(self.finish)

    # the schedule of kernels whose waves need none of their own

    def _write_block_wide(self) -> None:
        regions = {region.start: region for region in self.graph.regions}
        if any(
            regions[point].masked and not (region.masked or region.diverges)
            for region in self.graph.regions
            for point in region.exits
        ):
            self._clear_states()
        spins = spin_schedule.SpinSchedule(self) if self.graph.yields else None
        self._write_region(regions[None])
        self._write_transition(regions[None], spins)
        for point, block in self.point_blocks.items():
            self.builder.position_at_end(block)
            self.perform(point, masked=regions[point].masked)
            self._write_region(regions[point])
            self._write_transition(regions[point], spins)
        if spins is not None:
            spins.write_pass_end()

    def _clear_states(self) -> None:
        """Record that no thread has returned, for masked regions that follow one which does not record states."""
        with self.each_thread(self.all_threads) as linear:
            self.record_state(0, linear)

    def _write_region(self, region: Region) -> None:
        builder = self.builder
        code = ScalarRegion(self.ctx, region, builder)
        code.hoist_uniform()
        self._prefetch(region)
        independent = self.independent and is_independent(region) and not region.ordered
        divides = self.divisions is not None and (
            divides_rows(region, self.divisions, self.ctx.transfers)
            or splits_gangs_in(region, self._alignments, self.ctx.transfers)
        )
        work = self._work
        active, only_gang, steps = work.active[region], work.only_gangs[region], work.steps.get(region)
        strided = 2 <= (self._strides.farthest(region.blocks, "store") or 0) <= MAX_STRIDE
        strided = strided or self._strides.goes_through_rows(region.blocks, MAX_STRIDE)
        edges = active == self._most_lanes and has_edge_threads(region, self.graph, self.item.order.along)
        joined = self.item.order.tile > 1
        limit = None if joined or only_gang or (steps and steps.step > 1) else self._find_limit(region, code)
        vectorizable = independent and not (divides or strided or edges or limit)
        if self._gang_plan.selects(region, self.graph, vectorizable) or joined or only_gang or steps:
            if limit is not None:
                self._write_limited(region, code, limit, independent, steps)
                return
            may_pause = region.start is None and self._may_pause and not region.ordered
            arguments = self.function.args
            if self._gang_regions.write(
                builder, region, self._state_places, code.hoisted, arguments, active, may_pause,
                only_gang=only_gang, steps=steps,
            ):  # fmt: skip
                return
            if joined:
                raise UnsupportedError(self._gang_plan.refused[-1])
        remarks.remark_threads(region.blocks)
        versioning = BoundsVersioning(self.ctx, region, code.hoisted)
        if not versioning.directions:
            self._write_threads(region, code, {}, independent, active)
            return
        with builder.if_else(versioning.write(builder, self._extents)) as (converged, diverged):
            with converged:
                self._write_threads(region, code, versioning.directions, independent, active)
            with diverged:
                self._write_threads(region, code.copy(), {}, independent, active)

    @property
    def _state_places(self) -> StatePlaces:
        return StatePlaces(self.states, self.next, self.returned)

    def _find_limit(self, region: Region, code: ScalarRegion) -> Limit | None:
        """How many threads of a row do anything in *region*, if that can be computed before any of them runs."""
        if self._gang_plan.width == 1 or self._gang_plan.numbered:
            return None
        found = find_limit(region, self.graph, self.ctx.transfers, self.item.order.along)
        return found if found is not None and all(map(code.can_compute, found.values)) else None

    def _write_limited(
        self, region: Region, code: ScalarRegion, limit: Limit, independent: bool, steps: SharedSteps | None
    ) -> None:  # fmt: skip
        """Write *region* in gangs of the threads up to *limit*; if there are none, one thread does what all have in
        common."""
        builder = self.builder
        most = self._extents[self.item.order.lane_axis]
        count = limit.write(builder, code.compute_first(limit.values), most)
        limited = LimitedThreads(count, {limit.condition: limit.expected})
        idle = choose_directions(region, limit.condition, not limit.expected)
        with builder.if_else(builder.icmp_unsigned("!=", count, count.type(0)), likely=True) as (some, none):
            with some:
                arguments, places = self.function.args, self._state_places
                if not self._gang_regions.write(
                    builder, region, places, code.hoisted, arguments, limited=limited, steps=steps
                ):  # fmt: skip
                    self._write_threads(region, code, {}, independent, self._most_lanes)
            with none:
                self._write_threads(region, code.copy(), idle, independent, 1)

    def _prefetch(self, region: Region) -> None:
        """Ask for what the first region of later blocks will load."""
        if region.start is None and self._gang_regions.pausing is None and self.context is None:
            loads = find_row_loads(region, self.item, self._size_of, len(self.ctx.arguments))
            write_prefetches(self.builder, self.ctx, loads)

    @property
    def _extents(self) -> list[ir.Value]:
        """The extents of the block."""
        x, y, z = (I32(extent) for extent in self.item.order.block)
        return [x if self.item.order.lengths is None else self.item.order.row_lanes, y, z]

    @property
    def _most_lanes(self) -> int:
        """The most lanes of a row."""
        return self.item.order.extents[0] if self.item.order.lengths is None else self.item.order.limits[0]

    def _write_threads(
        self, region: Region, code: ScalarRegion, directions: Mapping[Block, Block], independent: bool, active: int
    ) -> None:  # fmt: skip
        """A loop over the threads, which all take *directions*; the first *active* of a row do anything."""
        builder = self.builder
        first = len(self.function.blocks)
        loop = ThreadLoop(builder, self.item, self.place, active=active)
        if region.start is not None and region.start.yields:
            number = region.start.number
            self.skip_unless(lambda linear: self.compare_state("==", number, linear), loop)
        elif region.masked:
            self.skip_unless(self.has_not_returned, loop)
        choices = len(region.exits) + region.returns > 1

        def end_thread(point: SyncPoint | None) -> None:
            number = self.returned if point is None else point.number
            if region.diverges:
                self.record_state(number, loop.linear)
            elif choices:
                builder.store(I32(number), self.next)
            builder.branch(loop.latch)

        code.write(loop.linear, end_thread, directions)
        branches = loop.end()
        module = self.item.module
        properties = [rolled(module)] if len(self.graph.regions) > _REGIONS_WRITTEN_OUT else []
        if self._strides.scatters(region.blocks, MAX_STRIDE):
            properties.append(unvectorized(module))
        elif independent:
            properties.append(mark_independent(self.function.blocks[first:], code.variables))
        along_row, *around = branches
        short = [rolled(module)] if independent and self._has_short_rows else []
        for branch, more in ((along_row, short), *((branch, []) for branch in around)):
            if properties or more:
                mark_loop(branch, module, *dict.fromkeys([*properties, *more]))

    @property
    def _has_short_rows(self) -> bool:
        """Whether the loop over a row of threads is so short that LLVM would write it out before it makes vectors."""
        lanes, rows, planes = self.item.order.extents
        return rows * planes > 1 and lanes >= _SHORTEST_VECTOR

    def _write_transition(self, region: Region, spins: spin_schedule.SpinSchedule | None) -> None:
        """Write the transition from *region* to the next one."""
        if spins is not None and spins.write_transition(region):
            return
        builder = self.builder
        targets = [self.point_blocks[point] for point in region.exits] + [self.finish] * region.returns
        if region.diverges:
            self.write_common_transition(region.exits, may_finish=region.returns or region.masked)
        elif not targets:
            builder.branch(self.finish)
        elif len(targets) == 1:
            builder.branch(targets[0])
        else:
            switch = builder.switch(builder.load(self.next, typ=I32), targets[-1])
            for point in region.exits:
                if self.point_blocks[point] is not targets[-1]:
                    switch.add_case(I32(point.number), self.point_blocks[point])

    # operations

    def perform(self, point: SyncPoint, masked: bool) -> None:
        """Write what *point* does once all participating threads are there."""
        name = point.operation
        if self.context is not None and name == spmd.GRID_BARRIER:
            self.context.wait(point)
        elif name == spmd.BARRIER_COUNT:
            self._count_votes(point, masked)
        elif point in self.ctx.results:
            WaveOperation(self, point, self.has_not_returned if masked else None).write_all()

    def _count_votes(self, point: SyncPoint, masked: bool) -> None:
        builder = self.builder
        (votes,) = self.ctx.passed[point]
        total = self.ctx.results[point]
        total.store(builder, I32(0))
        with self.each_thread(self.all_threads) as linear:
            vote = builder.zext(self._vote(votes, linear, masked), I32)
            total.store(builder, builder.add(total.load(builder), vote))

    def _vote(self, votes: Slot, linear: ir.Value, masked: bool) -> ir.Value:
        """A thread's vote; 0 if it has returned, as it may never have voted."""
        builder = self.builder
        vote = votes.load(builder, linear)
        if not masked:
            return vote
        return builder.select(self.has_not_returned(linear), vote, I1(0))
