"""The pool: native threads that help the launching thread with its blocks, as LLVM IR.

The launching thread posts its frame on a board (`job_board`) with a number of *tickets*, and wakes two helpers if too
few are awake. Each helper takes a ticket, wakes two more if there are tickets left for them, runs blocks until none are
left, and waits for the next. The launching thread runs blocks too; when there are none left it withdraws its
remaining tickets, so that it only waits for helpers that have actually begun. Any number of threads can launch at once;
a frame is never touched once its tickets are gone and no helper is active.

An idle helper spins for a few microseconds and then sleeps on a semaphore: it counts itself among those that sleep, and
looks at the board once more. A launching thread posts first and counts those that sleep then, so one of them sees the
other. Where helpers spin, a launch makes no system call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.launch_frame import FRAME, SEMAPHORE
from hip_runtime.drivers.cpu.execution.job_board import BoardBuilder
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
_WOKEN = 2
"""Helpers that a thread wakes at a time: each takes a system call."""

_WAITING = 1 << 30
"""In ``active`` of a frame: the launching thread sleeps until the last helper wakes it."""

_POOL = Struct(
    wake=SEMAPHORE,
    sleeping=I32,  # helpers that sleep, or are about to, and that nobody has yet woken
    helpers=I32,  # that a launch may have
    started=I32,
)
"""The last two stay as they are."""

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
                ("pthread_create", I32, [PTR, PTR, PTR, PTR]),
                ("pthread_detach", I32, [I64]),
                ("sem_init", I32, [PTR, I32, I32]),
                ("sem_wait", I32, [PTR]),
                ("sem_post", I32, [PTR]),
                ("sem_timedwait", I32, [PTR, PTR]),
            )
        }
        self._libc["clock_gettime"] = module.globals["clock_gettime"]
        self._board = BoardBuilder(module)
        self._claim_sleepers = self._define_claim_sleepers()
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
        FRAME.store(builder, tickets, frame, "wanted")
        FRAME.store(builder, I32(0), frame, "active")
        place = builder.call(self._board.post, [frame, tickets])
        FRAME.store(builder, place, frame, "place")
        with builder.if_then(builder.icmp_unsigned("!=", place, PTR(None))):
            self._wake_for(builder, frame)
        builder.ret_void()
        return function

    def _define_leave(self) -> ir.Function:
        """``void leave(frame, slot)``: withdraw the tickets nobody took, and return when no helper touches the frame
        any more. ``slot`` is that of the thread that launched and calls this."""
        abandon = self._define_abandon()
        function, builder = self._function("spmd.pool.leave", VOID, [PTR, PTR])
        frame, slot = function.args
        place = FRAME.load(builder, frame, "place")
        with builder.if_then(builder.icmp_unsigned("==", place, PTR(None)), likely=False):
            builder.ret_void()
        wanted = FRAME.load(builder, frame, "wanted")
        joined = builder.sub(wanted, builder.call(self._board.withdraw, [place]))
        builder.atomic_rmw("add", FRAME.field(builder, frame, "active"), joined, "acq_rel")
        done = self._spin(builder, lambda: self._are_gone(builder, frame))
        with builder.if_then(builder.not_(done)):
            self._sleep_until_left(builder, frame, slot, abandon)
        self._board.free(builder, place)
        builder.ret_void()
        return function

    def _are_gone(self, builder: ir.IRBuilder, frame: ir.Value) -> ir.Value:
        """Whether no helper is active; what they did is done."""
        active = builder.load_atomic(FRAME.field(builder, frame, "active"), "acquire", 4, typ=I32)
        return builder.icmp_unsigned("==", active, I32(0))

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
        _POOL.store(builder, total, self._state, "started")
        fewer = builder.icmp_signed("<", share, total)
        _POOL.store(builder, builder.select(fewer, share, total), self._state, "helpers")
        builder.ret(total)

    def _define_reset(self) -> None:
        """``void spmd.reset()``: forget all threads and frames, in a forked child that has neither."""
        _, builder = self._function("spmd.reset", VOID, [])
        builder.store(ir.Constant(_POOL.type, None), self._state)
        self._board.clear(builder)
        builder.ret_void()

    def _define_helper(self) -> ir.Function:
        """``ptr spmd.helper(ptr number)``: the endless loop of a helper with that number, which is no address."""
        function, builder = self._function("spmd.helper", PTR, [PTR])
        number = builder.ptrtoint(function.args[0], I32)
        slot = self._slots.own_or_new(builder, allocate(builder, SLOT.type, "substitute"))
        left, place = (allocate(builder, I32, name) for name in ("left", "place"))
        builder.store(I32(0), place)
        look, work, idle, tired, sleep = (
            builder.append_basic_block(name) for name in ("look", "work", "idle", "tired", "sleep")
        )
        builder.branch(look)
        builder.position_at_end(look)
        job = builder.call(self._board.take, [left, place])
        builder.cbranch(builder.icmp_unsigned("!=", job, PTR(None)), work, idle)

        builder.position_at_end(work)
        with builder.if_then(builder.icmp_unsigned("!=", builder.load(left, typ=I32), I32(0))):
            self._wake_for(builder, job)
        builder.call(self._run_ranges, [job, number, slot])
        active = builder.atomic_rmw("sub", FRAME.field(builder, job, "active"), I32(1), "acq_rel")
        with builder.if_then(builder.icmp_unsigned("==", active, I32(_WAITING + 1))):
            builder.call(self._libc["sem_post"], [FRAME.field(builder, job, "done")])
        builder.branch(look)

        builder.position_at_end(idle)
        told = self._spin(builder, lambda: builder.call(self._board.has_tickets, []))
        builder.cbranch(told, look, tired)
        builder.position_at_end(tired)
        builder.atomic_rmw("add", _POOL.field(builder, self._state, "sleeping"), I32(1), "seq_cst")
        with builder.if_then(builder.call(self._board.has_tickets, []), likely=False):
            # Unless somebody wakes this helper, or another one that sleeps.
            claimed = builder.call(self._claim_sleepers, [I32(1)])
            builder.cbranch(builder.icmp_unsigned("!=", claimed, I32(0)), look, sleep)
        builder.branch(sleep)
        builder.position_at_end(sleep)
        self._wait_for(builder, _POOL.field(builder, self._state, "wake"))
        builder.branch(look)
        return function

    # pieces

    def _function(self, name: str, result: ir.Type, arguments: list[ir.Type]) -> tuple[ir.Function, ir.IRBuilder]:
        function = ir.Function(self.module, ir.FunctionType(result, arguments), name)
        return function, ir.IRBuilder(function.append_basic_block("entry"))

    def _define_claim_sleepers(self) -> ir.Function:
        """``i32 claim_sleepers(wanted)``: have so many of those that sleep count as awake, two at most; gives how many
        these are, which the caller has to wake."""
        function, builder = self._function("spmd.pool.claim_sleepers", I32, [I32])
        function.linkage = "internal"
        place = _POOL.field(builder, self._state, "sleeping")
        again, claim, done = (builder.append_basic_block(name) for name in ("again", "claim", "done"))
        builder.branch(again)
        builder.position_at_end(again)
        sleeping = builder.load_atomic(place, "monotonic", 4, typ=I32)
        count: ir.Value = function.args[0]
        for limit in (sleeping, I32(_WOKEN)):
            count = builder.select(builder.icmp_signed("<", count, limit), count, limit)
        builder.cbranch(builder.icmp_signed(">", count, I32(0)), claim, done)
        builder.position_at_end(claim)
        pair = builder.cmpxchg(place, sleeping, builder.sub(sleeping, count), "acq_rel", "monotonic")
        with builder.if_then(builder.extract_value(pair, 1)):
            builder.ret(count)
        builder.branch(again)
        builder.position_at_end(done)
        builder.ret(I32(0))
        return function

    def _wake_for(self, builder: ir.IRBuilder, frame: ir.Value) -> None:
        """Wake helpers, two at most, if *frame* wants more than are awake. Whoever takes one of its tickets does so,
        too, while others are left."""
        sleeping = builder.load_atomic(_POOL.field(builder, self._state, "sleeping"), "seq_cst", 4, typ=I32)
        awake = builder.sub(_POOL.load(builder, self._state, "started"), sleeping)
        wanted = builder.sub(FRAME.load(builder, frame, "wanted"), awake)
        count = builder.call(self._claim_sleepers, [wanted])
        for number in range(_WOKEN):
            with builder.if_then(builder.icmp_signed(">", count, I32(number)), likely=False):
                builder.call(self._libc["sem_post"], [_POOL.field(builder, self._state, "wake")])

    def _wait_for(self, builder: ir.IRBuilder, semaphore: ir.Value) -> None:
        """Sleep on *semaphore*; again if a signal handler ended the sleep."""
        again, after = (builder.append_basic_block(f"wait.{name}") for name in ("again", "after"))
        builder.branch(again)
        builder.position_at_end(again)
        status = builder.call(self._libc["sem_wait"], [semaphore])
        builder.cbranch(builder.icmp_unsigned("==", status, I32(0)), after, again)
        builder.position_at_end(after)

    def _spin(self, builder: ir.IRBuilder, is_reached: Callable[[], ir.Value]) -> ir.Value:
        """Until what *is_reached* writes is true, but not for long; returns whether it is."""
        before = builder.block
        head, rest, after = (builder.append_basic_block(f"spin.{name}") for name in ("head", "rest", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        turn = builder.phi(I32)
        turn.add_incoming(I32(0), before)
        reached = is_reached()
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
