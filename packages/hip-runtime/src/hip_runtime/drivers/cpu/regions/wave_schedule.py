"""The schedule of waves whose lanes can wait at different wave operations.

A wave runs until all of its lanes wait for the block or have returned. Until then, of the wave operations that its
lanes wait at, the one with the lowest number is performed for the lanes that wait there, and these continue. Numbers
follow block order, so lanes that took different sides of a branch, or left a loop early, are waited for where their
paths join; see `reconvergence_keys` for loops. Lanes at yields are resumed whenever their wave runs, and all waves run
one after another, again until no lane spins.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from hip_runtime.drivers.cpu.llvmir import I32, I64, allocate
from hip_runtime.drivers.cpu.regions.block_writer import BlockWriter, Condition
from hip_runtime.drivers.cpu.regions.formation import Region, SyncPoint
from hip_runtime.drivers.cpu.regions.scalar_region import ScalarRegion
from hip_runtime.drivers.cpu.regions.spin_schedule import exit_after_fault, is_below
from hip_runtime.drivers.cpu.regions.thread_loop import Bounds, ThreadLoop
from hip_runtime.drivers.cpu.regions.wave_operation import WaveOperation


class WaveScheduler:
    """Writes the body of a block function that runs one wave at a time."""

    def __init__(self, code: BlockWriter, perform: Callable[..., None]) -> None:
        self._code = code
        self._perform = perform
        self._builder = code.builder
        self._first = allocate(code.entry, I64, "wave")
        self._points = code.graph.points
        self._yields = code.graph.yields
        self._in_waves = [point for point in self._points if not point.is_block_wide]
        self._of_block = [point for point in self._points if point.is_block_wide]
        self._next_wave = code.function.append_basic_block("next.wave")
        self._step = code.function.append_basic_block("step")
        self._visit = code.point_blocks[self._yields[0]] if self._yields else self._step
        """Where a wave starts to run."""
        self._keys = code.ctx.keys

    def write(self) -> None:
        """Write the schedule."""
        code, builder = self._code, self._builder
        regions = {region.start: region for region in code.graph.regions}
        self._write_region(regions[None], None)
        builder.store(I64(0), self._first)
        builder.branch(self._visit)
        self._write_step()
        stops = [*(code.point_blocks[point] for point in self._yields), self._step]
        behind = dict(zip(self._yields, stops[1:], strict=True))
        for point, block in code.point_blocks.items():
            builder.position_at_end(block)
            if point.is_block_wide:
                self._perform(point, masked=True)
                self._write_region(regions[point], None)
                builder.store(I64(0), self._first)
            else:
                bounds = self._bounds()
                WaveOperation(code, point, self._takes_part(point)).write(bounds)
                self._write_region(regions[point], bounds)
            builder.branch(behind.get(point, self._visit if point.is_block_wide else self._step))

    def _bounds(self) -> Bounds:
        builder = self._builder
        first = builder.load(self._first, typ=I64)
        last = builder.add(first, I64(self._code.item.wave_size))
        threads = I64(self._code.item.order.threads)
        return first, builder.select(builder.icmp_unsigned("<", last, threads), last, threads)

    def _write_step(self) -> None:
        """Continue with the current wave, or the next one, or with the block if all waves wait for it."""
        code, builder = self._code, self._builder
        builder.position_at_end(self._step)
        first, last = self._bounds()
        low, _ = code.find_state_range((first, last))
        if self._keys:
            low = self._choose_by_keys((first, last))
        switch = builder.switch(low, self._next_wave)
        for point in self._in_waves:
            if not point.yields:
                switch.add_case(I32(point.number), code.point_blocks[point])
        builder.position_at_end(self._next_wave)
        builder.store(builder.add(first, I64(code.item.wave_size)), self._first)
        converged = builder.append_basic_block("block.waits")
        more = builder.icmp_unsigned("<", builder.load(self._first, typ=I64), I64(code.item.order.threads))
        builder.cbranch(more, self._visit, converged)
        builder.position_at_end(converged)
        if self._yields:
            self._revisit_waves()
        code.write_common_transition(self._of_block, may_finish=True)

    def _revisit_waves(self) -> None:
        """Start over with the first wave if a lane of any wave spins, or waits for one that does."""
        code, builder = self._code, self._builder
        exit_after_fault(code)
        low, _ = code.find_state_range(code.all_threads)
        again, go = builder.append_basic_block("again"), builder.append_basic_block("nobody.spins")
        builder.cbranch(is_below(code, low, self._in_waves), again, go)
        builder.position_at_end(again)
        builder.store(I64(0), self._first)
        builder.branch(self._visit)
        builder.position_at_end(go)

    def _takes_part(self, point: SyncPoint) -> Condition:
        """Whether a thread takes part when *point* is performed."""
        code = self._code
        if self._keys and not (point.is_block_wide or point.yields):
            return lambda linear: self._code.selected.load(self._builder, linear)
        return lambda linear: code.compare_state("==", point.number, linear)

    def _choose_by_keys(self, bounds: Bounds) -> ir.Value:
        """Select the lanes with the lowest key, and return the number of the sync point that they wait at."""
        code, builder = self._code, self._builder
        chosen, lowest = (allocate(code.entry, I32, name) for name in ("chosen", "lowest"))
        with code.each_thread(bounds) as linear:
            waits = code.compare_state("<", len(self._in_waves), linear)
            self._code.selected.store(builder, waits, linear)
        for word in self._keys:
            builder.store(I32(0xFFFFFFFF), lowest)
            with code.each_thread(bounds) as linear:
                value, known = word.load(builder, linear), builder.load(lowest, typ=I32)
                lower = builder.and_(
                    self._code.selected.load(builder, linear), builder.icmp_unsigned("<", value, known)
                )
                builder.store(builder.select(lower, value, known), lowest)
            least = builder.load(lowest, typ=I32)
            with code.each_thread(bounds) as linear:
                same = builder.icmp_unsigned("==", word.load(builder, linear), least)
                self._code.selected.store(
                    builder, builder.and_(self._code.selected.load(builder, linear), same), linear
                )
        assert code.states is not None
        builder.store(I32(code.returned), chosen)
        with code.each_thread(bounds) as linear:
            state = builder.zext(code.states.load(builder, linear), I32)
            known = builder.load(chosen, typ=I32)
            builder.store(builder.select(self._code.selected.load(builder, linear), state, known), chosen)
        return builder.load(chosen, typ=I32)

    def _write_region(self, region: Region, bounds: Bounds | None) -> None:
        code, builder = self._code, self._builder
        body = ScalarRegion(code.ctx, region, builder)
        body.hoist_uniform()
        loop = ThreadLoop(builder, code.item, code.place, bounds)
        if region.start is not None:
            code.skip_unless(self._takes_part(region.start), loop)

        def end_thread(point: SyncPoint | None) -> None:
            code.record_state(code.returned if point is None else point.number, loop.linear)
            builder.branch(loop.latch)

        body.write(loop.linear, end_thread)
        loop.end()
