"""The detector: it compares each event with the earlier accesses of the same memory.

`note` is called by the code of a kernel, on the single thread that runs it. Numba compiles it for the processor.
`happens_before` decides what happens before what.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import carray, cfunc, njit, types

from hip_runtime.drivers.cpu.llvm_context import LlvmContext
from hip_runtime.drivers.cpu.object_code.jit import compile_module, locked
from hip_runtime.drivers.cpu.object_code.own_code import load_or_make
from hip_runtime.drivers.cpu.object_code.program import Program
from numba_hip._numba.identity import load_extensions
from numba_hip._numba.runtime import provide_runtime
from numba_hip.abi import race_records
from numba_hip.abi.race_records import (
    CELL_WORDS,
    COPIES,
    EVENT_MASK,
    FINDING_ROOM,
    FINDING_WORDS,
    HAS_VALUE,
    INNER,
    INTERVAL_WORDS,
    ONLY_READS,
    READERS,
    SHARED_ARRAYS,
    SHARED_WORDS,
    SITE_BITS,
    BlockWord,
    CellWord,
    EventCode,
    FindingWord,
    Header,
    IntervalWord,
    Relation,
    SharedWord,
    ThreadWord,
)
from numba_hip.races import happens_before, raw_memory
from numba_hip.races.happens_before import (
    enter_block,
    fence,
    find_block,
    find_thread,
    is_ordered,
    learn,
    leave_wave_operation,
    pass_barrier,
    pass_grid_barrier,
    relate,
    release,
)
from numba_hip.races.raw_memory import peek_byte, poke_byte

NOTE = types.void(types.CPointer(types.int64), *[types.int64] * 7)
"""Arena, event with its flags, site, address, bytes, value, block and thread."""

_SYMBOL = "numba_hip.races.note"
_SOURCES = tuple(Path(file) for file in (__file__, happens_before.__file__, raw_memory.__file__, race_records.__file__))
"""What `note` is compiled from."""

_WHOLE = 1 << 60
_NOWHERE = -(1 << 30)
_REPORTED_NEW, _REPORTED_WRITER, _REPORTED_ATOMIC, _REPORTED_READER = 1, 2, 4, 8


class AccessRecord(NamedTuple):
    """An access of *nbytes* bytes: ``kind`` is its event, ``flags`` that with all flags, ``who`` thread and site."""

    kind: int
    flags: int
    who: int
    address: int
    nbytes: int
    value: int
    block: int
    thread: int


class Where(NamedTuple):
    """The accessed memory: the number of the interval, or a negative one for a shared array; its first address, the
    position of its cells, since when it is valid, where its written bytes are tracked, and the site of a shared
    array."""

    number: int
    start: int
    cells: int
    since: int
    written: int
    site: int


@njit
def _add_shared(arena: Any, block: int, block_place: int, start: int, nbytes: int, site: int) -> None:
    """Record the address of a shared array of the block, unless it is known."""
    slot = block if arena[Header.COOPERATIVE] else 0
    table = arena[Header.SHARED_RANGES] + slot * SHARED_ARRAYS * SHARED_WORDS
    count = arena[block_place + BlockWord.SHARED_COUNT]
    for number in range(count):
        entry = table + number * SHARED_WORDS
        if arena[entry + SharedWord.START] == start and arena[entry + SharedWord.END] >= start + nbytes:
            return
    granules = (nbytes >> arena[Header.GRANULE_SHIFT]) + 2
    used = arena[block_place + BlockWord.SHARED_GRANULES]
    if count == SHARED_ARRAYS or used + granules > arena[Header.SHARED_ROOM]:
        return
    entry = table + count * SHARED_WORDS
    arena[entry + SharedWord.START] = start
    arena[entry + SharedWord.END] = start + nbytes
    arena[entry + SharedWord.CELLS] = (
        arena[Header.SHARED_CELLS] + (slot * arena[Header.SHARED_ROOM] + used) * CELL_WORDS
    )
    arena[entry + SharedWord.SITE] = site
    arena[block_place + BlockWord.SHARED_COUNT] = count + 1
    arena[block_place + BlockWord.SHARED_GRANULES] = used + granules


@njit
def _find_interval(arena: Any, address: int) -> Any:
    """The position of the interval that *address* is in, or -1."""
    place = arena[Header.LAST_INTERVAL]
    if place and arena[place + IntervalWord.START] <= address < arena[place + IntervalWord.END]:
        return place
    low, high = 0, arena[Header.INTERVAL_COUNT]
    while low < high:
        middle = (low + high) >> 1
        if arena[arena[Header.INTERVALS] + middle * INTERVAL_WORDS + IntervalWord.END] <= address:
            low = middle + 1
        else:
            high = middle
    place = arena[Header.INTERVALS] + low * INTERVAL_WORDS
    if low == arena[Header.INTERVAL_COUNT] or address < arena[place + IntervalWord.START]:
        return -1
    arena[Header.LAST_INTERVAL] = place
    return place


@njit
def _report(
    arena: Any, access: AccessRecord, where: Where, first_event: int, first: int, relation: int, same: int
) -> None:
    """Count a finding under its two sites, kinds and relation; the first of each is kept as it is."""
    mask = (1 << SITE_BITS) - 1
    mixed = ((first & mask) * 31 + (access.who & mask)) * 31 + first_event * 7 + access.kind * 3 + relation * 2 + same
    slot = mixed % FINDING_ROOM
    while True:
        entry = arena[Header.FINDINGS] + slot * FINDING_WORDS
        if arena[entry + FindingWord.COUNT] == 0:
            break
        if (
            arena[entry + FindingWord.FIRST_EVENT] == first_event
            and arena[entry + FindingWord.SECOND_EVENT] == access.kind
            and arena[entry + FindingWord.FIRST] & mask == first & mask
            and arena[entry + FindingWord.SECOND] & mask == access.who & mask
            and arena[entry + FindingWord.RELATION] == relation
            and arena[entry + FindingWord.SAME_VALUE] == same
        ):
            arena[entry + FindingWord.COUNT] += 1
            return
        slot = (slot + 1) % FINDING_ROOM
    if arena[Header.FINDING_COUNT] * 2 > FINDING_ROOM:
        arena[Header.LOST] += 1
        return
    arena[Header.FINDING_COUNT] += 1
    arena[entry + FindingWord.FIRST_EVENT] = first_event
    arena[entry + FindingWord.SECOND_EVENT] = access.kind
    arena[entry + FindingWord.FIRST] = first
    arena[entry + FindingWord.SECOND] = access.who
    arena[entry + FindingWord.RELATION] = relation
    arena[entry + FindingWord.ADDRESS] = access.address
    arena[entry + FindingWord.BYTES] = access.nbytes
    arena[entry + FindingWord.WHERE] = where.number
    arena[entry + FindingWord.OFFSET] = access.address - where.start
    arena[entry + FindingWord.SAME_VALUE] = same
    arena[entry + FindingWord.SHARED_SITE] = where.site
    arena[entry + FindingWord.COUNT] = 1


@njit
def _add_reader(arena: Any, cell: int, who: int, time: int) -> None:
    """Record *who* as the last reader. The others that are kept are the last of another thread, wave and block."""
    first = cell + CellWord.READER
    before, before_time = arena[first], arena[first + 1]
    arena[first], arena[first + 1] = who, time
    if before == 0 or before >> SITE_BITS == who >> SITE_BITS:
        return
    arena[first + 2], arena[first + 3] = before, before_time
    relation = relate(arena, before, who)
    if relation != Relation.WAVE:
        arena[first + 4], arena[first + 5] = before, before_time
    if relation == Relation.GRID:
        arena[first + 6], arena[first + 7] = before, before_time


@njit
def _locate(arena: Any, address: int, block: int, block_place: int) -> Where:
    """The memory that *address* is in; `_NOWHERE` for what is private to a thread, or not the device's."""
    slot = block if arena[Header.COOPERATIVE] else 0
    table = arena[Header.SHARED_RANGES] + slot * SHARED_ARRAYS * SHARED_WORDS
    for number in range(arena[block_place + BlockWord.SHARED_COUNT]):
        entry = table + number * SHARED_WORDS
        if arena[entry + SharedWord.START] <= address < arena[entry + SharedWord.END]:
            since = arena[Header.BLOCK_START] + 1  # a shared array is new in each block
            start, cells = arena[entry + SharedWord.START], arena[entry + SharedWord.CELLS]
            return Where(-1 - number, start, cells, since, 0, arena[entry + SharedWord.SITE])
    entry = _find_interval(arena, address)
    if entry < 0:
        return Where(_NOWHERE, 0, 0, 0, 0, 0)
    number = (entry - arena[Header.INTERVALS]) // INTERVAL_WORDS
    start, cells = arena[entry + IntervalWord.START], arena[entry + IntervalWord.CELLS]
    return Where(number, start, cells, 1, arena[entry + IntervalWord.WRITTEN], 0)


