"""The native code that runs one launch: it chooses the size of chunks, and calls helpers where they pay off.

It releases the GIL while blocks run. Between two chunks, once `POLL_NANOSECONDS` have passed, it takes the GIL to run
Python's signal handlers. If one raises, as that of Ctrl-C does, the launch ends: blocks that have begun run to their
end, the others are left out, and the launch raises the exception.

The cost of a block of the same program in its last launch decides whether helpers pay off. A grid that should take at
most `SMALL_GRID_NANOSECONDS` is begun without helpers. If its first blocks take much longer than expected, helpers are
called after all. The first launch of a program always uses helpers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.launch_frame import (
    FAULT_FIELDS,
    FRAME,
    LIMIT_TYPE,
    NO_WORDS,
    PROGRAM,
)
from hip_runtime.drivers.cpu.execution.block_ranges import (
    LAUNCHING_THREAD,
    POLL_NANOSECONDS,
    RangesBuilder,
    divide_blocks,
)
from hip_runtime.drivers.cpu.execution.grid_phases import define_run_phases
from hip_runtime.drivers.cpu.execution.helper_gain import define_choose, define_note
from hip_runtime.drivers.cpu.execution.pool import PoolBuilder
from hip_runtime.drivers.cpu.execution.python_entry import define_entry
from hip_runtime.drivers.cpu.execution.python_signals import define_poll
from hip_runtime.drivers.cpu.execution.signal_frames import this_machine
from hip_runtime.drivers.cpu.execution.thread_slots import GOES_ON, INTERRUPTED, SLOT, ThreadSlotsBuilder
from hip_runtime.drivers.cpu.execution.trap_handlers import TrapHandlersBuilder
from hip_runtime.drivers.cpu.execution.watcher import WatcherBuilder
from hip_runtime.drivers.cpu.llvmir import I1, I8, I32, I64, PTR, VOID, Callee, allocate

SMALL_GRID_NANOSECONDS = 10_000
"""Nanoseconds of work below which waking another thread costs more than it brings."""

HELPED_NANOSECONDS = 5_000
"""Nanoseconds of work that each helper should have: asking it, and waiting until it has left, takes a part of them."""

FIRST_BLOCKS = 16
"""Blocks at most that are run before it is decided whether a launch goes on without help."""

FIRST_CHUNKS = 1 << 16
"""Into how many chunks the blocks of a launch are divided where the program never ran: its blocks may take any time,
and only between chunks does a launch end. Taking that many costs a millisecond, less than compiling did."""

_CLOCK_MONOTONIC = 1
PYTHON_FUNCTIONS = {
    "PyEval_SaveThread": ir.FunctionType(PTR, []),
    "PyEval_RestoreThread": ir.FunctionType(VOID, [PTR]),
    "PyErr_CheckSignals": ir.FunctionType(I32, []),
    "PyObject_CallNoArgs": ir.FunctionType(PTR, [PTR]),
    "Py_DecRef": ir.FunctionType(VOID, [PTR]),
}
"""Functions of Python's C API: to let go of the lock, to take it, to run the handlers of signals that have come, to
call an object and to let go of what it gives."""

FAULT_RECORD = struct.Struct(f"{len(FAULT_FIELDS)}i")
_DOUBLE = ir.DoubleType()


def build_dispatch(machine: str) -> ir.Module:
    """A module with ``ptr dispatch(ptr program, ptr arguments, i32 x, i32 y, i32 z)``, its entry for Python, and the
    pool, for the processor *machine*. The result is null, or a fault to read and free."""
    module = ir.Module(name="spmd.dispatcher")
    python = {name: ir.Function(module, kind, name) for name, kind in PYTHON_FUNCTIONS.items()}
    slots = ThreadSlotsBuilder(module, this_machine())
    traps = TrapHandlersBuilder(module, this_machine(), slots, define_poll(module, python))
    now = _define_now(module)
    ranges = RangesBuilder(module, now, slots, traps)
    pool = PoolBuilder(module, machine, slots, traps, ranges.run)
    WatcherBuilder(module, slots)
    run_grid = _define_run_grid(module, now, slots, pool, ranges)
    run_phases = define_run_phases(module, now, run_grid, ranges)
    dispatch = ir.Function(module, ir.FunctionType(PTR, [PTR, PTR, I32, I32, I32]), "spmd.dispatch")
    builder = ir.IRBuilder(dispatch.append_basic_block("entry"))
    program, arguments, *grid = dispatch.args
    frame = allocate(builder, FRAME.type, "frame")
    count = _fill_frame(builder, frame, program, arguments, grid)
    slot = slots.own_or_new(builder, allocate(builder, SLOT.type, "substitute"))
    words = PROGRAM.load(builder, program, "words")
    waits = builder.icmp_signed("!=", words, I32(NO_WORDS))
    with _launching(builder, slot, frame, python) as stop, builder.if_else(waits, likely=False) as (phases, once):
        with phases:
            place = builder.gep(arguments, [words], source_etype=I8)
            builder.call(run_phases, [program, frame, count, slot, builder.load(place, align=1, typ=PTR)])
        with once:
            builder.call(run_grid, [program, frame, count, slot])
    with builder.if_then(builder.icmp_unsigned("==", builder.load(stop, typ=I32), I32(INTERRUPTED))):
        builder.ret(PTR(None))  # the exception is set, and ctypes raises it
    _return_fault(module, builder, frame)
    define_entry(module, dispatch)
    return module


@contextmanager
def _launching(
    builder: ir.IRBuilder, slot: ir.Value, frame: ir.Value, python: dict[str, ir.Function]
) -> Iterator[ir.Value]:
    """Release the GIL while the thread of *slot* runs the launch of *frame*; returns where that records why it ended
    early. A Python signal handler may launch during another launch, so the previous contents of the slot are
    restored."""
    outer = {name: SLOT.load(builder, slot, name) for name in ("launch", "thread_state", "stop")}
    SLOT.store(builder, frame, slot, "launch")
    SLOT.store_atomic(builder, I32(GOES_ON), slot, "stop")
    SLOT.store(builder, builder.call(python["PyEval_SaveThread"], []), slot, "thread_state")
    stop = allocate(builder, I32, "stop")
    yield stop
    builder.call(python["PyEval_RestoreThread"], [SLOT.load(builder, slot, "thread_state")])
    builder.store(SLOT.load_atomic(builder, slot, "stop"), stop)
    for name, value in outer.items():
        SLOT.store(builder, value, slot, name)


def _fill_frame(
    builder: ir.IRBuilder, frame: ir.Value, program: ir.Value, arguments: ir.Value, grid: list[ir.Value]
) -> ir.Value:
    count = I64(1)
    for number, extent in enumerate(grid):
        FRAME.store(builder, extent, frame, "grid", number)
        count = builder.mul(count, builder.zext(extent, I64))
    FRAME.store(builder, I64(0), frame, "next_block")
    FRAME.store(builder, I32(0), frame, "fault_taken")
    FRAME.store(builder, count, frame, "block_count")
    FRAME.store(builder, frame, frame, "launch")
    FRAME.store(builder, arguments, frame, "arguments")
    FRAME.store(builder, program, frame, "program")
    FRAME.store(builder, PROGRAM.load(builder, program, "worker"), frame, "worker")
    return _limit_blocks(builder, frame, program, count)


def _limit_blocks(builder: ir.IRBuilder, frame: ir.Value, program: ir.Value, count: ir.Value) -> ir.Value:
    """How many of the *count* blocks of a launch have to run, which *frame* gets."""
    limit = PROGRAM.load(builder, program, "limit")
    before = builder.block
    with builder.if_then(builder.icmp_unsigned("!=", limit, PTR(None))):
        fewer = builder.call(Callee(limit, LIMIT_TYPE), [frame])
        FRAME.store(builder, fewer, frame, "block_count")
        inside = builder.block
    found = builder.phi(I64)
    found.add_incoming(count, before)
    found.add_incoming(fewer, inside)
    return found


def _define_now(module: ir.Module) -> ir.Function:
    """``i64 now()``: nanoseconds of a clock that only goes forward."""
    clock = ir.Function(module, ir.FunctionType(I32, [I32, PTR]), "clock_gettime")
    now = ir.Function(module, ir.FunctionType(I64, []), "spmd.now")
    now.linkage = "internal"
    builder = ir.IRBuilder(now.append_basic_block("entry"))
    time = allocate(builder, ir.ArrayType(I64, 2))
    builder.call(clock, [I32(_CLOCK_MONOTONIC), time])
    seconds = builder.load(time, typ=I64)
    rest = builder.load(builder.gep(time, [I64(1)], source_etype=I64), typ=I64)
    builder.ret(builder.add(builder.mul(seconds, I64(1_000_000_000)), rest))
    return now


def _define_run_grid(
    module: ir.Module, now: ir.Function, slots: ThreadSlotsBuilder, pool: PoolBuilder, ranges: RangesBuilder
) -> ir.Function:
    """``void run_grid(program, frame, count, slot)``: run each block of a grid of *count* blocks once."""
    run_small_grid = _define_run_small_grid(module, now, slots)
    gain = define_choose(module), define_note(module)
    run_with_helpers = _define_run_with_helpers(module, now, pool, ranges.run, gain)
    function = ir.Function(module, ir.FunctionType(VOID, [PTR, PTR, I64, PTR]), "spmd.run_grid")
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    program, frame, count, slot = function.args
    with builder.if_else(builder.icmp_unsigned("==", count, I64(1))) as (one, many):
        with one:
            builder.call(slots.run, [frame, slot])
        with many:
            done = builder.call(run_small_grid, [program, frame, count, slot])
            with builder.if_then(builder.icmp_unsigned("==", done, I1(0))):
                builder.call(run_with_helpers, [program, frame, count, slot])
    builder.ret_void()
    return function


def _define_run_small_grid(module: ir.Module, now: ir.Function, slots: ThreadSlotsBuilder) -> ir.Function:
    """``i1 run_small_grid(program, frame, count, slot)``: run a grid that should be cheap; 0 if it is not, and some of
    its blocks are left."""
    false, true = I1(0), I1(1)
    function = ir.Function(module, ir.FunctionType(true.type, [PTR, PTR, I64, PTR]), "spmd.run_small_grid")
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    program, frame, count, slot = function.args
    cost = builder.load_atomic(PROGRAM.field(builder, program, "cost"), "monotonic", 8, typ=_DOUBLE)
    expected = builder.fmul(cost, builder.uitofp(count, _DOUBLE))
    cheap = builder.and_(
        builder.fcmp_ordered(">=", cost, _DOUBLE(0.0)),
        builder.fcmp_ordered("<=", expected, _DOUBLE(float(SMALL_GRID_NANOSECONDS))),
    )
    with builder.if_then(builder.not_(cheap)):
        builder.ret(false)
    start = builder.call(now, [])
    first = _minimum(builder, builder.udiv(builder.add(count, I64(3)), I64(4)), I64(FIRST_BLOCKS))
    FRAME.store(builder, first, frame, "block_count")
    builder.call(slots.run, [frame, slot])
    FRAME.store(builder, first, frame, "next_block")
    FRAME.store(builder, count, frame, "block_count")
    middle = builder.call(now, [])
    # Were all like the first ones, would it take four times as long as it may?
    projected = builder.mul(builder.sub(middle, start), builder.sdiv(count, first))
    with builder.if_then(builder.icmp_unsigned(">", projected, I64(4 * SMALL_GRID_NANOSECONDS))):
        builder.ret(false)
    builder.call(slots.run, [frame, slot])
    _store_cost(builder, program, builder.sub(builder.call(now, []), start), count)
    builder.ret(true)
    return function


def _define_run_with_helpers(
    module: ir.Module, now: ir.Function, pool: PoolBuilder, run_ranges: ir.Function,
    gain: tuple[ir.Function, ir.Function],
) -> ir.Function:  # fmt: skip
    """``void run_with_helpers(program, frame, count, slot)``: run the rest of a grid with the pool's help."""
    function = ir.Function(module, ir.FunctionType(VOID, [PTR, PTR, I64, PTR]), "spmd.run_with_helpers")
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    program, frame, count, slot = function.args
    left = builder.sub(count, FRAME.load(builder, frame, "next_block"))
    helpers = builder.zext(pool.helpers(builder), I64)
    serial = builder.icmp_unsigned("!=", PROGRAM.load(builder, program, "serial"), I32(0))
    helpers = builder.select(serial, I64(0), _worthwhile(builder, program, left, helpers))
    choose, note = gain
    wanted, is_known = helpers, _load_cost(builder, program)[1]
    helpers = builder.call(choose, [program, left, wanted])
    began = builder.call(now, [])
    chunk = _choose_chunk(builder, program, frame, left, builder.add(helpers, I64(1)))
    FRAME.store(builder, chunk, frame, "chunk")
    chunks = builder.udiv(builder.sub(builder.add(left, chunk), I64(1)), chunk)
    # One less than there are chunks: the calling thread takes one too.
    others = _minimum(builder, builder.sub(chunks, I64(1)), helpers)
    divide_blocks(builder, frame, builder.add(others, I64(1)), chunks)
    helped = builder.icmp_signed(">", others, I64(0))
    with builder.if_then(helped):
        builder.call(pool.join, [frame, builder.trunc(others, I32)])
    FRAME.store(builder, I64(0), frame, "spent_on")
    builder.call(run_ranges, [frame, LAUNCHING_THREAD, slot])
    spent_on = FRAME.load(builder, frame, "spent_on")
    with builder.if_then(builder.icmp_unsigned("!=", spent_on, I64(0))):
        _store_cost(builder, program, FRAME.load(builder, frame, "spent"), spent_on)
    with builder.if_then(helped):
        builder.call(pool.leave, [frame, slot])
    could_help = builder.icmp_signed(">", wanted, I64(0))
    with builder.if_then(builder.and_(could_help, is_known)):
        builder.call(note, [program, left, others, builder.sub(builder.call(now, []), began)])
    builder.ret_void()
    return function


