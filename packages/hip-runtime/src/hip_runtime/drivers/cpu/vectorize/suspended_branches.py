"""The branches of a version of the code at which its gangs stop, or go on; see `suspension`."""

from __future__ import annotations

from collections.abc import Mapping

from llvmlite import ir

from hip_runtime.drivers.cpu.ir.model import Block
from hip_runtime.drivers.cpu.llvmir import I32, allocate
from hip_runtime.drivers.cpu.vectorize.suspension import Suspension


class SuspendedBranches:
    """Writes them with *builder*, which is where the version begins; what *entry* allocates is for all of the function.
    *blocks* are where each block begins, and at *done* the version ends."""

    def __init__(
        self, suspension: Suspension, builder: ir.IRBuilder, entry: ir.IRBuilder, blocks: Mapping[Block, ir.Block],
        done: ir.Block,
    ) -> None:  # fmt: skip
        self._suspension = suspension
        self._builder = builder
        self._blocks = blocks
        self._done = done
        self._rounds = allocate(entry, I32, "rounds")
        builder.store(I32(0), self._rounds)
        self._stops = [builder.append_basic_block("stop") for _ in suspension.stops]
        self._resumed = builder.append_basic_block("resume")

    def begin(self, first: Block) -> None:
        """Go on with the *first* block or, if the gang was suspended, where that was."""
        self._builder.cbranch(self._suspension.resumes, self._resumed, self._blocks[first])

    def redirect(self, block: Block, target: Block, slot: ir.Block) -> ir.Block:
        """Where the branch from *block* to *target*, which is at *slot*, goes."""
        suspension = self._suspension
        if block is suspension.latch:
            if target is suspension.in_loop.block:
                return self._go_round()
            return slot if suspension.behind_loop is None else self._pause(self._stops[1], slot)
        return self._pause(self._done, slot) if suspension.leaves(block, target) else slot

    def write_stops(self) -> None:
        """Write what stops the gang and goes on, once all of the rest was written."""
        builder, suspension = self._builder, self._suspension
        starts = [builder.append_basic_block("go.on") for _ in suspension.stops]
        for start, end, stop in zip(starts, self._stops, suspension.stops, strict=True):
            builder.position_at_end(end)
            stop.save(builder, suspension.record)
            builder.branch(self._done)
            builder.position_at_end(start)
            stop.restore(builder, suspension.record)
            builder.branch(self._blocks[stop.block])
        builder.position_at_end(self._resumed)
        if len(starts) == 1:
            builder.branch(starts[0])
        else:
            builder.cbranch(suspension.pauses, *starts)

    def _go_round(self) -> ir.Block:
        """The block that goes on with another iteration, or suspends the gang after some."""
        builder, suspension = ir.IRBuilder(self._builder.append_basic_block("go.round")), self._suspension
        count = builder.add(builder.load(self._rounds, typ=I32), I32(1))
        builder.store(count, self._rounds)
        enough = builder.icmp_unsigned(">=", count, I32(suspension.iterations))
        builder.cbranch(enough, self._stops[0], self._blocks[suspension.in_loop.block])
        return builder.block

    def _pause(self, pause: ir.Block, otherwise: ir.Block) -> ir.Block:
        """The block that goes to *pause* if the gang pauses."""
        builder = ir.IRBuilder(self._builder.append_basic_block("may.pause"))
        builder.cbranch(self._suspension.pauses, pause, otherwise)
        return builder.block
