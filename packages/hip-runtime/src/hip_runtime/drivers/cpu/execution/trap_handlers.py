"""Signal handlers on threads that run blocks, as LLVM IR.

``spmd.trap`` handles the processor's faults, such as an invalid memory access. In a kernel's code it records the fault
in the launch frame, and makes the thread continue at the place in its record; the launch then ends as with any fault.

``spmd.poked`` handles `POKE`, with which one of our threads asks another to check its slot. If it interrupts a kernel's
code, which holds no locks, it may do anything: it runs pending Python signal handlers, on the launching thread, and
abandons the worker if the launch is to end.

Everything else is passed on to the previous handlers, whose number `installed` has: a handler that passes a signal back
to us gets the one below it.
"""

from __future__ import annotations

import signal

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.fault_codes import ABORT_CODE, STACK_CODE, TRAP_CODE
from hip_runtime.drivers.cpu.abi.launch_frame import FAULT_FIELDS, FRAME, PROGRAM
from hip_runtime.drivers.cpu.execution.signal_frames import SIGNAL_ADDRESS, SIGNAL_CODE, Machine
from hip_runtime.drivers.cpu.execution.thread_slots import (
    ABORTED,
    GOES_ON,
    INTERRUPTED,
    RECORD,
    SAMPLE,
    SAMPLES,
    SLOT,
    TAKE_SAMPLE,
    SlotsBuilder,
)
from hip_runtime.drivers.cpu.llvmir import I8, I32, I64, PTR, VOID, Callee, Struct, allocate, function_address

POKE = int(signal.SIGURG)
"""What is sent from thread to thread. By default it does nothing, in this process and in those that it becomes or
starts, and debuggers pass it on in silence."""

SIGNALS = (*map(int, (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)), POKE)
"""Signals that have a handler of ours, as numbers: Python 3.10 would write their names into LLVM's IR."""

GRACE = 4
"""How many times a thread is asked before it abandons a block: blocks that end by themselves meanwhile are whole."""

REPORT_SYMBOL = "spmd.report"
"""Where the address of a Python object is that is called, without arguments, on a thread whose launch may not go on."""

HANDLERS = 4
"""How many handlers of others are remembered for each signal."""

LIBRARIES = 4
"""How many ranges of addresses there may be with functions, as of the math library, that hold no locks."""

OBSERVERS = 2
"""How many more such ranges: those of what kernels call that tell what they do, see `observer`."""

ACTION = Struct(handler=PTR, mask=ir.ArrayType(I64, 16), flags=I32, restorer=PTR)
"""A ``struct sigaction`` of Linux' C libraries on 64-bit machines."""

WITH_INFORMATION = 4
"""SA_SIGINFO, in its flags."""

RANGE = Struct(start=I64, end=I64)
CHAIN = Struct(count=I64, actions=ir.ArrayType(ACTION.type, HANDLERS))
"""The handlers that a signal had before, oldest first."""

_RED_ZONE = 1024  # below a record: what its function keeps there, and what its machine lets it keep below the stack
_VECTOR_WORDS = 32  # sixteen registers of 128 bits
_HASH_START, _HASH_STEP = 0xCBF29CE484222325 - (1 << 64), 0x100000001B3
_DEFAULT, _IGNORED = 0, 1
_STACK_STEP = 1 << 20  # how far from the stack pointer a function may write first: to any end of its frame
_HANDLER = ir.FunctionType(VOID, [I32, PTR, PTR])
_MESSAGE = b"hip: signal %d while kernel %s was running; bounds checks find indices out of range\n\0"