@njit
def _is_new(access: AccessRecord, where: Where, low: int, high: int) -> Any:
    """Whether some of the bytes from *low* to *high* were never written, neither before nor in this launch."""
    if where.number < 0:
        return True
    if where.written:
        for at in range(max(access.address, low), min(access.address + access.nbytes, high)):
            if peek_byte(where.written + at - where.start) == 0:
                return True
    return False


@njit
def _check_plain(arena: Any, access: AccessRecord, where: Where, cell: int, place: int) -> Any:
    """Compare *access* with the last write and the last atomic operation; returns what was reported."""
    reported = 0
    writer = arena[cell + CellWord.WRITER]
    if writer and not is_ordered(arena, writer, arena[cell + CellWord.WRITE_TIME], access.block, access.thread, place):
        same = 0
        if access.kind == EventCode.WRITE and access.flags & HAS_VALUE and arena[cell + CellWord.HAS_VALUE]:
            same = 1 if arena[cell + CellWord.VALUE] == access.value else 0
        _report(arena, access, where, EventCode.WRITE, writer, relate(arena, writer, access.who), same)
        reported |= _REPORTED_WRITER
    # Of atomic operations the last one is enough: all others came before it, so who comes after it comes after all.
    atomic = 0 if access.kind == EventCode.ATOMIC else arena[cell + CellWord.ATOMIC]
    if atomic and not is_ordered(arena, atomic, arena[cell + CellWord.ATOMIC_TIME], access.block, access.thread, place):
        _report(arena, access, where, EventCode.ATOMIC, atomic, relate(arena, atomic, access.who), 0)
        reported |= _REPORTED_ATOMIC
    return reported


