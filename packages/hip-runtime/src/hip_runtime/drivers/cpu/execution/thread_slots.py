"""Slots: the state of each thread that runs blocks, as LLVM IR.

A thread that runs blocks has a *slot*, in a list that only grows; the slot of a thread that ended is reused.
``spmd.run`` calls workers. It keeps a *record* on the stack: a place to continue from if a signal handler finds that
the worker cannot or must not continue. Then the thread *abandons* the worker: its stack frames are discarded, which is
safe for code without destructors, and ``spmd.run`` returns as if no blocks had been left.

``_setjmp`` and ``longjmp`` of the C library save that place and return to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.launch_frame import FRAME, WORKER_TYPE
from hip_runtime.drivers.cpu.execution.signal_frames import Machine
from hip_runtime.drivers.cpu.llvmir import (
    I32,
    I64,
    PTR,
    VOID,
    Callee,
    Struct,
    allocate,
    allocate_at_entry,
    function_address,
)

RECORD = Struct(
    place=ir.ArrayType(I64, 64),  # a jmp_buf: 200 bytes on x86-64, 312 on aarch64 with glibc
    frame=PTR,
    outer=PTR,  # the record of the run during which a Python handler made this launch
    chunk=I64,  # first block of the chunk that is being run; from here on this is a `launch_frame.WORKER_RECORD`
    memory=PTR,  # from the heap, for the block that is being run, or null
    states=PTR,  # the sync point at which each of its threads waits, or null if that is not recorded
    kept=PTR,  # where the slot has the address of kept memory
)
"""One call of a worker, on the stack of the thread."""

SLOT = Struct(
    record=PTR,  # of the innermost call of a worker, or null
    runs=I64,  # how many workers were entered and left: the same number means the same call
    running=PTR,  # the frame of the launch whose blocks the worker runs, only to be compared, as it may be gone
    thread_state=PTR,  # Python's thread state of a launching thread; null in helpers
    launch=PTR,  # the frame of the launch that the thread makes
    thread=I32,  # the system's number of the thread; 0 if the slot is free
    poked=I32,  # the purpose of the next signal, if it is ours
    stop=I32,  # why the launch of this thread ends early, see `STOPS`
    late=I32,  # how often the thread was signalled since it had to stop
    abandoned=I64,  # the call to be abandoned, a value of ``runs``
    seen=I64,  # the call that the watcher saw last
    ticks=I32,  # how many times in a row it was the same
    due=I32,  # whether the launch of this thread is being looked at, so that it must not continue
    polled=PTR,  # the record while Python's handlers run
    program=PTR,  # the kernel of the launch while it is looked at
    sampled=I64,  # the number of samples
    samples=PTR,  # room for `SAMPLES` of them
    stack=PTR,  # the stack for signal handlers, if the thread had none
    kept=PTR,  # memory for workers, see `abi.kept_memory`, or null
    next=PTR,
)
"""What is known of one thread. All but the thread itself only read most of it."""

SAMPLE = Struct(counter=I64, state=I64)
"""Where a thread was: the program counter, and a number made of what was in its registers."""

SAMPLES = 256
"""How many samples of a thread are kept."""

LOOK, TAKE_SAMPLE = 1, 2
"""Values of ``poked``: the thread is to look at its slot, or only to keep a sample."""

GOES_ON, INTERRUPTED, ABORTED = range(3)
"""Values of ``stop``: not at all; a handler of Python's raised an exception, which is set; another thread asked for
it."""

FIRST_SYMBOL = "spmd.slots"
"""Where the address of the first slot is."""

_TAKEN = -1  # in ``thread``, while a thread occupies the slot
_SAMPLE_BYTES = 16
_SLOT_BYTES = 256  # larger than a slot, so that neighbours share no cache line
_STACK_BYTES = 64 << 10
_STACK_OFF = 2  # SS_DISABLE
_STACK = Struct(address=PTR, flags=I32, nbytes=I64)  # a stack_t


class ThreadSlotsBuilder:
    """Puts the list of slots into a module, and the functions to find a slot and to run a worker."""

    def __init__(self, module: ir.Module, machine: Machine | None) -> None:
        self.module = module
        self.machine = machine
        self._first = self._variable(FIRST_SYMBOL, PTR, PTR(None))
        self._first.linkage = ""
        self._key = self._variable("spmd.slots.key", I32, I32(0))
        self._libc = {
            name: ir.Function(module, ir.FunctionType(result, arguments), name)
            for name, result, arguments in (
                ("pthread_key_create", I32, [PTR, PTR]),
                ("pthread_getspecific", PTR, [I32]),
                ("pthread_setspecific", I32, [I32, PTR]),
                ("calloc", PTR, [I64, I64]),
                ("sigaltstack", I32, [PTR, PTR]),
                ("syscall", I64, [I64, I64, I64, I64]),
                ("getpid", I32, []),
                ("free", VOID, [PTR]),
            )
        }
        self._claim = self._define_claim()
        self.run = self._define_run()
        self._define_make_key()
        self._define_renew()

    # what others use

    def own(self, builder: ir.IRBuilder) -> ir.Value:
        """The slot of the calling thread, or null; in signal handlers, too."""
        key = builder.load(self._key, typ=I32)
        return builder.call(self._libc["pthread_getspecific"], [key])

    def own_or_new(self, builder: ir.IRBuilder, substitute: ir.Value) -> ir.Value:
        """The slot of the calling thread, claimed if it has none; *substitute*, memory for a slot that no other thread
        sees, if there is no memory for more."""
        own = self.own(builder)
        place = allocate(builder, PTR)
        builder.store(own, place)
        with builder.if_then(_is_null(builder, own), likely=False):
            claimed = builder.call(self._claim, [])
            builder.store(claimed, place)
            with builder.if_then(_is_null(builder, claimed)):
                builder.store(ir.Constant(SLOT.type, None), substitute)
                builder.store(substitute, place)
        return builder.load(place, typ=PTR)

    @contextmanager
    def each(self, builder: ir.IRBuilder) -> Iterator[ir.Value]:
        """A loop over all slots, also free ones. Its body must end in the block in which it begins."""
        place = allocate_at_entry(builder, PTR)
        builder.store(builder.load_atomic(self._first, "acquire", 8, typ=PTR), place)
        head, body, after = (builder.append_basic_block(f"slots.{name}") for name in ("head", "body", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        slot = builder.load(place, typ=PTR)
        builder.cbranch(_is_null(builder, slot), after, body)
        builder.position_at_end(body)
        yield slot
        builder.store(SLOT.load(builder, slot, "next"), place)
        builder.branch(head)
        builder.position_at_end(after)

    def poke(self, builder: ir.IRBuilder, slot: ir.Value, signal: int, what: int = LOOK) -> None:
        """Send *signal* to the thread of *slot*, so that it does *what*. A thread that ended gets none."""
        if self.machine is None:
            return
        SLOT.store_atomic(builder, I32(what), slot, "poked")
        process = builder.zext(builder.call(self._libc["getpid"], []), I64)
        thread = builder.zext(SLOT.load_atomic(builder, slot, "thread"), I64)
        builder.call(self._libc["syscall"], [I64(self.machine.send_signal), process, thread, I64(signal)])

    # claiming

    def _define_claim(self) -> ir.Function:
        """``ptr spmd.slots.claim()``: a slot for the calling thread, or null where there is no memory."""
        function, builder = self._function("spmd.slots.claim", PTR, [])
        found = allocate(builder, PTR, "found")
        builder.store(PTR(None), found)
        with self.each(builder) as slot:
            place = SLOT.field(builder, slot, "thread")
            free = _is_null(builder, builder.load(found, typ=PTR))
            with builder.if_then(free):
                taken = builder.cmpxchg(place, I32(0), I32(_TAKEN), "acq_rel", "monotonic")
                with builder.if_then(builder.extract_value(taken, 1)):
                    builder.store(slot, found)
        with builder.if_then(_is_null(builder, builder.load(found, typ=PTR))):
            builder.store(self._add_slot(builder), found)
        slot = builder.load(found, typ=PTR)
        with builder.if_then(_is_null(builder, slot)):
            builder.ret(slot)
        for name in ("record", "thread_state", "launch", "running"):
            SLOT.store(builder, PTR(None), slot, name)
        SLOT.store(builder, I32(GOES_ON), slot, "stop")
        SLOT.store(builder, I32(0), slot, "due")
        with builder.if_then(_is_null(builder, SLOT.load(builder, slot, "samples"))):
            samples = builder.call(self._libc["calloc"], [I64(SAMPLES), I64(_SAMPLE_BYTES)])
            SLOT.store(builder, samples, slot, "samples")
        self._give_stack(builder, slot)
        builder.call(self._libc["pthread_setspecific"], [builder.load(self._key, typ=I32), slot])
        SLOT.store_atomic(builder, self._thread_number(builder), slot, "thread")
        builder.ret(slot)
        return function

    def _add_slot(self, builder: ir.IRBuilder) -> ir.Value:
        """A new slot, taken, at the front of the list; null where there is no memory."""
        new = builder.call(self._libc["calloc"], [I64(1), I64(_SLOT_BYTES)])
        with builder.if_then(builder.not_(_is_null(builder, new))):
            SLOT.store(builder, I32(_TAKEN), new, "thread")
            again, after = (builder.append_basic_block(f"add.{name}") for name in ("again", "after"))
            builder.branch(again)
            builder.position_at_end(again)
            first = builder.load_atomic(self._first, "acquire", 8, typ=PTR)
            SLOT.store(builder, first, new, "next")
            swapped = builder.cmpxchg(self._first, first, new, "acq_rel", "monotonic")
            builder.cbranch(builder.extract_value(swapped, 1), after, again)
            builder.position_at_end(after)
        return new

    def _give_stack(self, builder: ir.IRBuilder, slot: ir.Value) -> None:
        """A stack for signal handlers, unless the thread has one: a kernel may have overflowed its own."""
        stack = allocate(builder, _STACK.type, "stack")
        builder.call(self._libc["sigaltstack"], [PTR(None), stack])
        off = builder.and_(_STACK.load(builder, stack, "flags"), I32(_STACK_OFF))
        with builder.if_then(builder.icmp_unsigned("!=", off, I32(0))):
            with builder.if_then(_is_null(builder, SLOT.load(builder, slot, "stack"))):
                SLOT.store(builder, builder.call(self._libc["calloc"], [I64(1), I64(_STACK_BYTES)]), slot, "stack")
            address = SLOT.load(builder, slot, "stack")
            with builder.if_then(builder.not_(_is_null(builder, address))):
                _STACK.store(builder, address, stack, "address")
                _STACK.store(builder, I32(0), stack, "flags")
                _STACK.store(builder, I64(_STACK_BYTES), stack, "nbytes")
                builder.call(self._libc["sigaltstack"], [stack, PTR(None)])

    def _define_leave(self) -> ir.Function:
        """``void spmd.slots.leave(slot)``: called at the end of a thread that has a slot."""
        function, builder = self._function("spmd.slots.leave", VOID, [PTR])
        (slot,) = function.args
        stack = allocate(builder, _STACK.type, "stack")
        builder.call(self._libc["sigaltstack"], [PTR(None), stack])
        same = builder.icmp_unsigned("==", _STACK.load(builder, stack, "address"), SLOT.load(builder, slot, "stack"))
        with builder.if_then(same):
            _STACK.store(builder, I32(_STACK_OFF), stack, "flags")
            builder.call(self._libc["sigaltstack"], [stack, PTR(None)])
        builder.call(self._libc["free"], [SLOT.load(builder, slot, "kept")])
        SLOT.store(builder, PTR(None), slot, "kept")
        SLOT.store_atomic(builder, I32(0), slot, "thread")
        builder.ret_void()
        return function

    def _define_make_key(self) -> None:
        """``void spmd.slots.prepare()``: called once, before the first slot is requested."""
        leave = self._define_leave()
        _, builder = self._function("spmd.slots.prepare", VOID, [], "external")
        builder.call(self._libc["pthread_key_create"], [self._key, function_address(leave)])
        builder.ret_void()

    def _define_renew(self) -> None:
        """``void spmd.slots.renew()``: in a forked child, which has no thread but the calling one."""
        _, builder = self._function("spmd.slots.renew", VOID, [], "external")
        own = self.own(builder)
        with self.each(builder) as slot:
            mine = builder.icmp_unsigned("==", slot, own)
            number = builder.select(mine, self._thread_number(builder), I32(0))
            record = builder.select(mine, SLOT.load(builder, slot, "record"), PTR(None))
            SLOT.store(builder, record, slot, "record")
            SLOT.store(builder, number, slot, "thread")
        builder.ret_void()

    def _thread_number(self, builder: ir.IRBuilder) -> ir.Value:
        """The system's number of the calling thread; 1 on machines whose system calls are not known."""
        if self.machine is None:
            return I32(1)
        number = builder.call(self._libc["syscall"], [I64(self.machine.get_thread_id), I64(0), I64(0), I64(0)])
        return builder.trunc(number, I32)

    # running

    def _define_run(self) -> ir.Function:
        """``i64 spmd.run(frame, slot)``: run the worker of *frame*; returns 0 if it was abandoned, else its result."""
        setjmp = ir.Function(self.module, ir.FunctionType(I32, [PTR]), "_setjmp")
        setjmp.attributes.add("returns_twice")
        function, builder = self._function("spmd.run", I64, [PTR, PTR])
        function.attributes.add("noinline")
        frame, slot = function.args
        record = allocate(builder, RECORD.type, "record")
        record_alignment = 16
        builder.block.instructions[-1].align = record_alignment
        outer = SLOT.load(builder, slot, "record")
        RECORD.store(builder, frame, record, "frame")
        RECORD.store(builder, outer, record, "outer")
        RECORD.store(builder, I64(-1), record, "chunk")
        for name in ("memory", "states"):
            RECORD.store_atomic(builder, PTR(None), record, name)
        RECORD.store(builder, SLOT.field(builder, slot, "kept"), record, "kept")
        SLOT.store(builder, FRAME.load(builder, frame, "launch"), slot, "running")
        self._count_run(builder, slot)
        status = builder.call(setjmp, [RECORD.field(builder, record, "place")])
        with builder.if_then(builder.icmp_unsigned("!=", status, I32(0)), likely=False):
            SLOT.store_atomic(builder, RECORD.load(builder, record, "outer"), slot, "record")
            self._count_run(builder, slot)
            builder.call(self._libc["free"], [RECORD.load_atomic(builder, record, "memory")])
            builder.ret(I64(0))
        SLOT.store_atomic(builder, record, slot, "record")
        worker = Callee(FRAME.load(builder, frame, "worker"), WORKER_TYPE)
        ran = builder.call(worker, [frame, RECORD.field(builder, record, "chunk")])
        SLOT.store_atomic(builder, RECORD.load(builder, record, "outer"), slot, "record")
        self._count_run(builder, slot)
        builder.ret(ran)
        return function

    def _count_run(self, builder: ir.IRBuilder, slot: ir.Value) -> None:
        runs = builder.add(SLOT.load_atomic(builder, slot, "runs"), I64(1))
        SLOT.store_atomic(builder, runs, slot, "runs")

    # pieces

    def _variable(self, name: str, kind: ir.Type, value: ir.Constant) -> ir.GlobalVariable:
        variable = ir.GlobalVariable(self.module, kind, name)
        variable.type = PTR
        variable.linkage = "internal"
        variable.initializer = value
        return variable

    def _function(
        self, name: str, result: ir.Type, arguments: list[ir.Type], linkage: str = "internal"
    ) -> tuple[ir.Function, ir.IRBuilder]:
        function = ir.Function(self.module, ir.FunctionType(result, arguments), name)
        if linkage == "internal":
            function.linkage = linkage
        return function, ir.IRBuilder(function.append_basic_block("entry"))


def _is_null(builder: ir.IRBuilder, pointer: ir.Value) -> ir.Value:
    return builder.icmp_unsigned("==", pointer, PTR(None))