class TrapsBuilder:
    """Puts the handlers into a module, and ``spmd.abort(thread)``, which ends another thread's launch."""

    def __init__(self, module: ir.Module, machine: Machine | None, slots: SlotsBuilder, poll: ir.Function) -> None:
        self._module = module
        self._slots = slots
        self.poll = poll
        self._libraries = self._table("spmd.libraries", RANGE.type, LIBRARIES + OBSERVERS)
        self._chains = self._table("spmd.chains", CHAIN.type, len(SIGNALS))
        self._depth = self._table("spmd.chains.depth", I32, 1)
        self._note = self._define_note()
        self._define_abort()
        self._define_prepare()
        chain = self._define_chain()
        for name, define in (("spmd.trap", self._define_trap), ("spmd.poked", self._define_poked)):
            function, builder = self._function(name, _HANDLER, "external")
            if machine is not None:
                self._machine = machine
                define(builder, chain, *function.args)
            builder.ret_void()

    # what the processor finds

    def _define_trap(
        self, builder: ir.IRBuilder, chain: ir.Function, number: ir.Value, information: ir.Value, context: ir.Value
    ) -> None:
        slot = self._slots.own(builder)
        with builder.if_then(_is_there(builder, slot)):
            record = SLOT.load_atomic(builder, slot, "record")
            with builder.if_then(_is_there(builder, record)):
                code = builder.load(_at(builder, information, SIGNAL_CODE), typ=I32)
                address = builder.load(_at(builder, information, SIGNAL_ADDRESS), typ=I64)
                place = self._find_place(builder, record, context)
                found = builder.icmp_signed(">", code, I32(0))
                free = builder.icmp_unsigned("!=", place, I64(0))
                with builder.if_then(builder.and_(found, free)):
                    self._note_trap(builder, record, number, place, address, context)
                    self._go_back(builder, record, context)
                    builder.ret_void()
                with builder.if_then(builder.not_(free)):  # or passed on to us by a handler that was installed later
                    self._report(builder, record, number)
        builder.call(chain, [number, information, context])

    def _note_trap(
        self,
        builder: ir.IRBuilder,
        record: ir.Value,
        number: ir.Value,
        place: ir.Value,
        address: ir.Value,
        context: ir.Value,
    ) -> None:
        stack = builder.load(_at(builder, context, self._machine.stack_pointer), typ=I64)
        distance = builder.add(builder.sub(stack, address), I64(_STACK_STEP))
        near = builder.icmp_unsigned("<=", distance, I64(2 * _STACK_STEP))
        code = builder.sub(builder.select(near, I32(STACK_CODE), I32(TRAP_CODE)), number)
        chunk = RECORD.load_atomic(builder, record, "chunk")
        builder.call(self._note, [RECORD.load(builder, record, "frame"), code, place, address, chunk])

    def _find_place(self, builder: ir.IRBuilder, record: ir.Value, context: ir.Value) -> ir.Value:
        """The current address in a kernel: the program counter, or the return address of a leaf function such as
        ``memcpy`` that it called, minus 1, so that it is within the call. 0 in functions that may hold locks."""
        counter = builder.load(_at(builder, context, self._machine.program_counter), typ=I64)
        here = self._is_free(builder, record, counter)
        found = allocate(builder, I64)
        builder.store(builder.select(here, counter, I64(0)), found)
        with builder.if_then(builder.not_(here)):
            if self._machine.return_address is None:
                stack = builder.load(_at(builder, context, self._machine.stack_pointer), typ=PTR)
                back = builder.load(stack, typ=I64)
            else:
                back = builder.load(_at(builder, context, self._machine.return_address), typ=I64)
            called = self._is_free(builder, record, back)
            builder.store(builder.select(called, builder.sub(back, I64(1)), I64(0)), found)
        return builder.load(found, typ=I64)

    def _is_free(self, builder: ir.IRBuilder, record: ir.Value, address: ir.Value) -> ir.Value:
        """Whether *address* is code that holds no locks: of the kernel, or of the math library or an observer,
        which it calls."""
        program = FRAME.load(builder, RECORD.load(builder, record, "frame"), "program")
        ranges = [(PROGRAM.load(builder, program, "code_start"), PROGRAM.load(builder, program, "code_end"))]
        for number in range(LIBRARIES + OBSERVERS):
            place = builder.gep(self._libraries, [I64(number)], source_etype=RANGE.type)
            ranges.append((RANGE.load(builder, place, "start"), RANGE.load(builder, place, "end")))
        found = ir.IntType(1)(0)
        for start, end in ranges:
            inside = builder.icmp_unsigned("<", builder.sub(address, start), builder.sub(end, start))
            found = builder.or_(found, inside)
        return found

    def _go_back(self, builder: ir.IRBuilder, record: ir.Value, context: ir.Value) -> None:
        """Make the thread continue after the call of the worker, once the handler is over."""
        machine = self._machine
        start = builder.ptrtoint(record, I64)
        stack = builder.and_(builder.sub(start, I64(_RED_ZONE)), I64(-16))
        stack = builder.sub(stack, I64(machine.entry_misalignment))
        go_on = builder.ptrtoint(function_address(self._go_on()), I64)
        place = builder.ptrtoint(RECORD.field(builder, record, "place"), I64)
        for offset, value in (
            (machine.stack_pointer, stack), (machine.program_counter, go_on), (machine.first_argument, place)
        ):  # fmt: skip
            builder.store(value, _at(builder, context, offset))

    def _go_on(self) -> ir.Function:
        """``void (place)``: return to the saved *place*."""
        known = self._module.globals.get("spmd.go_on")
        if known is not None:
            return known
        longjmp = ir.Function(self._module, ir.FunctionType(VOID, [PTR, I32]), "longjmp")
        longjmp.attributes.add("noreturn")
        function, builder = self._function("spmd.go_on", ir.FunctionType(VOID, [PTR]))
        builder.call(longjmp, [function.args[0], I32(1)])
        builder.unreachable()
        return function

    def _report(self, builder: ir.IRBuilder, record: ir.Value, number: ir.Value) -> None:
        """Print to standard error which kernel the process ends in."""
        kind = ir.FunctionType(I32, [I32, PTR], var_arg=True)
        write = ir.Function(self._module, kind, "dprintf")
        text = ir.GlobalVariable(self._module, ir.ArrayType(I8, len(_MESSAGE)), "spmd.trap.message")
        text.type = PTR
        text.linkage = "internal"
        text.initializer = ir.Constant(ir.ArrayType(I8, len(_MESSAGE)), bytearray(_MESSAGE))
        program = FRAME.load(builder, RECORD.load(builder, record, "frame"), "program")
        builder.call(write, [I32(2), text, number, PROGRAM.load(builder, program, "name")])

    # what threads ask of one another

    def _define_poked(
        self, builder: ir.IRBuilder, chain: ir.Function, number: ir.Value, information: ir.Value, context: ir.Value
    ) -> None:
        slot = self._slots.own(builder)
        with builder.if_then(_is_there(builder, slot)):
            poked = builder.atomic_rmw("xchg", SLOT.field(builder, slot, "poked"), I32(0), "monotonic")
            with builder.if_then(builder.icmp_unsigned("!=", poked, I32(0))):
                record = SLOT.load_atomic(builder, slot, "record")
                with builder.if_then(_is_there(builder, record)):
                    with builder.if_then(builder.icmp_unsigned("==", poked, I32(TAKE_SAMPLE))):
                        self._take_sample(builder, slot, context)
                        builder.ret_void()
                    counter = builder.load(_at(builder, context, self._machine.program_counter), typ=I64)
                    with builder.if_then(self._is_free(builder, record, counter)):
                        self._look_at_slot(builder, slot, record, context)
                builder.ret_void()
        builder.call(chain, [number, information, context])

    def _take_sample(self, builder: ir.IRBuilder, slot: ir.Value, context: ir.Value) -> None:
        """Record the thread's current address, unless there is no room left."""
        count, samples = SLOT.load(builder, slot, "sampled"), SLOT.load(builder, slot, "samples")
        room = builder.and_(builder.icmp_unsigned("<", count, I64(SAMPLES)), _is_there(builder, samples))
        with builder.if_then(room):
            sample = builder.gep(samples, [count], source_etype=SAMPLE.type)
            counter = builder.load(_at(builder, context, self._machine.program_counter), typ=I64)
            SAMPLE.store(builder, counter, sample, "counter")
            SAMPLE.store(builder, self._sum_up_registers(builder, context), sample, "state")
            SLOT.store(builder, builder.add(count, I64(1)), slot, "sampled")

    def _sum_up_registers(self, builder: ir.IRBuilder, context: ir.Value) -> ir.Value:
        """A hash (FNV-1a over words) of the registers, which almost always differs if any register does."""
        start, count = self._machine.registers
        places = [_at(builder, context, start + 8 * number) for number in range(count)]
        if self._machine.vectors is not None:
            where, first = self._machine.vectors
            vectors = builder.load(_at(builder, context, where), typ=PTR)
            places += [_at(builder, vectors, first + 8 * number) for number in range(_VECTOR_WORDS)]
        found = I64(_HASH_START)
        for place in places:
            found = builder.mul(builder.xor(found, builder.load(place, typ=I64)), I64(_HASH_STEP))
        return found

    def _look_at_slot(self, builder: ir.IRBuilder, slot: ir.Value, record: ir.Value, context: ir.Value) -> None:
        runs, abandoned = (SLOT.load_atomic(builder, slot, name) for name in ("runs", "abandoned"))
        with builder.if_then(builder.icmp_unsigned("==", runs, abandoned)):
            self._go_back(builder, record, context)
            builder.ret_void()
        with builder.if_then(builder.icmp_unsigned("==", SLOT.load(builder, slot, "thread_state"), PTR(None))):
            builder.ret_void()  # a helper
        goes_on = builder.icmp_unsigned("==", SLOT.load_atomic(builder, slot, "stop"), I32(GOES_ON))
        with builder.if_then(goes_on):
            error = builder.call(self._error_place(), [])
            kept = builder.load(error, typ=I32)
            builder.call(self.poll, [slot])
            builder.store(kept, error)
            builder.ret_void()
        late = builder.add(SLOT.load(builder, slot, "late"), I32(1))
        SLOT.store(builder, late, slot, "late")
        aborted = builder.icmp_unsigned("==", SLOT.load_atomic(builder, slot, "stop"), I32(ABORTED))
        with builder.if_then(builder.or_(aborted, builder.icmp_unsigned(">", late, I32(GRACE)))):
            for frame in (SLOT.load(builder, slot, "launch"), RECORD.load(builder, record, "frame")):
                self.note_end(builder, frame)
            self._go_back(builder, record, context)

    def _error_place(self) -> ir.Function:
        known = self._module.globals.get("__errno_location")
        return known or ir.Function(self._module, ir.FunctionType(PTR, []), "__errno_location")

    def note_end(self, builder: ir.IRBuilder, frame: ir.Value) -> None:
        """End the launch of *frame*, as another thread requested."""
        builder.call(self._note, [frame, I32(ABORT_CODE), I64(0), I64(0), I64(0)])

    def _define_abort(self) -> None:
        """``void spmd.abort(thread)``: the launch that the thread with that number makes shall end."""
        function, builder = self._function("spmd.abort", ir.FunctionType(VOID, [I32]), "external")
        with self._slots.each(builder) as slot:
            thread = SLOT.load_atomic(builder, slot, "thread")
            with builder.if_then(builder.icmp_unsigned("==", thread, function.args[0])):
                place = SLOT.field(builder, slot, "stop")
                builder.cmpxchg(place, I32(GOES_ON), I32(ABORTED), "monotonic", "monotonic")
        builder.ret_void()

    # passing on

    def _define_prepare(self) -> None:
        """``void spmd.traps.prepare()``: called once, before handlers are installed."""
        _, builder = self._function("spmd.traps.prepare", ir.FunctionType(VOID, []), "external")
        builder.call(self._module.globals["pthread_key_create"], [self._depth, PTR(None)])
        builder.ret_void()

    def _define_chain(self) -> ir.Function:
        """``void chain(number, information, context)``: do what would have happened without us."""
        get, put = (self._module.globals[f"pthread_{name}specific"] for name in ("get", "set"))
        function, builder = self._function("spmd.chain", _HANDLER)
        number, information, context = function.args
        key = builder.load(self._depth, typ=I32)
        depth = builder.ptrtoint(builder.call(get, [key]), I64)
        chain = self._chain_of(builder, number)
        index = builder.sub(builder.sub(CHAIN.load(builder, chain, "count"), I64(1)), depth)
        with builder.if_then(builder.icmp_signed("<", index, I64(0))):
            self._default(builder, number)
            builder.ret_void()
        actions = CHAIN.field(builder, chain, "actions")
        action = builder.gep(actions, [index], source_etype=ACTION.type)
        handler = ACTION.load(builder, action, "handler")
        value = builder.ptrtoint(handler, I64)
        with builder.if_then(builder.icmp_unsigned("<=", value, I64(_IGNORED))):
            code = builder.load(_at(builder, information, SIGNAL_CODE), typ=I32)
            ignored = builder.icmp_unsigned("==", value, I64(_IGNORED))
            with builder.if_then(builder.and_(ignored, builder.icmp_signed("<=", code, I32(0)))):
                builder.ret_void()
            self._default(builder, number)
            builder.ret_void()
        builder.call(put, [key, builder.inttoptr(builder.add(depth, I64(1)), PTR)])
        told = builder.and_(ACTION.load(builder, action, "flags"), I32(WITH_INFORMATION))
        with builder.if_else(builder.icmp_unsigned("!=", told, I32(0))) as (informed, plain):
            with informed:
                builder.call(Callee(handler, _HANDLER), [number, information, context])
            with plain:
                builder.call(Callee(handler, ir.FunctionType(VOID, [I32])), [number])
        builder.call(put, [key, builder.inttoptr(depth, PTR)])
        builder.ret_void()
        return function

    def _chain_of(self, builder: ir.IRBuilder, number: ir.Value) -> ir.Value:
        index = I64(0)
        for position, known in enumerate(SIGNALS):
            index = builder.select(builder.icmp_unsigned("==", number, I32(known)), I64(position), index)
        return builder.gep(self._chains, [index], source_etype=CHAIN.type)

    def _default(self, builder: ir.IRBuilder, number: ir.Value) -> None:
        """What the system does with a signal without a handler: nothing, or it ends the process, when we return."""
        kinds = {"sigaction": [I32, PTR, PTR], "raise": [I32]}
        act, send = (
            self._module.globals.get(name) or ir.Function(self._module, ir.FunctionType(I32, types), name)
            for name, types in kinds.items()
        )
        with builder.if_then(builder.icmp_unsigned("!=", number, I32(POKE))):
            action = allocate(builder, ACTION.type, "action")
            builder.store(ir.Constant(ACTION.type, None), action)
            builder.call(act, [number, action, PTR(None)])
            builder.call(send, [number])

    # pieces

    def _define_note(self) -> ir.Function:
        """``void note(frame, code, place, address, chunk)``: record the fault of the launch, unless there is one."""
        kind = ir.FunctionType(VOID, [PTR, I32, I64, I64, I64])
        function, builder = self._function("spmd.note", kind)
        frame, code, *numbers = function.args
        taken = builder.atomic_rmw("xchg", FRAME.field(builder, frame, "fault_taken"), I32(1), "acq_rel")
        with builder.if_then(builder.icmp_unsigned("==", taken, I32(0))):
            FRAME.store(builder, code, frame, "fault", 0)
            assert len(FAULT_FIELDS) == 1 + 2 * len(numbers)
            for position, number in enumerate(numbers):
                place = FRAME.field(builder, frame, "fault", 1 + 2 * position)
                builder.store(number, place, align=4)
        builder.ret_void()
        return function

    def _table(self, name: str, kind: ir.Type, count: int) -> ir.GlobalVariable:
        """Memory for *count* values, zero at first."""
        table = ir.GlobalVariable(self._module, ir.ArrayType(kind, count), name)
        table.initializer = ir.Constant(ir.ArrayType(kind, count), None)
        table.type = PTR
        table.align = 16
        return table

    def _function(
        self, name: str, kind: ir.FunctionType, linkage: str = "internal"
    ) -> tuple[ir.Function, ir.IRBuilder]:
        function = ir.Function(self._module, kind, name)
        if linkage == "internal":
            function.linkage = linkage
        return function, ir.IRBuilder(function.append_basic_block("entry"))


