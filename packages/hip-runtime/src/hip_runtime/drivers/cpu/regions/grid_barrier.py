"""Grid barriers: blocks that wait for the whole grid.

A block that reaches a grid barrier stores the sync point's number into its word and returns. Once all blocks have,
they are all run again and resume there. Their state is in the context: what is saved for their threads, and shared
memory. The words of all blocks are next to each other, so that those of neighbours are in one cache line.
"""

from __future__ import annotations

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi.grid_context import FINISHED
from hip_runtime.drivers.cpu.abi.launch_frame import FRAME
from hip_runtime.drivers.cpu.abi.worker import counted
from hip_runtime.drivers.cpu.llvmir import I1, I8, I32, I64, PTR
from hip_runtime.drivers.cpu.regions.block_writer import BlockWriter
from hip_runtime.drivers.cpu.regions.formation import SyncPoint


class BlockSuspension:
    """The parts of a block function that suspend and resume the block."""

    def __init__(self, code: BlockWriter) -> None:
        self._code = code
        self._points = [point for point in code.graph.points if point.operation == spmd.GRID_BARRIER]
        self._resumed = {point: code.function.append_basic_block("resume") for point in self._points}
        self._done = code.function.append_basic_block("done")
        self._stopped = code.function.append_basic_block("stopped")
        for block in (self._done, self._stopped):
            ir.IRBuilder(block).ret_void()

    def begin(self) -> None:
        """At the start of the function: find the context, lay out the storage in it, and jump to where to resume."""
        code, builder, item = self._code, self._code.builder, self._code.item
        shared = {
            field: code.storage.private(ir.ArrayType(I8, nbytes), align, "shared", each=False)
            for field, (nbytes, align) in item.shared_memory.items()
            if nbytes
        }
        item.context_bytes = code.storage.context_bytes
        number = item.layout.load(builder, code.place, "block_number")
        words = item.layout.load(builder, code.place, "block_words")
        self._word = builder.gep(words, [number], inbounds=True, source_etype=I32)
        contexts = item.layout.load(builder, code.place, "contexts")
        offset = builder.mul(number, I64(item.context_bytes))
        self._context = builder.gep(contexts, [offset], inbounds=True, source_etype=I8)
        code.storage.place_in(builder, self._context)
        for field in item.shared_memory:
            place = shared[field].base if field in shared else self._context
            item.layout.store(builder, place, code.place, field)
        start = builder.append_basic_block("start")
        switch = builder.switch(builder.load(self._word, typ=I32), self._done)
        switch.add_case(I32(0), start)
        for point in self._points:
            switch.add_case(I32(point.number + 1), self._resumed[point])
        builder.position_at_end(start)

    def wait(self, point: SyncPoint) -> None:
        """Suspend the block at *point*; the builder is positioned where it resumes."""
        builder = self._code.builder
        self._store_words(builder, I32(point.number + 1))
        builder.branch(self._stopped)
        builder.position_at_end(self._resumed[point])

    def end(self, builder: ir.IRBuilder) -> None:
        """Record that the block has finished."""
        self._store_words(builder, I32(FINISHED))

    def _store_words(self, builder: ir.IRBuilder, word: ir.Value) -> None:
        """Set the words of all blocks that gangs reach over to *word*. Each of them gets a copy of the first one's
        context, too: when the grid is run again, other blocks may be the first ones that gangs reach over."""
        item = self._code.item
        if item.order.tile == 1:
            builder.store(word, self._word)
            return
        assert item.order.row_lanes is not None
        count = builder.udiv(item.order.row_lanes, I32(item.order.block[item.order.lane_axis]))
        distance = self._load_distance(builder)
        with counted(builder, "joined", I32(0), count) as index:
            number = builder.mul(builder.zext(index, I64), distance)
            builder.store(word, builder.gep(self._word, [number], inbounds=True, source_etype=I32))
            offset = builder.mul(number, I64(item.context_bytes))
            context = builder.gep(self._context, [offset], inbounds=True, source_etype=I8)
            copy = builder.module.declare_intrinsic("llvm.memmove", [PTR, PTR, I64])
            builder.call(copy, [context, self._context, I64(item.context_bytes), I1(0)])

    def _load_distance(self, builder: ir.IRBuilder) -> ir.Value:
        """How far apart the numbers of neighbouring blocks are along the axis of the lanes; they are counted along x
        first."""
        item = self._code.item
        frame = item.layout.load(builder, self._code.place, "frame")
        distance: ir.Value = I64(1)
        for axis in range(item.order.lane_axis):
            distance = builder.mul(distance, builder.zext(FRAME.load(builder, frame, "grid", axis), I64))
        return distance