def _worthwhile(builder: ir.IRBuilder, program: ir.Value, left: ir.Value, helpers: ir.Value) -> ir.Value:
    """How many of *helpers* to ask for *left* blocks: each should have `HELPED_NANOSECONDS` of work."""
    cost, known = _load_cost(builder, program)
    each = _blocks_in(builder, cost, HELPED_NANOSECONDS, left)
    parts = builder.udiv(left, _maximum(builder, each, I64(1)))
    return builder.select(known, _minimum(builder, parts, helpers), helpers)


def _choose_chunk(
    builder: ir.IRBuilder, program: ir.Value, frame: ir.Value, left: ir.Value, threads: ir.Value
) -> ir.Value:
    """The number of blocks of a chunk: a part of the remaining ones, at most what should take `POLL_NANOSECONDS`, but
    whole gangs: threads of half a gang take as long as those of a whole one, or longer."""
    cost, known = _load_cost(builder, program)
    parts = PROGRAM.load(builder, program, "parts")
    chunk = builder.udiv(left, builder.mul(threads, builder.zext(parts, I64)))
    chunk = _blocks_in(builder, cost, POLL_NANOSECONDS, chunk)
    chunk = builder.select(known, chunk, builder.udiv(left, I64(FIRST_CHUNKS)))
    together = _blocks_together(builder, program, frame)
    return _maximum(builder, builder.sub(chunk, builder.urem(chunk, together)), together)