def define_poll(module: ir.Module, python: dict[str, ir.Function]) -> ir.Function:
    """``void spmd.poll(slot)``: on the thread of *slot*, which launches, run pending Python signal handlers; if one
    raises, as that of Ctrl-C does, the launch is to end."""
    report = ir.GlobalVariable(module, PTR, REPORT_SYMBOL)
    report.type = PTR
    report.initializer = PTR(None)
    function = ir.Function(module, ir.FunctionType(VOID, [PTR]), "spmd.poll")
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    (slot,) = function.args
    record = SLOT.load_atomic(builder, slot, "record")
    SLOT.store_atomic(builder, record, slot, "polled")
    SLOT.store_atomic(builder, PTR(None), slot, "record")  # what goes wrong in Python is not the kernel's fault
    builder.call(python["PyEval_RestoreThread"], [SLOT.load(builder, slot, "thread_state")])
    place = allocate(builder, I32, "raised")
    builder.store(builder.call(python["PyErr_CheckSignals"], []), place)
    due = builder.and_(
        builder.icmp_unsigned("!=", SLOT.load_atomic(builder, slot, "due"), I32(0)),
        builder.icmp_unsigned("==", builder.load(place, typ=I32), I32(0)),
    )
    with builder.if_then(due):
        SLOT.store_atomic(builder, I32(0), slot, "due")
        SLOT.store_atomic(builder, record, slot, "polled")  # a handler of Python's may have launched, too
        reporter = builder.load(report, typ=PTR)
        SLOT.store(builder, FRAME.load(builder, SLOT.load(builder, slot, "launch"), "program"), slot, "program")
        with builder.if_then(_is_there(builder, reporter)):
            result = builder.call(python["PyObject_CallNoArgs"], [reporter])
            with builder.if_else(_is_there(builder, result)) as (returned, failed):
                with returned:
                    builder.call(python["Py_DecRef"], [result])
                with failed:
                    builder.store(I32(1), place)
    raised = builder.load(place, typ=I32)
    SLOT.store(builder, builder.call(python["PyEval_SaveThread"], []), slot, "thread_state")
    SLOT.store_atomic(builder, record, slot, "record")
    SLOT.store_atomic(builder, PTR(None), slot, "polled")
    with builder.if_then(builder.icmp_unsigned("!=", raised, I32(0))):
        SLOT.store(builder, I32(0), slot, "late")
        SLOT.store_atomic(builder, I32(INTERRUPTED), slot, "stop")
        launch = SLOT.load(builder, slot, "launch")
        builder.atomic_rmw("xchg", FRAME.field(builder, launch, "fault_taken"), I32(1), "monotonic")
    builder.ret_void()
    return function


def _at(builder: ir.IRBuilder, base: ir.Value, offset: int) -> ir.Value:
    return builder.gep(base, [I64(offset)], source_etype=I8)


def _is_there(builder: ir.IRBuilder, pointer: ir.Value) -> ir.Value:
    return builder.icmp_unsigned("!=", pointer, PTR(None))