@njit
def _check_readers(arena: Any, access: AccessRecord, where: Where, cell: int, place: int) -> Any:
    """Compare *access*, which writes, with the readers; returns what was reported."""
    for number in range(READERS):
        reader = arena[cell + CellWord.READER + 2 * number]
        time = arena[cell + CellWord.READER + 2 * number + 1]
        if reader and not is_ordered(arena, reader, time, access.block, access.thread, place):
            _report(arena, access, where, EventCode.READ, reader, relate(arena, reader, access.who), 0)
            return _REPORTED_READER
    return 0


@njit
def _enter(arena: Any, access: AccessRecord, where: Where, cell: int, place: int) -> None:
    """Record *access* for the granule."""
    time = arena[Header.TIME]
    if access.kind == EventCode.READ:
        _add_reader(arena, cell, access.who, time)
    elif access.kind == EventCode.WRITE:
        for number in range(READERS):  # later accesses need not be compared with those before this write
            reader = cell + CellWord.READER + 2 * number
            if is_ordered(arena, arena[reader], arena[reader + 1], access.block, access.thread, place):
                arena[reader] = 0
        arena[cell + CellWord.ATOMIC] = 0
        arena[cell + CellWord.LAST_RELEASE] = 0
        arena[cell + CellWord.WRITER] = access.who
        arena[cell + CellWord.WRITE_TIME] = time
        arena[cell + CellWord.VALUE] = access.value
        arena[cell + CellWord.HAS_VALUE] = access.flags & HAS_VALUE
    elif not access.flags & ONLY_READS:
        arena[cell + CellWord.ATOMIC] = access.who
        arena[cell + CellWord.ATOMIC_TIME] = time
        if arena[place + ThreadWord.FENCE_TIME]:
            arena[cell + CellWord.LAST_RELEASE] = time


