"""Which blocks each thread of a launch runs, as LLVM IR.

The blocks of a launch are divided into *chunks*, and these into one *range* for each thread that may take part. A
thread takes the chunks of its own range first, and then helps the others with what is left of theirs. Which range is
its own depends on its number in the pool alone, so launches over the same arrays, one after another, find most elements
in the caches of the processor that used them last.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.launch_frame import FAULT_FIELDS, FRAME
from hip_runtime.drivers.cpu.execution.thread_slots import GOES_ON, SLOT, ThreadSlotsBuilder
from hip_runtime.drivers.cpu.execution.trap_handlers import TrapHandlersBuilder
from hip_runtime.drivers.cpu.llvmir import I32, I64, PTR, VOID, Struct, allocate

POLL_NANOSECONDS = 50_000_000
"""Nanoseconds after which signal handlers are given a turn, and that a chunk should not take longer than."""

LAUNCHING_THREAD = I32(0)
"""The number of the launching thread; helpers of the pool have those from 1 on."""

_RANGE = Struct(next=I64, limit=I64, padding=ir.ArrayType(I64, 6))  # a cache line
_ALIGNMENT = 64


def divide_blocks(builder: ir.IRBuilder, frame: ir.Value, threads: ir.Value, chunks: ir.Value) -> None:
    """Divide the blocks of *frame*, which are *chunks* chunks, into ranges for as many *threads*."""
    first, limit, chunk = (FRAME.load(builder, frame, name) for name in ("next_block", "block_count", "chunk"))
    ranges = builder.alloca(_RANGE.type, threads, name="ranges")
    ranges.type = PTR
    ranges.align = _ALIGNMENT
    FRAME.store(builder, ranges, frame, "ranges")
    FRAME.store(builder, threads, frame, "range_count")
    before = builder.block
    head, after = builder.append_basic_block("divide"), builder.append_basic_block("divided")
    builder.branch(head)
    builder.position_at_end(head)
    number, start = builder.phi(I64, name="number"), builder.phi(I64, name="start")
    number.add_incoming(I64(0), before)
    start.add_incoming(first, before)
    following = builder.add(number, I64(1))
    ended = builder.udiv(builder.mul(chunks, following), threads)
    end = builder.add(first, builder.mul(ended, chunk))
    end = builder.select(builder.icmp_unsigned("<", end, limit), end, limit)
    place = builder.gep(ranges, [number], source_etype=_RANGE.type)
    _RANGE.store(builder, start, place, "next")
    _RANGE.store(builder, end, place, "limit")
    number.add_incoming(following, head)
    start.add_incoming(end, head)
    builder.cbranch(builder.icmp_unsigned("<", following, threads), head, after)
    builder.position_at_end(after)


class RangesBuilder:
    """Puts ``void run_ranges(frame, number, slot)`` into a module: the loop over chunks of the thread with that number
    and slot. The launching thread notes what its own range took, and runs handlers of signals in between."""

    def __init__(
        self, module: ir.Module, now: ir.Function, slots: ThreadSlotsBuilder, traps: TrapHandlersBuilder
    ) -> None:
        self._now = now
        self._slots = slots
        self._traps = traps
        self.run = ir.Function(module, ir.FunctionType(VOID, [PTR, I32, PTR]), "spmd.run_ranges")
        self.run.linkage = "internal"
        self._define_run(ir.IRBuilder(self.run.append_basic_block("entry")))

    def _define_run(self, builder: ir.IRBuilder) -> None:
        frame, number, slot = self.run.args
        own = allocate(builder, FRAME.type, "own")
        ran, polled = (allocate(builder, I64, name) for name in ("ran", "polled"))
        builder.store(builder.load(frame, typ=FRAME.type), own)
        FRAME.store(builder, I32(0), own, "fault_taken")
        builder.store(I64(0), ran)
        began = builder.call(self._now, [])
        builder.store(began, polled)
        chunk, ranges, count = (FRAME.load(builder, frame, name) for name in ("chunk", "ranges", "range_count"))
        entry = builder.block
        each, head, take, go, other, done = (
            builder.append_basic_block(name) for name in ("each", "head", "take", "go", "other", "done")
        )
        builder.branch(each)
        builder.position_at_end(each)
        turn = builder.phi(I64, name="turn")
        turn.add_incoming(I64(0), entry)
        index = builder.urem(builder.add(builder.zext(number, I64), turn), count)
        place = builder.gep(ranges, [index], source_etype=_RANGE.type)
        limit = _RANGE.load(builder, place, "limit")
        builder.branch(head)

        builder.position_at_end(head)
        # Most ranges are empty when others come to help: looking leaves the line in all caches.
        left = builder.icmp_unsigned("<", _RANGE.load_atomic(builder, place, "next"), limit)
        builder.cbranch(left, take, other)
        builder.position_at_end(take)
        first = builder.atomic_rmw("add", _RANGE.field(builder, place, "next"), chunk, "monotonic")
        taken = FRAME.load_atomic(builder, frame, "fault_taken")
        with builder.if_then(builder.icmp_unsigned("!=", taken, I32(0))):
            builder.branch(done)
        builder.cbranch(builder.icmp_unsigned("<", first, limit), go, other)

        builder.position_at_end(go)
        end = builder.add(first, chunk)
        end = builder.select(builder.icmp_unsigned("<", end, limit), end, limit)
        FRAME.store(builder, first, own, "next_block")
        FRAME.store(builder, end, own, "block_count")
        blocks = builder.call(self._slots.run, [own, slot])
        builder.store(builder.add(builder.load(ran, typ=I64), blocks), ran)
        with builder.if_then(builder.icmp_unsigned("!=", FRAME.load(builder, own, "fault_taken"), I32(0))):
            _hand_over_fault(builder, own, frame)
            builder.branch(done)
        with builder.if_then(builder.icmp_unsigned("==", number, LAUNCHING_THREAD)):
            self.poll(builder, frame, slot, polled)
        builder.branch(head)

        builder.position_at_end(other)
        is_own = builder.icmp_unsigned("==", turn, I64(0))
        with builder.if_then(builder.and_(is_own, builder.icmp_unsigned("==", number, LAUNCHING_THREAD))):
            FRAME.store(builder, builder.sub(builder.call(self._now, []), began), frame, "spent")
            FRAME.store(builder, builder.load(ran, typ=I64), frame, "spent_on")
        following = builder.add(turn, I64(1))
        turn.add_incoming(following, builder.block)
        builder.cbranch(builder.icmp_unsigned("<", following, count), each, done)
        builder.position_at_end(done)
        builder.ret_void()

    def poll(self, builder: ir.IRBuilder, frame: ir.Value, slot: ir.Value, polled: ir.Value) -> None:
        """Run handlers of signals, if `POLL_NANOSECONDS` have passed since the time in *polled*."""
        time = builder.call(self._now, [])
        passed = builder.sub(time, builder.load(polled, typ=I64))
        with builder.if_then(builder.icmp_unsigned(">=", passed, I64(POLL_NANOSECONDS))):
            builder.store(time, polled)
            goes_on = builder.icmp_unsigned("==", SLOT.load_atomic(builder, slot, "stop"), I32(GOES_ON))
            with builder.if_else(goes_on) as (goes, ends):
                with goes:
                    builder.call(self._traps.poll, [slot])
                with ends:
                    self._traps.note_end(builder, frame)


def _hand_over_fault(builder: ir.IRBuilder, own: ir.Value, frame: ir.Value) -> None:
    """Put the fault of the frame *own* into *frame*, unless there is one."""
    taken = builder.atomic_rmw("xchg", FRAME.field(builder, frame, "fault_taken"), I32(1), "acq_rel")
    with builder.if_then(builder.icmp_unsigned("==", taken, I32(0))):
        for number in range(len(FAULT_FIELDS)):
            FRAME.store(builder, FRAME.load(builder, own, "fault", number), frame, "fault", number)
