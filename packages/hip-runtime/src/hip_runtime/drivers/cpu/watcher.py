"""The watcher: a native thread that looks after threads which have been in one call of a worker for some time, as LLVM
IR.

Between two chunks of blocks the launching thread sees by itself whether handlers of signals want to run. In a block
that takes long it does not; the watcher then sends it a signal, whose handler does (see `traps`). It looks at the list
of slots a few times a second, so that launches cost nothing more.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.frame import I32, I64, PTR, allocate, function_address
from hip_runtime.drivers.cpu.slots import GOES_ON, SLOT, SlotsBuilder
from hip_runtime.drivers.cpu.traps import POKE

TICK = 50_000_000
"""Nanoseconds between two looks while something runs."""

IDLE_TICK = 200_000_000
"""And while nothing does."""


class WatcherBuilder:
    """Puts the watcher into a module: ``i32 spmd.watch(main)`` starts it, for the main thread with the number
    *main*."""

    def __init__(self, module: ir.Module, slots: SlotsBuilder) -> None:
        self._module = module
        self._slots = slots
        self._main = ir.GlobalVariable(module, I32, "spmd.watcher.main")
        self._main.type = PTR
        self._main.linkage = "internal"
        self._main.initializer = I32(0)
        self._define_watch(self._define_watcher(self._define_look()))

    def _define_look(self) -> ir.Function:
        """``i32 look()``: poke those threads that need it; whether any thread runs blocks."""
        function = ir.Function(self._module, ir.FunctionType(I32, []), "spmd.watcher.look")
        function.linkage = "internal"
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        busy = allocate(builder, I32, "busy")
        builder.store(I32(0), busy)
        main = builder.load(self._main, typ=I32)
        with self._slots.each(builder) as slot:
            record = SLOT.load_atomic(builder, slot, "record")
            with builder.if_then(builder.icmp_unsigned("!=", record, PTR(None))):
                builder.store(I32(1), busy)
                runs = SLOT.load_atomic(builder, slot, "runs")
                seen = SLOT.load(builder, slot, "seen")
                SLOT.store(builder, runs, slot, "seen")
                is_main = builder.icmp_unsigned("==", SLOT.load_atomic(builder, slot, "thread"), main)
                stops = builder.icmp_unsigned("!=", SLOT.load_atomic(builder, slot, "stop"), I32(GOES_ON))
                same = builder.icmp_unsigned("==", runs, seen)
                with builder.if_then(builder.and_(same, builder.or_(is_main, stops))):
                    self._slots.poke(builder, slot, POKE)
        builder.ret(builder.load(busy, typ=I32))
        return function

    def _define_watcher(self, look: ir.Function) -> ir.Function:
        """What the thread does, for ever."""
        sleep = ir.Function(self._module, ir.FunctionType(I32, [PTR, PTR]), "nanosleep")
        function = ir.Function(self._module, ir.FunctionType(PTR, [PTR]), "spmd.watcher")
        function.linkage = "internal"
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        time = allocate(builder, ir.ArrayType(I64, 2), "time")
        builder.store(I64(0), time)
        again = builder.append_basic_block("again")
        builder.branch(again)
        builder.position_at_end(again)
        busy = builder.icmp_unsigned("!=", builder.call(look, []), I32(0))
        wait = builder.select(busy, I64(TICK), I64(IDLE_TICK))
        builder.store(wait, builder.gep(time, [I64(1)], source_etype=I64))
        builder.call(sleep, [time, PTR(None)])
        builder.branch(again)
        return function

    def _define_watch(self, watcher: ir.Function) -> None:
        create, detach = (self._module.globals[name] for name in ("pthread_create", "pthread_detach"))
        function = ir.Function(self._module, ir.FunctionType(I32, [I32]), "spmd.watch")
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        builder.store(function.args[0], self._main)
        identity = allocate(builder, I64)
        status = builder.call(create, [identity, PTR(None), function_address(watcher), PTR(None)])
        with builder.if_then(builder.icmp_unsigned("==", status, I32(0))):
            builder.call(detach, [builder.load(identity, typ=I64)])
        builder.ret(status)
