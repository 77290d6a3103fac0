"""The race detector's memory: one array of 64-bit words, and the layout of its tables.

It is a single mapping, of which only touched pages use memory. `Header` has the numbers of the launch and the positions
of the tables; a table is a row of entries with a fixed number of words.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class EventCode(IntEnum):
    """The events that a thread reports. For an access, flags are stored above these four bits."""

    READ = 1
    WRITE = 2
    ATOMIC = 3
    FENCE = 4
    BARRIER = 5
    """It has passed a barrier of its block."""
    GRID_BARRIER = 6
    WAVE_ENTER = 7
    """It has come to an operation of its wave, which is the site."""
    WAVE_LEAVE = 8
    SHARED = 9
    """It has asked where a shared array is: its address, and its bytes."""
    CALL = 10
    """It is about to call a function whose accesses may have no lines of their own."""


EVENT_MASK = 0xF
HAS_VALUE = 0x10
"""What is written is a number of at most 64 bits, and it is told."""
COPIES = 0x20
"""A part of a copy of bytes: what nobody wrote may be among them, such as padding."""
ONLY_READS = 0x40
"""An atomic operation that changes nothing."""
INNER = 0x80
"""The line says little: that of the last call is told instead."""


class HeaderWords(NamedTuple):
    """The words at the start. This is not an enumeration, as Numba 0.62 does not accept its members as indices."""

    TIME: int = 0
    """How many events there were."""
    BLOCK_THREADS: int = 1
    WAVE_SIZE: int = 2
    COOPERATIVE: int = 3
    """Whether blocks wait for one another, so that all of them have a state of their own."""
    CURRENT_BLOCK: int = 4
    """The block that the states are of, plus 1, where there is one for all."""
    GRANULE_SHIFT: int = 5
    INTERVALS: int = 6
    INTERVAL_COUNT: int = 7
    THREADS: int = 8
    BLOCKS: int = 9
    LANES: int = 10
    """What each thread knows of the lanes of its wave: until when each of them has been waited for."""
    THREAD_RELEASES: int = 11
    WAVE_RELEASES: int = 12
    BLOCK_RELEASES: int = 13
    """By thread, wave and block: the number of the last release, 0 for none."""
    RELEASES: int = 14
    RELEASE_COUNT: int = 15
    RELEASE_ROOM: int = 16
    SHARED_RANGES: int = 17
    SHARED_CELLS: int = 18
    SHARED_ROOM: int = 19
    """Granules of shared memory that a block has cells for."""
    FINDINGS: int = 20
    FINDING_COUNT: int = 21
    LOST: int = 22
    """Findings that had no room."""
    GRID_EPOCH: int = 23
    GRID_TIME: int = 24
    WAVES_USED: int = 25
    BLOCK_START: int = 26
    LAST_INTERVAL: int = 27


Header = HeaderWords()

HEADER_WORDS = 32


class IntervalWord(IntEnum):
    """A range of device memory; the table is sorted by address."""

    START = 0
    END = 1
    CELLS = 2
    """Where its cells are."""
    WRITTEN = 3
    """Address of a byte for each byte: whether it was ever written; 0 where that is not known."""


class ThreadWord(IntEnum):
    """The state of a thread. Times are numbers of events; 0 is before the first."""

    BARRIER_TIME = 0
    """All that its block did before this is before what it does now."""
    EPOCH = 1
    KNOWN = 2
    """All that was released before this is before what it does now."""
    FENCE_TIME = 3
    """What it did before this is released by its next atomic operation."""
    FENCED_BARRIER = 4
    FENCED_WAVE = 5
    """As `FENCE_TIME`, of what its block and its wave did."""
    WAVE_TIME = 6
    WAITS_AT = 7
    FENCED = 8
    """Whether it had a fence since it last waited for others."""
    CALL_SITE = 9
    """Where it last called a function from a line of the user's."""
    GRID_EPOCH = 10


class BlockWord(IntEnum):
    """The state of a block."""

    EPOCH = 0
    BARRIER_TIME = 1
    KNOWN = 2
    KNOWN_AT_BARRIER = 3
    FENCED = 4
    FENCED_AT_BARRIER = 5
    SHARED_COUNT = 6
    SHARED_GRANULES = 7


class ReleaseWord(IntEnum):
    """An atomic operation behind a fence."""

    TIME = 0
    FENCE_TIME = 1
    FENCED_BARRIER = 2
    FENCED_WAVE = 3
    OF_THREAD = 4
    OF_WAVE = 5
    OF_BLOCK = 6
    """The number of the release before this one, of the same thread, wave and block."""


class SharedWord(IntEnum):
    """A shared array of a block."""

    START = 0
    END = 1
    CELLS = 2
    SITE = 3


class CellWord(IntEnum):
    """The last accesses of a granule. Each has the thread's number in the grid and a site; 0 is none."""

    WRITER = 0
    WRITE_TIME = 1
    VALUE = 2
    HAS_VALUE = 3
    ATOMIC = 4
    ATOMIC_TIME = 5
    READER = 6
    """The last reader; then the last of another thread, of another wave, and of another block than that one."""
    LAST_RELEASE = 14
    SINCE = 15
    """When the memory became what it is: shared memory is new in each block."""


READERS = 4


class FindingWord(IntEnum):
    """Two accesses; the first is 0 if uninitialised memory was read."""

    FIRST_EVENT = 0
    SECOND_EVENT = 1
    FIRST = 2
    SECOND = 3
    RELATION = 4
    ADDRESS = 5
    BYTES = 6
    COUNT = 7
    WHERE = 8
    """The number of the interval, or below 0 of the shared array."""
    OFFSET = 9
    SAME_VALUE = 10
    SHARED_SITE = 11


class Relation(IntEnum):
    """How two threads are related."""

    WAVE = 0
    BLOCK = 1
    GRID = 2
    SELF = 3


INTERVAL_WORDS, THREAD_WORDS, BLOCK_WORDS, RELEASE_WORDS, SHARED_WORDS, CELL_WORDS, FINDING_WORDS = (
    4, 11, 8, 7, 4, 16, 16
)  # fmt: skip
SHARED_ARRAYS = 64
"""Shared arrays of a block that are told apart."""
FINDING_ROOM = 2048
SITE_BITS = 24