@njit
def _access(arena: Any, access: AccessRecord, where: Where, place: int, block_place: int) -> None:
    """Compare *access* with the records of each granule that it touches, and then record it.

    An access is reported once for each kind of access that it races with.
    """
    shift = arena[Header.GRANULE_SHIFT]
    base = where.start >> shift
    changes = access.kind != EventCode.READ and not access.flags & ONLY_READS
    reported = 0
    for granule in range(access.address >> shift, ((access.address + access.nbytes - 1) >> shift) + 1):
        cell = where.cells + (granule - base) * CELL_WORDS
        if arena[cell + CellWord.SINCE] != where.since:
            arena[cell : cell + CELL_WORDS] = 0
            arena[cell + CellWord.SINCE] = where.since
        untouched = arena[cell + CellWord.WRITER] == 0 and arena[cell + CellWord.ATOMIC] == 0
        asked = access.kind != EventCode.WRITE and not (access.flags & COPIES or reported & _REPORTED_NEW)
        if untouched and asked and _is_new(access, where, granule << shift, (granule + 1) << shift):
            _report(arena, access, where, 0, 0, Relation.SELF, 0)
            reported |= _REPORTED_NEW
        if access.kind == EventCode.ATOMIC and arena[cell + CellWord.LAST_RELEASE]:
            learn(arena, place, block_place, arena[cell + CellWord.LAST_RELEASE])
        if not reported & (_REPORTED_WRITER | _REPORTED_ATOMIC):
            reported |= _check_plain(arena, access, where, cell, place)
        if changes and not reported & _REPORTED_READER:
            reported |= _check_readers(arena, access, where, cell, place)
        _enter(arena, access, where, cell, place)
    if changes and where.written:
        for at in range(access.address, access.address + access.nbytes):
            poke_byte(where.written + at - where.start, 1)
    if access.kind == EventCode.ATOMIC and changes and arena[place + ThreadWord.FENCE_TIME]:
        release(arena, access.block, access.thread, place, arena[Header.TIME])


def note(pointer: Any, event: int, site: int, address: int, nbytes: int, value: int, block: int, thread: int) -> None:
    """Process an event: what thread *thread* of block *block* is about to do, or has just passed."""
    arena = carray(pointer, (_WHOLE,))
    arena[Header.TIME] += 1
    time = arena[Header.TIME]
    if not arena[Header.COOPERATIVE] and arena[Header.CURRENT_BLOCK] != block + 1:
        enter_block(arena, block)
    place = find_thread(arena, block, thread)
    block_place = find_block(arena, block)
    kind = event & EVENT_MASK
    if kind <= EventCode.ATOMIC:
        if event & INNER and arena[place + ThreadWord.CALL_SITE]:
            site = arena[place + ThreadWord.CALL_SITE]
        where = _locate(arena, address, block, block_place)
        if nbytes > 0 and where.number != _NOWHERE:
            who = ((block * arena[Header.BLOCK_THREADS] + thread) << SITE_BITS) | site
            access = AccessRecord(kind, event, who, address, nbytes, value, block, thread)
            _access(arena, access, where, place, block_place)
    elif kind == EventCode.FENCE:
        fence(arena, place, time)
        arena[place + ThreadWord.FENCED] = 1
        arena[block_place + BlockWord.FENCED] = 1
    elif kind == EventCode.BARRIER:
        pass_barrier(arena, place, block_place, time)
    elif kind == EventCode.GRID_BARRIER:
        pass_grid_barrier(arena, place, time)
    elif kind == EventCode.WAVE_ENTER:
        arena[place + ThreadWord.WAITS_AT] = site
    elif kind == EventCode.WAVE_LEAVE:
        leave_wave_operation(arena, block, thread, block_place, time)
    elif kind == EventCode.SHARED:
        _add_shared(arena, block, block_place, address, nbytes, site)
    else:
        arena[place + ThreadWord.CALL_SITE] = site


@cache
def compiled_note() -> Program:
    """`note` as machine code, whose entry is a C function. Compiling it takes some seconds; it is kept in the cache."""
    provide_runtime()
    return load_or_make(_compile, (_SYMBOL,), _SOURCES, (numba.__version__, np.__version__))


def _compile() -> Program:
    """Let Numba compile `note`, and make an object of the LLVM IR."""
    load_extensions()
    compiled = cfunc(NOTE, error_model="numpy")(note)
    with locked(), LlvmContext() as context:
        module = context.read_text(compiled.inspect_llvm())
        module.get_function(compiled.native_name).name = _SYMBOL
        return compile_module(module, _SYMBOL)
