"""The detector's memory during one launch: see `numba_hip.abi.race_records`."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hip_devicelib import spmd
from hip_runtime.driver import Dim3, block_threads
from numba_hip.abi.race_records import (
    BLOCK_WORDS,
    CELL_WORDS,
    FINDING_ROOM,
    FINDING_WORDS,
    HEADER_WORDS,
    INTERVAL_WORDS,
    RELEASE_WORDS,
    SHARED_ARRAYS,
    SHARED_WORDS,
    THREAD_WORDS,
    FindingWord,
    Header,
    IntervalWord,
)

RELEASE_ROOM = 1 << 24
"""Atomic operations behind fences that one launch can have; later ones order nothing that is not ordered otherwise."""

_RESERVE_NOTHING = getattr(mmap, "MAP_NORESERVE", 0x4000)  # Linux; Python has the name since 3.13
_WORD = 8


@dataclass(frozen=True)
class TrackedMemory:
    """Device memory: ``nbytes`` bytes from ``start`` on, and the address of a byte for each of them that says whether
    it was written, or 0 if that is not known."""

    start: int
    nbytes: int
    written: int = 0


@dataclass(frozen=True)
class LaunchShape:
    """The properties of a launch that the detector needs."""

    grid: Dim3
    block: Dim3
    wave_size: int
    cooperative: bool
    granule: int


class Arena:
    """An arena for one launch. Pages that are never touched take no memory."""

    def __init__(self, shape: LaunchShape, memory: Sequence[TrackedMemory]) -> None:
        self.shape = shape
        self.memory = sorted(memory, key=lambda one: one.start)
        self._end = HEADER_WORDS
        self._values: dict[int, int] = {}
        cells = self._plan()
        self._mapping = mmap.mmap(-1, self._end * _WORD, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _RESERVE_NOTHING)
        self.words = np.frombuffer(self._mapping, np.int64)
        self.address = int(self.words.ctypes.data)
        for field, value in self._values.items():
            self.words[field] = value
        for number, (one, place) in enumerate(zip(self.memory, cells, strict=True)):
            entry = self._values[Header.INTERVALS] + number * INTERVAL_WORDS
            self.words[entry + IntervalWord.START] = one.start
            self.words[entry + IntervalWord.END] = one.start + one.nbytes
            self.words[entry + IntervalWord.CELLS] = place
            self.words[entry + IntervalWord.WRITTEN] = one.written

    def _plan(self) -> list[int]:
        """Lay out the tables, and the cells of each piece of memory."""
        shape, values = self.shape, self._values
        blocks, threads = block_threads(shape.grid), block_threads(shape.block)
        waves = -(-threads // shape.wave_size)
        states = blocks if shape.cooperative else 1
        shift = shape.granule.bit_length() - 1
        shared_room = (spmd.SHARED_BYTES >> shift) + 2 * SHARED_ARRAYS
        values.update({
            Header.BLOCK_THREADS: threads, Header.WAVE_SIZE: shape.wave_size, Header.COOPERATIVE: shape.cooperative,
            Header.GRANULE_SHIFT: shift, Header.INTERVAL_COUNT: len(self.memory), Header.RELEASE_ROOM: RELEASE_ROOM,
            Header.SHARED_ROOM: shared_room,
        })  # fmt: skip
        for field, words in (
            (Header.INTERVALS, len(self.memory) * INTERVAL_WORDS),
            (Header.THREADS, states * threads * THREAD_WORDS),
            (Header.BLOCKS, states * BLOCK_WORDS),
            (Header.FINDINGS, FINDING_ROOM * FINDING_WORDS),
            (Header.SHARED_RANGES, states * SHARED_ARRAYS * SHARED_WORDS),
            (Header.LANES, states * threads * shape.wave_size),
            (Header.THREAD_RELEASES, blocks * threads),
            (Header.WAVE_RELEASES, blocks * waves),
            (Header.BLOCK_RELEASES, blocks),
            (Header.RELEASES, RELEASE_ROOM * RELEASE_WORDS),
            (Header.SHARED_CELLS, states * shared_room * CELL_WORDS),
        ):
            values[field] = self._take(words)
        return [self._take(((one.nbytes >> shift) + 2) * CELL_WORDS) for one in self.memory]

    def _take(self, words: int) -> int:
        start, self._end = self._end, self._end + words
        return start

    def findings(self) -> list[dict[FindingWord, int]]:
        """The findings, as the detector recorded them."""
        start = self._values[Header.FINDINGS]
        table: np.ndarray[Any, Any] = self.words[start : start + FINDING_ROOM * FINDING_WORDS]
        rows = table.reshape(FINDING_ROOM, FINDING_WORDS)
        return [{field: int(row[field]) for field in FindingWord} for row in rows[rows[:, FindingWord.COUNT] > 0]]

    @property
    def lost(self) -> int:
        """The number of findings that did not fit."""
        return int(self.words[Header.LOST])
