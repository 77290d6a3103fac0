"""Signal handlers on threads that run blocks, as LLVM IR.

``spmd.trap`` handles the processor's faults, such as an invalid memory access. In a kernel's code it records the fault
in the launch frame, and makes the thread continue at the place in its record; the launch then ends as with any fault.

``spmd.poked`` handles `POKE`, with which one of our threads asks another to check its slot. If it interrupts a kernel's
code, which holds no locks, it may do anything: it runs pending Python signal handlers, on the launching thread, and
abandons the worker if the launch is to end.

Every other signal is passed on to the handlers that it had before ours: see `previous_handlers`.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.fault_codes import ABORT_CODE, STACK_CODE, TRAP_CODE
from hip_runtime.drivers.cpu.abi.launch_frame import FAULT_FIELDS, FRAME, PROGRAM
from hip_runtime.drivers.cpu.execution.previous_handlers import HANDLER, PreviousHandlers, zero_table
from hip_runtime.drivers.cpu.execution.signal_frames import SIGNAL_ADDRESS, SIGNAL_CODE, Machine
from hip_runtime.drivers.cpu.execution.thread_slots import (
    ABORTED,
    GOES_ON,
    RECORD,
    SAMPLE,
    SAMPLES,
    SLOT,
    TAKE_SAMPLE,
    ThreadSlotsBuilder,
)
from hip_runtime.drivers.cpu.llvmir import I8, I32, I64, PTR, VOID, Struct, allocate, function_address

GRACE = 4
"""How many times a thread is asked before it abandons a block: blocks that end by themselves meanwhile are whole."""

LIBRARIES = 4
"""How many ranges of addresses there may be with functions, as of the math library, that hold no locks."""

OBSERVERS = 2
"""How many more such ranges: those of what kernels call that tell what they do, see `observer`."""

RANGE = Struct(start=I64, end=I64)
_RED_ZONE = 1024  # below a record: what its function keeps there, and the machine's red zone
_VECTOR_WORDS = 32  # sixteen registers of 128 bits
_HASH_START, _HASH_STEP = 0xCBF29CE484222325 - (1 << 64), 0x100000001B3
_STACK_STEP = 1 << 20  # how far from the stack pointer a function's first write may be: at any end of its frame
_MESSAGE = b"hip: signal %d while kernel %s was running; bounds checks find indices out of range\n\0"


class TrapHandlersBuilder:
    """Puts the handlers into a module, and ``spmd.abort(thread)``, which ends another thread's launch."""

    def __init__(
        self, module: ir.Module, machine: Machine | None, slots: ThreadSlotsBuilder, poll: ir.Function
    ) -> None:
        self._module = module
        self._slots = slots
        self.poll = poll
        self._libraries = zero_table(module, "spmd.libraries", RANGE.type, LIBRARIES + OBSERVERS)
        self._note = self._define_note()
        self._define_abort()
        chain = PreviousHandlers(module).chain
        for name, define in (("spmd.trap", self._define_trap), ("spmd.poked", self._define_poked)):
            function, builder = self._function(name, HANDLER, "external")
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

    def _function(
        self, name: str, kind: ir.FunctionType, linkage: str = "internal"
    ) -> tuple[ir.Function, ir.IRBuilder]:
        function = ir.Function(self._module, kind, name)
        if linkage == "internal":
            function.linkage = linkage
        return function, ir.IRBuilder(function.append_basic_block("entry"))


def _at(builder: ir.IRBuilder, base: ir.Value, offset: int) -> ir.Value:
    return builder.gep(base, [I64(offset)], source_etype=I8)


def _is_there(builder: ir.IRBuilder, pointer: ir.Value) -> ir.Value:
    return builder.icmp_unsigned("!=", pointer, PTR(None))