def _blocks_together(builder: ir.IRBuilder, program: ir.Value, frame: ir.Value) -> ir.Value:
    """How many blocks gangs reach over, if the grid has as many along their axis."""
    axis = PROGRAM.load(builder, program, "axis")
    extent = FRAME.load(builder, frame, "grid", 0)
    for number in (1, 2):
        is_along = builder.icmp_unsigned("==", axis, I32(number))
        extent = builder.select(is_along, FRAME.load(builder, frame, "grid", number), extent)
    return builder.zext(_minimum(builder, PROGRAM.load(builder, program, "together"), extent), I64)


def _load_cost(builder: ir.IRBuilder, program: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The nanoseconds that a block of *program* takes, and whether they are known."""
    cost = builder.load_atomic(PROGRAM.field(builder, program, "cost"), "monotonic", 8, typ=_DOUBLE)
    return cost, builder.fcmp_ordered(">", cost, _DOUBLE(0.0))


def _blocks_in(builder: ir.IRBuilder, cost: ir.Value, nanoseconds: int, most: ir.Value) -> ir.Value:
    """How many blocks that take *cost* each are run in *nanoseconds*, *most* at most."""
    count = builder.fdiv(_DOUBLE(float(nanoseconds)), cost)
    fewer = builder.fcmp_ordered("<", count, builder.uitofp(most, _DOUBLE))
    positive = builder.fcmp_ordered(">", count, _DOUBLE(0.0))
    count = builder.select(builder.and_(fewer, positive), count, _DOUBLE(0.0))
    return builder.select(fewer, builder.fptoui(count, I64), most)


def _store_cost(builder: ir.IRBuilder, program: ir.Value, time: ir.Value, blocks: ir.Value) -> None:
    cost = builder.fdiv(builder.uitofp(time, _DOUBLE), builder.uitofp(blocks, _DOUBLE))
    builder.atomic_rmw("xchg", PROGRAM.field(builder, program, "cost"), cost, "monotonic")


def _minimum(builder: ir.IRBuilder, one: ir.Value, other: ir.Value) -> ir.Value:
    return builder.select(builder.icmp_signed("<", one, other), one, other)


def _maximum(builder: ir.IRBuilder, one: ir.Value, other: ir.Value) -> ir.Value:
    return builder.select(builder.icmp_signed(">", one, other), one, other)


def _return_fault(module: ir.Module, builder: ir.IRBuilder, frame: ir.Value) -> None:
    malloc = ir.Function(module, ir.FunctionType(PTR, [I64]), "malloc")
    with builder.if_then(builder.icmp_unsigned("!=", FRAME.load(builder, frame, "fault_taken"), I32(0))):
        record = builder.call(malloc, [I64(FAULT_RECORD.size)])
        for number in range(len(FAULT_FIELDS)):
            value = FRAME.load(builder, frame, "fault", number)
            builder.store(value, builder.gep(record, [I32(number)], source_etype=I32))
        builder.ret(record)
    builder.ret(PTR(None))
