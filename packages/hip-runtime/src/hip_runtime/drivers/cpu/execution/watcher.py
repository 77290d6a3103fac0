"""The watcher: a native thread that monitors threads which have been in one call of a worker for some time, as LLVM IR.

Between two chunks of blocks the launching thread itself checks for pending signal handlers. In a block that takes long
it cannot; the watcher then sends it a signal, whose handler does so (see `trap_handlers`). It scans the list of slots a
few times a second, so that launches cost nothing more.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.execution.pool import loop
from hip_runtime.drivers.cpu.execution.previous_handlers import POKE
from hip_runtime.drivers.cpu.execution.thread_slots import GOES_ON, SAMPLES, SLOT, TAKE_SAMPLE, ThreadSlotsBuilder
from hip_runtime.drivers.cpu.llvmir import I32, I64, PTR, allocate, function_address

TICK = 50_000_000
"""Nanoseconds between two looks while something runs."""

IDLE_TICK = 200_000_000
"""And while nothing does."""

SAMPLE_TICK = 2_000_000
"""Nanoseconds between two samples of what threads do."""

_IDLE, _BUSY, _SUSPICIOUS = range(3)


class WatcherBuilder:
    """Puts the watcher into a module: ``i32 spmd.watch(main, ticks)`` starts it, for the main thread with the number
    *main*. After *ticks* in the same call of a worker, where that is not 0, it takes samples of what the threads do.
    """

    def __init__(self, module: ir.Module, slots: ThreadSlotsBuilder) -> None:
        self._module = module
        self._slots = slots
        self._main, self._patience = (self._variable(f"spmd.watcher.{name}") for name in ("main", "patience"))
        self._define_watch(self._define_watcher(self._define_look()))

    def _variable(self, name: str) -> ir.GlobalVariable:
        variable = ir.GlobalVariable(self._module, I32, name)
        variable.type = PTR
        variable.linkage = "internal"
        variable.initializer = I32(0)
        return variable

    def _define_look(self) -> ir.Function:
        """``i32 look()``: poke the threads that need it. Returns whether any thread runs blocks, and whether one has
        been in the same call for long enough to be suspicious."""
        function = ir.Function(self._module, ir.FunctionType(I32, []), "spmd.watcher.look")
        function.linkage = "internal"
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        busy = allocate(builder, I32, "busy")
        builder.store(I32(_IDLE), busy)
        main = builder.load(self._main, typ=I32)
        with self._slots.each(builder) as slot:
            record = SLOT.load_atomic(builder, slot, "record")
            ticks = builder.add(SLOT.load(builder, slot, "ticks"), I32(1))
            polled = SLOT.load_atomic(builder, slot, "polled")
            with builder.if_then(builder.icmp_unsigned("==", polled, PTR(None))):
                SLOT.store_atomic(builder, I32(0), slot, "ticks")
            with builder.if_then(builder.icmp_unsigned("!=", record, PTR(None))):
                with builder.if_then(builder.icmp_unsigned("==", builder.load(busy, typ=I32), I32(_IDLE))):
                    builder.store(I32(_BUSY), busy)
                runs = SLOT.load_atomic(builder, slot, "runs")
                seen = SLOT.load(builder, slot, "seen")
                SLOT.store(builder, runs, slot, "seen")
                is_main = builder.icmp_unsigned("==", SLOT.load_atomic(builder, slot, "thread"), main)
                stops = builder.icmp_unsigned("!=", SLOT.load_atomic(builder, slot, "stop"), I32(GOES_ON))
                same = builder.icmp_unsigned("==", runs, seen)
                with builder.if_then(same):
                    SLOT.store_atomic(builder, ticks, slot, "ticks")
                    with builder.if_then(self._is_suspicious(builder, ticks)):
                        builder.store(I32(_SUSPICIOUS), busy)
                with builder.if_then(builder.and_(same, builder.or_(is_main, stops))):
                    self._slots.poke(builder, slot, POKE)
        builder.ret(builder.load(busy, typ=I32))
        return function

    def _is_suspicious(self, builder: ir.IRBuilder, ticks: ir.Value) -> ir.Value:
        """Whether *ticks* in the same call are the patience, or twice, four times, ... as many: a thread may compute
        for long before it waits for ever, and a busy machine may give too few samples at one time."""
        patience = builder.load(self._patience, typ=I32)
        some = builder.icmp_unsigned("!=", patience, I32(0))
        divisor = builder.select(some, patience, I32(1))
        times, rest = builder.udiv(ticks, divisor), builder.urem(ticks, divisor)
        doubled = builder.and_(times, builder.sub(times, I32(1)))
        is_power = builder.icmp_unsigned("==", builder.or_(rest, doubled), I32(0))
        return builder.and_(some, builder.and_(is_power, builder.icmp_unsigned("!=", times, I32(0))))

    def _define_watcher(self, look: ir.Function) -> ir.Function:
        """The endless loop of the thread."""
        sleep = ir.Function(self._module, ir.FunctionType(I32, [PTR, PTR]), "nanosleep")
        function = ir.Function(self._module, ir.FunctionType(PTR, [PTR]), "spmd.watcher")
        function.linkage = "internal"
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        time = allocate(builder, ir.ArrayType(I64, 2), "time")
        builder.store(I64(0), time)
        again = builder.append_basic_block("again")
        builder.branch(again)
        builder.position_at_end(again)
        found = builder.call(look, [])
        with builder.if_then(builder.icmp_unsigned("==", found, I32(_SUSPICIOUS)), likely=False):
            self._take_samples(builder, sleep, time)
        wait = builder.select(builder.icmp_unsigned("!=", found, I32(_IDLE)), I64(TICK), I64(IDLE_TICK))
        self._sleep(builder, sleep, time, wait)
        builder.branch(again)
        return function

    def _take_samples(self, builder: ir.IRBuilder, sleep: ir.Function, time: ir.Value) -> None:
        """Sample the positions of the threads, many times, and let the launching threads check the samples."""
        with self._slots.each(builder) as slot:
            SLOT.store(builder, I64(0), slot, "sampled")
        with loop(builder, I32(SAMPLES)):
            with self._slots.each(builder) as slot, builder.if_then(self._is_inside(builder, slot)):
                self._slots.poke(builder, slot, POKE, TAKE_SAMPLE)
            self._sleep(builder, sleep, time, I64(SAMPLE_TICK))
        with self._slots.each(builder) as slot:
            launch = SLOT.load(builder, slot, "launch")
            with builder.if_then(builder.icmp_unsigned("!=", launch, PTR(None))):
                SLOT.store_atomic(builder, I32(1), slot, "due")
                with builder.if_then(self._is_inside(builder, slot)):
                    self._slots.poke(builder, slot, POKE)

    def _is_inside(self, builder: ir.IRBuilder, slot: ir.Value) -> ir.Value:
        """Whether the thread has been in the same call of a worker for some time."""
        record = SLOT.load_atomic(builder, slot, "record")
        ticks = SLOT.load(builder, slot, "ticks")
        return builder.and_(builder.icmp_unsigned("!=", record, PTR(None)), builder.icmp_unsigned("!=", ticks, I32(0)))

    def _sleep(self, builder: ir.IRBuilder, sleep: ir.Function, time: ir.Value, nanoseconds: ir.Value) -> None:
        builder.store(nanoseconds, builder.gep(time, [I64(1)], source_etype=I64))
        builder.call(sleep, [time, PTR(None)])

    def _define_watch(self, watcher: ir.Function) -> None:
        create, detach = (self._module.globals[name] for name in ("pthread_create", "pthread_detach"))
        function = ir.Function(self._module, ir.FunctionType(I32, [I32, I32]), "spmd.watch")
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        builder.store(function.args[0], self._main)
        builder.store(function.args[1], self._patience)
        identity = allocate(builder, I64)
        status = builder.call(create, [identity, PTR(None), function_address(watcher), PTR(None)])
        with builder.if_then(builder.icmp_unsigned("==", status, I32(0))):
            builder.call(detach, [builder.load(identity, typ=I64)])
        builder.ret(status)
