"""The pool: native threads that help the launching thread with its blocks, as LLVM IR.

The launching thread puts its frame in a list with a number of *tickets* and wakes two helpers. Each helper takes a
ticket from the first frame of the list, wakes two more while there are tickets left, runs blocks until none are left,
and waits for the next. The launching thread runs blocks too; when there are none left it withdraws its remaining
tickets, so that it only waits for helpers that have actually begun. Any number of threads can launch at once; a frame
is never touched once its tickets are gone and no helper is active.

An idle helper spins for a few microseconds and then sleeps on a semaphore. Where helpers spin, a launch makes no system
call, and none of its threads finds the lock taken by another: the helpers are told of the frame once the lock is free
again, and count themselves out without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.launch_frame import FRAME, MUTEX, SEMAPHORE
from hip_runtime.drivers.cpu.execution.previous_handlers import POKE
from hip_runtime.drivers.cpu.execution.thread_slots import GOES_ON, SLOT, ThreadSlotsBuilder
from hip_runtime.drivers.cpu.execution.trap_handlers import GRACE, TrapHandlersBuilder
from hip_runtime.drivers.cpu.llvmir import I32, I64, PTR, VOID, Struct, allocate, function_address

SPINS = 200
"""Pauses of the processor, 40 to 140 cycles each, before a waiting thread sleeps."""

PATIENCE = 50_000_000
"""Nanoseconds after which a launching thread that waits for helpers gives handlers of signals a turn."""

_SECOND = 1_000_000_000
_CLOCK_REALTIME = 0
_WAITING = 1 << 30
"""In ``active`` of a frame: the launching thread sleeps until the last helper wakes it."""

_POOL = Struct(
    lock=MUTEX,
    wake=SEMAPHORE,
    first_job=PTR,
    last_job=PTR,
    queued=I32,  # tickets in the list
    sleeping=I32,  # helpers that sleep and that nobody has yet woken
    helpers=I32,
    spinning=I32,  # idle helpers that look at the list once more before they sleep
    joined=I32,  # changes when a frame was put into the list
)
"""All but the last two are only accessed under the lock, but for ``helpers``, which stays as it is."""

_PAUSES = {"x86_64": ("llvm.x86.sse2.pause", []), "aarch64": ("llvm.aarch64.hint", [I32(1)])}


class PoolBuilder:
    """Puts the pool into a module: its state, and functions to start, use and reset it."""

    def __init__(
        self,
        module: ir.Module,
        machine: str,
        slots: ThreadSlotsBuilder,
        traps: TrapHandlersBuilder,
        run_ranges: ir.Function,
    ) -> None:
        self.module = module
        self._run_ranges = run_ranges
        self._slots = slots
        self._traps = traps
        self._pause = _PAUSES.get(machine)
        self._state = ir.GlobalVariable(module, _POOL.type, "spmd.pool")
        self._state.type = PTR
        self._state.linkage = "internal"
        self._state.initializer = ir.Constant(_POOL.type, None)
        self._libc = {
            name: ir.Function(module, ir.FunctionType(result, arguments), name)
            for name, result, arguments in (
                ("pthread_mutex_lock", I32, [PTR]),
                ("pthread_mutex_unlock", I32, [PTR]),
                ("pthread_create", I32, [PTR, PTR, PTR, PTR]),
                ("pthread_detach", I32, [I64]),
                ("sem_init", I32, [PTR, I32, I32]),
                ("sem_wait", I32, [PTR]),
                ("sem_post", I32, [PTR]),
                ("sem_timedwait", I32, [PTR, PTR]),
            )
        }
        self._libc["clock_gettime"] = module.globals["clock_gettime"]
        self.join = self._define_join()
        self.leave = self._define_leave()
        self._define_start()
        self._define_reset()

    def helpers(self, builder: ir.IRBuilder) -> ir.Value:
        """How many helpers a launch may have."""
        return _POOL.load(builder, self._state, "helpers")

    # what the launching thread calls

    def _define_join(self) -> ir.Function:
        """``void join(frame, tickets)``: ask for the help of as many threads."""
        function, builder = self._function("spmd.pool.join", VOID, [PTR, I32])
        frame, tickets = function.args
        FRAME.store(builder, tickets, frame, "tickets")
        FRAME.store(builder, I32(0), frame, "active")
        FRAME.store(builder, PTR(None), frame, "next_job")
        with self._locked(builder):
            first = _POOL.load(builder, self._state, "first_job")
            with builder.if_else(builder.icmp_unsigned("==", first, PTR(None))) as (empty, other):
                with empty:
                    _POOL.store(builder, frame, self._state, "first_job")
                with other:
                    last = _POOL.load(builder, self._state, "last_job")
                    FRAME.store(builder, frame, last, "next_job")
            _POOL.store(builder, frame, self._state, "last_job")
            self._add(builder, "queued", tickets)
            sleepers = self._claim_sleepers(builder)
        builder.atomic_rmw("add", _POOL.field(builder, self._state, "joined"), I32(1), "release")
        self._wake(builder, sleepers)
        builder.ret_void()
        return function

    def _define_leave(self) -> ir.Function:
        """``void leave(frame, slot)``: withdraw the tickets nobody took, and return when no helper touches the frame
        any more. ``slot`` is that of the thread that launched and calls this."""
        abandon = self._define_abandon()
        function, builder = self._function("spmd.pool.leave", VOID, [PTR, PTR])
        frame, slot = function.args
        tickets = builder.load_atomic(FRAME.field(builder, frame, "tickets"), "acquire", 4, typ=I32)
        left = builder.icmp_unsigned("!=", tickets, I32(0))
        with builder.if_then(left), self._locked(builder):
            tickets = FRAME.load(builder, frame, "tickets")
            with builder.if_then(builder.icmp_unsigned("!=", tickets, I32(0))):
                self._unlink(builder, frame)
                self._add(builder, "queued", builder.neg(tickets))
        done = self._spin(builder, FRAME.field(builder, frame, "active"), I32(0), "==")
        with builder.if_then(builder.not_(done)):
            self._sleep_until_left(builder, frame, slot, abandon)
        builder.ret_void()
        return function

    def _sleep_until_left(self, builder: ir.IRBuilder, frame: ir.Value, slot: ir.Value, abandon: ir.Function) -> None:
        builder.call(self._libc["sem_init"], [FRAME.field(builder, frame, "done"), I32(0), I32(0)])
        active = builder.atomic_rmw("or", FRAME.field(builder, frame, "active"), I32(_WAITING), "acq_rel")
        with builder.if_then(builder.icmp_unsigned("!=", active, I32(0))):
            self._wait_patiently(builder, frame, slot, abandon)

    def _wait_patiently(self, builder: ir.IRBuilder, frame: ir.Value, slot: ir.Value, abandon: ir.Function) -> None:
        """Sleep until the helpers are done with *frame*, and run signal handlers in between. If the launch is to end,
        helpers that do not finish their blocks abandon them after a while."""
        time, rounds = allocate(builder, ir.ArrayType(I64, 2), "time"), allocate(builder, I32, "rounds")
        builder.store(I32(0), rounds)
        again, late, ends, after = (
            builder.append_basic_block(f"patiently.{name}") for name in ("again", "late", "ends", "after")
        )
        builder.branch(again)
        builder.position_at_end(again)
        self._store_deadline(builder, time)
        status = builder.call(self._libc["sem_timedwait"], [FRAME.field(builder, frame, "done"), time])
        builder.cbranch(builder.icmp_unsigned("==", status, I32(0)), after, late)
        builder.position_at_end(late)
        goes_on = builder.icmp_unsigned("==", SLOT.load_atomic(builder, slot, "stop"), I32(GOES_ON))
        with builder.if_then(goes_on):
            builder.call(self._traps.poll, [slot])
            builder.branch(again)
        builder.branch(ends)
        builder.position_at_end(ends)
        self._traps.note_end(builder, frame)
        builder.store(builder.add(builder.load(rounds, typ=I32), I32(1)), rounds)
        with builder.if_then(builder.icmp_unsigned(">", builder.load(rounds, typ=I32), I32(GRACE))):
            builder.call(abandon, [frame])
        builder.branch(again)
        builder.position_at_end(after)

    def _store_deadline(self, builder: ir.IRBuilder, place: ir.Value) -> None:
        """`PATIENCE` from now, as a ``timespec``."""
        builder.call(self._libc["clock_gettime"], [I32(_CLOCK_REALTIME), place])
        rest = builder.gep(place, [I64(1)], source_etype=I64)
        sum_ = builder.add(builder.load(rest, typ=I64), I64(PATIENCE))
        builder.store(builder.add(builder.load(place, typ=I64), builder.udiv(sum_, I64(_SECOND))), place)
        builder.store(builder.urem(sum_, I64(_SECOND)), rest)

    def _define_abandon(self) -> ir.Function:
        """``void abandon(frame)``: have all other threads that run blocks of *frame* abandon them."""
        function, builder = self._function("spmd.pool.abandon", VOID, [PTR])
        with self._slots.each(builder) as slot:
            runs = SLOT.load_atomic(builder, slot, "runs")
            same = builder.icmp_unsigned("==", SLOT.load_atomic(builder, slot, "running"), function.args[0])
            inside = builder.icmp_unsigned("!=", SLOT.load_atomic(builder, slot, "record"), PTR(None))
            with builder.if_then(builder.and_(same, inside)):
                SLOT.store_atomic(builder, runs, slot, "abandoned")
                self._slots.poke(builder, slot, POKE)
        builder.ret_void()
        return function

    def _unlink(self, builder: ir.IRBuilder, frame: ir.Value) -> None:
        """Take *frame*, which is in the list, out of it. The lock is held."""
        previous = allocate(builder, PTR)
        builder.store(PTR(None), previous)
        place = allocate(builder, PTR)
        builder.store(_POOL.load(builder, self._state, "first_job"), place)
        head, step, found = (builder.append_basic_block(f"unlink.{name}") for name in ("head", "step", "found"))
        builder.branch(head)
        builder.position_at_end(head)
        job = builder.load(place, typ=PTR)
        builder.cbranch(builder.icmp_unsigned("==", job, frame), found, step)
        builder.position_at_end(step)
        builder.store(job, previous)
        builder.store(FRAME.load(builder, job, "next_job"), place)
        builder.branch(head)
        builder.position_at_end(found)
        before = builder.load(previous, typ=PTR)
        following = FRAME.load(builder, frame, "next_job")
        with builder.if_else(builder.icmp_unsigned("==", before, PTR(None))) as (is_first, is_later):
            with is_first:
                _POOL.store(builder, following, self._state, "first_job")
            with is_later:
                FRAME.store(builder, following, before, "next_job")
        with builder.if_then(builder.icmp_unsigned("==", following, PTR(None))):
            _POOL.store(builder, before, self._state, "last_job")

    # the helpers

    def _define_start(self) -> None:
        """``i32 spmd.start(helpers, share)``: start threads, of which a launch may have *share*; gives how many of them
        there are now."""
        main = self._define_helper()
        function, builder = self._function("spmd.start", I32, [I32] * 2)
        wanted, share = function.args
        identity = allocate(builder, I64)
        started = allocate(builder, I32)
        builder.store(I32(0), started)
        builder.call(self._libc["sem_init"], [_POOL.field(builder, self._state, "wake"), I32(0), I32(0)])
        with builder.if_then(builder.icmp_signed(">", wanted, I32(0))), loop(builder, wanted):
            number = builder.inttoptr(builder.add(builder.load(started, typ=I32), I32(1)), PTR)
            status = builder.call(self._libc["pthread_create"], [identity, PTR(None), function_address(main), number])
            with builder.if_then(builder.icmp_unsigned("==", status, I32(0))):
                builder.call(self._libc["pthread_detach"], [builder.load(identity, typ=I64)])
                builder.store(builder.add(builder.load(started, typ=I32), I32(1)), started)
        total = builder.load(started, typ=I32)
        fewer = builder.icmp_signed("<", share, total)
        _POOL.store(builder, builder.select(fewer, share, total), self._state, "helpers")
        builder.ret(total)

    def _define_reset(self) -> None:
        """``void spmd.reset()``: forget all threads and frames, in a forked child that has neither."""
        _, builder = self._function("spmd.reset", VOID, [])
        builder.store(ir.Constant(_POOL.type, None), self._state)
        builder.ret_void()

    def _define_helper(self) -> ir.Function:
        """``ptr spmd.helper(ptr number)``: the endless loop of a helper with that number, which is no address."""
        function, builder = self._function("spmd.helper", PTR, [PTR])
        number = builder.ptrtoint(function.args[0], I32)
        slot = self._slots.own_or_new(builder, allocate(builder, SLOT.type, "substitute"))
        entry = builder.block
        again, work, idle, sleep, spin = (
            builder.append_basic_block(name) for name in ("again", "work", "idle", "sleep", "spin")
        )
        lock = _POOL.field(builder, self._state, "lock")
        builder.branch(again)
        builder.position_at_end(again)
        tired = builder.phi(ir.IntType(1), name="tired")
        tired.add_incoming(tired.type(0), entry)
        builder.call(self._libc["pthread_mutex_lock"], [lock])
        job = _POOL.load(builder, self._state, "first_job")
        builder.cbranch(builder.icmp_unsigned("!=", job, PTR(None)), work, idle)

        builder.position_at_end(work)
        self._take_ticket(builder, job)
        sleepers = self._claim_sleepers(builder)
        builder.call(self._libc["pthread_mutex_unlock"], [lock])
        self._wake(builder, sleepers)
        builder.call(self._run_ranges, [job, number, slot])
        active = builder.atomic_rmw("sub", FRAME.field(builder, job, "active"), I32(1), "acq_rel")
        with builder.if_then(builder.icmp_unsigned("==", active, I32(_WAITING + 1))):
            builder.call(self._libc["sem_post"], [FRAME.field(builder, job, "done")])
        tired.add_incoming(tired.type(0), builder.block)
        builder.branch(again)

        builder.position_at_end(idle)
        joined = _POOL.load_atomic(builder, self._state, "joined")
        builder.cbranch(tired, sleep, spin)
        builder.position_at_end(sleep)
        self._add(builder, "sleeping", I32(1))
        builder.call(self._libc["pthread_mutex_unlock"], [lock])
        self._wait_for(builder, _POOL.field(builder, self._state, "wake"))
        tired.add_incoming(tired.type(0), builder.block)
        builder.branch(again)

        builder.position_at_end(spin)
        spinning = _POOL.field(builder, self._state, "spinning")
        builder.atomic_rmw("add", spinning, I32(1), "monotonic")
        builder.call(self._libc["pthread_mutex_unlock"], [lock])
        told = self._spin(builder, _POOL.field(builder, self._state, "joined"), joined, "!=")
        # Before the list is looked at: whoever still counts on this helper has put a frame there.
        builder.atomic_rmw("sub", spinning, I32(1), "monotonic")
        tired.add_incoming(builder.not_(told), builder.block)
        builder.branch(again)
        return function

    def _take_ticket(self, builder: ir.IRBuilder, job: ir.Value) -> None:
        """The helper is counted before the ticket is gone: without the lock the launching thread sees either."""
        builder.atomic_rmw("add", FRAME.field(builder, job, "active"), I32(1), "monotonic")
        following = FRAME.load(builder, job, "next_job")
        tickets = builder.atomic_rmw("sub", FRAME.field(builder, job, "tickets"), I32(1), "release")
        self._add(builder, "queued", I32(-1))
        with builder.if_then(builder.icmp_unsigned("==", tickets, I32(1))):
            _POOL.store(builder, following, self._state, "first_job")

    # pieces

    def _function(self, name: str, result: ir.Type, arguments: list[ir.Type]) -> tuple[ir.Function, ir.IRBuilder]:
        function = ir.Function(self.module, ir.FunctionType(result, arguments), name)
        return function, ir.IRBuilder(function.append_basic_block("entry"))

    @contextmanager
    def _locked(self, builder: ir.IRBuilder) -> Iterator[None]:
        lock = _POOL.field(builder, self._state, "lock")
        builder.call(self._libc["pthread_mutex_lock"], [lock])
        yield
        builder.call(self._libc["pthread_mutex_unlock"], [lock])

    def _claim_sleepers(self, builder: ir.IRBuilder) -> ir.Value:
        """How many sleeping helpers the caller has to wake, two at most: for the tickets in the list that no spinning
        helper will take. Each of those woken wakes two more while there are tickets left. The lock is held."""
        spinning = _POOL.load_atomic(builder, self._state, "spinning")
        count = builder.sub(_POOL.load(builder, self._state, "queued"), spinning)
        for limit in (_POOL.load(builder, self._state, "sleeping"), I32(2)):
            count = builder.select(builder.icmp_signed("<", count, limit), count, limit)
        count = builder.select(builder.icmp_signed(">", count, I32(0)), count, I32(0))
        self._add(builder, "sleeping", builder.neg(count))
        return count

    def _wake(self, builder: ir.IRBuilder, sleepers: ir.Value) -> None:
        """Wake as many as `_claim_sleepers` said."""
        for number in range(2):
            with builder.if_then(builder.icmp_signed(">", sleepers, I32(number))):
                builder.call(self._libc["sem_post"], [_POOL.field(builder, self._state, "wake")])

    def _add(self, builder: ir.IRBuilder, name: str, change: ir.Value) -> None:
        """Add to a number of the pool. The lock is held."""
        _POOL.store(builder, builder.add(_POOL.load(builder, self._state, name), change), self._state, name)

    def _wait_for(self, builder: ir.IRBuilder, semaphore: ir.Value) -> None:
        """Sleep on *semaphore*; again if a signal handler ended the sleep."""
        again, after = (builder.append_basic_block(f"wait.{name}") for name in ("again", "after"))
        builder.branch(again)
        builder.position_at_end(again)
        status = builder.call(self._libc["sem_wait"], [semaphore])
        builder.cbranch(builder.icmp_unsigned("==", status, I32(0)), after, again)
        builder.position_at_end(after)

    def _spin(self, builder: ir.IRBuilder, place: ir.Value, value: ir.Value, condition: str) -> ir.Value:
        """Until the word at *place* compares to *value* as wanted, but not for long; returns whether it does."""
        before = builder.block
        head, rest, after = (builder.append_basic_block(f"spin.{name}") for name in ("head", "rest", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        turn = builder.phi(I32)
        turn.add_incoming(I32(0), before)
        word = builder.load_atomic(place, "acquire", 4, typ=I32)
        reached = builder.icmp_unsigned(condition, word, value)
        builder.cbranch(builder.or_(reached, builder.icmp_unsigned("==", turn, I32(SPINS))), after, rest)
        builder.position_at_end(rest)
        if self._pause is not None:
            name, arguments = self._pause
            pause = self.module.globals.get(name)
            if pause is None:
                pause = ir.Function(self.module, ir.FunctionType(VOID, [argument.type for argument in arguments]), name)
            builder.call(pause, arguments)
        turn.add_incoming(builder.add(turn, I32(1)), rest)
        builder.branch(head)
        builder.position_at_end(after)
        return reached


@contextmanager
def loop(builder: ir.IRBuilder, count: ir.Value) -> Iterator[None]:
    """Do the block *count* times; *count* is at least 1."""
    before = builder.block
    body, after = (builder.append_basic_block(f"loop.{name}") for name in ("body", "after"))
    builder.branch(body)
    builder.position_at_end(body)
    turn = builder.phi(count.type)
    turn.add_incoming(count.type(0), before)
    yield
    following = builder.add(turn, count.type(1))
    turn.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_unsigned("<", following, count), body, after)
    builder.position_at_end(after)
