"""The happens-before relation: the states of threads, blocks and waves, which every event updates.

Times are numbers of events. An access happens before another one if one of these holds:

* both are of the same thread;
* the block, the wave or the grid of the first waited in between, together with the second one's thread;
* the thread of the first had a later fence and then an atomic operation (a *release*), and the thread of the second
  later had an atomic operation on the same address, or waited with one that had. Everything released before that
  release counts as acquired with it, so chains of locks and flags need not be followed.

Numba compiles all functions for the processor; *arena* is the memory that `numba_hip.abi.race_records` lays out.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from numba_hip.abi.race_records import (
    BLOCK_WORDS,
    RELEASE_WORDS,
    SITE_BITS,
    THREAD_WORDS,
    BlockWord,
    Header,
    Relation,
    ReleaseWord,
    ThreadWord,
)


@njit
def find_thread(arena: Any, block: int, thread: int) -> Any:
    """Where the state of the thread is."""
    slot = thread
    if arena[Header.COOPERATIVE]:
        slot += block * arena[Header.BLOCK_THREADS]
    return arena[Header.THREADS] + slot * THREAD_WORDS


@njit
def find_block(arena: Any, block: int) -> Any:
    """Where the state of the block is."""
    return arena[Header.BLOCKS] + (block * BLOCK_WORDS if arena[Header.COOPERATIVE] else 0)


@njit
def find_lanes(arena: Any, block: int, thread: int) -> Any:
    """The position of what the thread knows of the lanes of its wave."""
    slot = thread
    if arena[Header.COOPERATIVE]:
        slot += block * arena[Header.BLOCK_THREADS]
    return arena[Header.LANES] + slot * arena[Header.WAVE_SIZE]


@njit
def enter_block(arena: Any, block: int) -> None:
    """Reset the states of the previous block, if blocks run one after another."""
    arena[Header.CURRENT_BLOCK] = block + 1
    arena[Header.BLOCK_START] = arena[Header.TIME]
    threads = arena[Header.BLOCK_THREADS]
    first = arena[Header.THREADS]
    arena[first : first + threads * THREAD_WORDS] = 0
    first = arena[Header.BLOCKS]
    arena[first : first + BLOCK_WORDS] = 0
    if arena[Header.WAVES_USED]:
        first = arena[Header.LANES]
        arena[first : first + threads * arena[Header.WAVE_SIZE]] = 0
        arena[Header.WAVES_USED] = 0


@njit
def learn(arena: Any, place: int, block_place: int, known: int) -> None:
    """The thread at *place* acquires everything that was released before *known*."""
    if known > arena[place + ThreadWord.KNOWN]:
        arena[place + ThreadWord.KNOWN] = known
        if known > arena[block_place + BlockWord.KNOWN]:
            arena[block_place + BlockWord.KNOWN] = known


@njit
def fence(arena: Any, place: int, time: int) -> None:
    """The thread at *place* passes a fence."""
    arena[place + ThreadWord.FENCE_TIME] = time
    arena[place + ThreadWord.FENCED_BARRIER] = arena[place + ThreadWord.BARRIER_TIME]
    arena[place + ThreadWord.FENCED_WAVE] = arena[place + ThreadWord.WAVE_TIME]


@njit
def pass_barrier(arena: Any, place: int, block_place: int, time: int) -> None:
    """The thread at *place* continues after a barrier of its block. A fence of any thread before the barrier counts for
    all."""
    arena[place + ThreadWord.EPOCH] += 1
    if arena[place + ThreadWord.EPOCH] > arena[block_place + BlockWord.EPOCH]:  # the first one behind it
        arena[block_place + BlockWord.EPOCH] = arena[place + ThreadWord.EPOCH]
        arena[block_place + BlockWord.BARRIER_TIME] = time
        arena[block_place + BlockWord.KNOWN_AT_BARRIER] = arena[block_place + BlockWord.KNOWN]
        arena[block_place + BlockWord.FENCED_AT_BARRIER] = arena[block_place + BlockWord.FENCED]
        arena[block_place + BlockWord.FENCED] = 0
    arena[place + ThreadWord.BARRIER_TIME] = arena[block_place + BlockWord.BARRIER_TIME]
    arena[place + ThreadWord.FENCED] = 0
    learn(arena, place, block_place, arena[block_place + BlockWord.KNOWN_AT_BARRIER])
    if arena[block_place + BlockWord.FENCED_AT_BARRIER]:
        fence(arena, place, time)


@njit
def pass_grid_barrier(arena: Any, place: int, time: int) -> None:
    """The thread at *place* continues after a barrier of the grid."""
    arena[place + ThreadWord.GRID_EPOCH] += 1
    if arena[place + ThreadWord.GRID_EPOCH] > arena[Header.GRID_EPOCH]:
        arena[Header.GRID_EPOCH] = arena[place + ThreadWord.GRID_EPOCH]
        arena[Header.GRID_TIME] = time


@njit
def leave_wave_operation(arena: Any, block: int, thread: int, block_place: int, time: int) -> None:
    """The first lane that continues makes all lanes that waited with it known to each other."""
    site = arena[find_thread(arena, block, thread) + ThreadWord.WAITS_AT]
    if site == 0:
        return
    arena[Header.WAVES_USED] = 1
    size = arena[Header.WAVE_SIZE]
    first = thread - thread % size
    last = min(first + size, arena[Header.BLOCK_THREADS])
    union = find_lanes(arena, block, thread)
    known = fenced = 0
    for other in range(first, last):
        place = find_thread(arena, block, other)
        if arena[place + ThreadWord.WAITS_AT] == site:
            known = max(known, arena[place + ThreadWord.KNOWN])
            fenced |= arena[place + ThreadWord.FENCED]
            row = find_lanes(arena, block, other)
            for lane in range(size):
                arena[union + lane] = max(arena[union + lane], arena[row + lane])
            arena[union + other - first] = time
    for other in range(first, last):
        place = find_thread(arena, block, other)
        if arena[place + ThreadWord.WAITS_AT] == site:
            arena[place + ThreadWord.WAITS_AT] = 0
            arena[place + ThreadWord.WAVE_TIME] = time
            learn(arena, place, block_place, known)
            if fenced:
                fence(arena, place, time)
            row = find_lanes(arena, block, other)
            for lane in range(size):
                arena[row + lane] = arena[union + lane]


@njit
def release(arena: Any, block: int, thread: int, place: int, time: int) -> None:
    """Release what the thread did before its last fence, and what its wave and block did before."""
    number = arena[Header.RELEASE_COUNT] + 1
    if number >= arena[Header.RELEASE_ROOM]:
        return
    arena[Header.RELEASE_COUNT] = number
    entry = arena[Header.RELEASES] + number * RELEASE_WORDS
    arena[entry + ReleaseWord.TIME] = time
    arena[entry + ReleaseWord.FENCE_TIME] = arena[place + ThreadWord.FENCE_TIME]
    arena[entry + ReleaseWord.FENCED_BARRIER] = arena[place + ThreadWord.FENCED_BARRIER]
    arena[entry + ReleaseWord.FENCED_WAVE] = arena[place + ThreadWord.FENCED_WAVE]
    threads, size = arena[Header.BLOCK_THREADS], arena[Header.WAVE_SIZE]
    waves = (threads + size - 1) // size
    head = arena[Header.THREAD_RELEASES] + block * threads + thread
    arena[entry + ReleaseWord.OF_THREAD] = arena[head]
    arena[head] = number
    head = arena[Header.WAVE_RELEASES] + block * waves + thread // size
    arena[entry + ReleaseWord.OF_WAVE] = arena[head]
    arena[head] = number
    head = arena[Header.BLOCK_RELEASES] + block
    arena[entry + ReleaseWord.OF_BLOCK] = arena[head]
    arena[head] = number


@njit
def _is_released(arena: Any, time: int, number: int, known: int, link: int, covers: int) -> Any:
    """Whether the last release before *known*, in the chain from *number* on, covers events up to *time*."""
    while number:
        entry = arena[Header.RELEASES] + number * RELEASE_WORDS
        if arena[entry + ReleaseWord.TIME] <= known:
            return arena[entry + covers] > time
        number = arena[entry + link]
    return False


@njit
def is_ordered(arena: Any, who: int, time: int, block: int, thread: int, place: int) -> Any:
    """Whether the event of *who* at *time* happens before the current event of this thread."""
    threads = arena[Header.BLOCK_THREADS]
    other = who >> SITE_BITS
    if other == block * threads + thread:
        return True
    if time < arena[Header.GRID_TIME] and arena[place + ThreadWord.GRID_EPOCH] == arena[Header.GRID_EPOCH]:
        return True
    size = arena[Header.WAVE_SIZE]
    other_block, other_thread = other // threads, other % threads
    if other_block == block:
        if time < arena[place + ThreadWord.BARRIER_TIME]:
            return True
        lane = find_lanes(arena, block, thread) + other_thread % size
        if other_thread // size == thread // size and time < arena[lane]:
            return True
    known = arena[place + ThreadWord.KNOWN]
    if known == 0:
        return False
    first = arena[arena[Header.THREAD_RELEASES] + other]
    if _is_released(arena, time, first, known, ReleaseWord.OF_THREAD, ReleaseWord.FENCE_TIME):
        return True
    waves = (threads + size - 1) // size
    first = arena[arena[Header.WAVE_RELEASES] + other_block * waves + other_thread // size]
    if _is_released(arena, time, first, known, ReleaseWord.OF_WAVE, ReleaseWord.FENCED_WAVE):
        return True
    first = arena[arena[Header.BLOCK_RELEASES] + other_block]
    return _is_released(arena, time, first, known, ReleaseWord.OF_BLOCK, ReleaseWord.FENCED_BARRIER)


@njit
def relate(arena: Any, one: int, other: int) -> Any:
    """How the threads of two accesses are related."""
    threads = arena[Header.BLOCK_THREADS]
    one, other = one >> SITE_BITS, other >> SITE_BITS
    if one // threads != other // threads:
        return Relation.GRID
    same = (one % threads) // arena[Header.WAVE_SIZE] == (other % threads) // arena[Header.WAVE_SIZE]
    return Relation.WAVE if same else Relation.BLOCK
