"""The pass of a radix sort on GPUs: a block goes through each part of the elements, tile by tile.

A tile is put in the order of its digits in shared memory first. Neighbours in a tile then mostly go to neighbours in
memory, and a wave's store needs few cache lines where it would need one for each lane. Where an element goes is its
rank: votes tell a lane which others of its row have the same digit, a table of each wave how many rows before have it,
and the sums of these tables what comes before in the tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba.core import types

from numba_hip._numba.typing import from_dtype
from numba_hip.algorithms.tiles import ROWS_AHEAD
from numba_hip.cooperative.groups import Group
from numba_hip.cooperative.operators import kept
from numba_hip.cooperative.scans import exclusive_sum
from numba_hip.decorators import jit
from numba_hip.language.untyped_names import (
    atomic_add,
    ballot,
    blockIdx,
    lanemask_lt,
    local_array,
    popc,
    same_in_wave,
    shared_array,
    syncthreads,
    syncwarp,
    threadIdx,
)

DIGIT_BITS = 8
DIGITS = 1 << DIGIT_BITS
THREADS = 512
TILE_BYTES = 16 << 10
"""Shared memory for a tile: with the tables, two blocks of 512 threads fit into the 64 KiB of a compute unit."""

MOST_BLOCKS = 1024


class Columns(NamedTuple):
    """The arrays that are sorted together: their elements as numbers, None for those of other sizes than numbers."""

    kinds: tuple[types.Type | None, ...]

    @property
    def widest(self) -> types.Type:
        """The largest of the numbers: what a place in the tile has room for."""
        return max((kind for kind in self.kinds if kind is not None), key=lambda kind: int(kind.bitwidth))

    @property
    def items(self) -> int:
        """Elements of a tile for each thread."""
        return min(TILE_BYTES * 8 // int(self.widest.bitwidth) // THREADS, 8)

    @property
    def tile(self) -> int:
        """Elements of a tile."""
        return self.items * THREADS


def columns_of(dtypes: Sequence[np.dtype[Any]]) -> Columns:
    """What is known of arrays of these *dtypes*, the first of which is that of the keys' words."""
    return Columns(tuple(from_dtype(dtype) if dtype.kind == "u" else None for dtype in dtypes))


_BLOCK = Group(
    jit(device=True)(lambda: threadIdx.x),
    jit(device=True)(lambda: THREADS),
    jit(device=True)(lambda: syncthreads()),
    jit(device=True)(lambda each: 0),
    THREADS,
    False,
)


@jit(device=True)
def lanes_with(digit, is_active):  # type: ignore[no-untyped-def]  # for kernels alone, as all of these
    """The active lanes of the wave that have the same *digit* as this one, bits of a uint64."""
    same = ballot(is_active)
    for bit in range(DIGIT_BITS):
        has = (digit >> bit) & 1
        votes = ballot(has)
        same &= votes if has else ~votes
    return same


@kept
def count_by_block(digit: Any, place: int) -> Any:
    """A kernel in which each block counts the digits of its part, for the array at *place*."""

    @jit
    def count_digits(count, length, parts, shift, *leaves):  # type: ignore[no-untyped-def]
        found = shared_array(DIGITS, types.int32)
        thread, part = threadIdx.x, blockIdx.x
        if thread < DIGITS:
            found[thread] = 0
        syncthreads()
        row, end = part * length + thread, min((part + 1) * length, count)
        while row + (ROWS_AHEAD - 1) * THREADS < end:
            one, two = leaves[0][row], leaves[0][row + THREADS]
            three, four = leaves[0][row + 2 * THREADS], leaves[0][row + 3 * THREADS]
            atomic_add(found, digit(one, shift), 1)
            atomic_add(found, digit(two, shift), 1)
            atomic_add(found, digit(three, shift), 1)
            atomic_add(found, digit(four, shift), 1)
            row += ROWS_AHEAD * THREADS
        for i in range(row, end, THREADS):
            atomic_add(found, digit(leaves[0][i], shift), 1)
        syncthreads()
        if thread < DIGITS:
            leaves[place][thread * parts + part] = found[thread]

    return count_digits


@kept
def move_by_block(digit: Any, columns: Columns, place: int, lanes: int) -> Any:
    """A kernel in which each block moves the elements of its part to the next free places of their digits, which are in
    the array at *place*; for waves of so many *lanes*."""
    items, tile_length, staged_kind = columns.items, columns.tile, columns.widest
    key_kind: Any = columns.kinds[0]
    waves, rank_rows, add_up = THREADS // lanes, _ranking(digit, columns.items, lanes), exclusive_sum(_BLOCK)
    move_others, keys_go_to = _moving(digit, columns, lanes), len(columns.kinds)

    @jit
    def move_elements(count, length, parts, shift, *leaves):  # type: ignore[no-untyped-def]
        staged = shared_array(tile_length, staged_kind)
        tallies = shared_array((waves, DIGITS), types.int16)  # a tile has at most 4096 elements
        starts = shared_array(DIGITS, types.int64)
        keys, ranks = local_array(items, key_kind), local_array(items, types.int32)
        targets = local_array(items, types.int64)
        thread, part = threadIdx.x, blockIdx.x
        number = same_in_wave(thread // lanes)
        end = min((part + 1) * length, count)
        free = types.int64(0)
        if thread < DIGITS:
            free = leaves[place][thread * parts + part]
        for tile in range(part * length, end, tile_length):
            held = min(tile_length, end - tile)
            own = number * (items * lanes) + thread % lanes  # the first of this thread's places in the tile
            for k in range(items):
                keys[k] = leaves[0][tile + min(own + k * lanes, held - 1)]
            rank_rows(keys, ranks, tallies, number, own, held, shift)
            syncthreads()
            total = types.int32(0)
            if thread < DIGITS:
                for one in range(waves):
                    of_wave = tallies[one, thread]
                    tallies[one, thread] = total
                    total += of_wave
            before, _ = add_up(total)
            if thread < DIGITS:
                for one in range(waves):
                    tallies[one, thread] += before
                starts[thread] = free - before
                free += total
            syncthreads()
            for k in range(items):
                ranks[k] += tallies[number, digit(keys[k], shift)]
                if own + k * lanes < held:
                    staged[ranks[k]] = keys[k]
            syncthreads()
            for k in range(items):
                one = k * THREADS + thread
                if one < held:
                    key = key_kind(staged[one])
                    targets[k] = starts[digit(key, shift)] + one
                    leaves[keys_go_to][targets[k]] = key
            move_others(leaves, tile, held, own, ranks, targets, staged, starts, keys, shift)
            syncthreads()

    return move_elements


def _ranking(digit: Any, items: int, lanes: int) -> Any:
    @jit(device=True)
    def rank_rows(keys, ranks, tallies, number, own, held, shift):  # type: ignore[no-untyped-def]
        """The rank of each of a thread's *keys* among those of its wave with its digit; the wave's *tallies* tell in
        the end how many there are of each digit."""
        for one in range(own % lanes, DIGITS, lanes):
            tallies[number, one] = 0
        syncwarp()
        for k in range(items):
            is_active = own + k * lanes < held
            found = digit(keys[k], shift)
            same = lanes_with(found, is_active)
            rank = types.int32(popc(same & lanemask_lt()))
            ranks[k] = tallies[number, found] + rank
            syncwarp()
            if is_active and rank == 0:
                tallies[number, found] += types.int32(popc(same))
            syncwarp()

    return rank_rows


def _moving(digit: Any, columns: Columns, lanes: int) -> Any:
    """A device function that moves what goes with the keys, column by column."""

    @jit(device=True)
    def move_nothing(leaves, tile, held, own, ranks, targets, staged, starts, keys, shift):  # type: ignore[no-untyped-def]
        pass

    move = move_nothing
    for source, kind in enumerate(columns.kinds[1:], 1):
        target = len(columns.kinds) + source
        if kind is None:
            move = _both(move, _at_once(source, target, digit, columns.items, lanes))
        else:
            move = _both(move, _through_tile(source, target, columns.items, lanes))
    return move


def _through_tile(source: int, target: int, items: int, lanes: int) -> Any:
    @jit(device=True)
    def move(leaves, tile, held, own, ranks, targets, staged, starts, keys, shift):  # type: ignore[no-untyped-def]
        syncthreads()
        for k in range(items):
            if own + k * lanes < held:
                staged[ranks[k]] = leaves[source][tile + own + k * lanes]
        syncthreads()
        for k in range(items):
            if k * THREADS + threadIdx.x < held:
                leaves[target][targets[k]] = staged[k * THREADS + threadIdx.x]

    return move


def _at_once(source: int, target: int, digit: Any, items: int, lanes: int) -> Any:
    @jit(device=True)
    def move(leaves, tile, held, own, ranks, targets, staged, starts, keys, shift):  # type: ignore[no-untyped-def]
        for k in range(items):
            if own + k * lanes < held:
                leaves[target][starts[digit(keys[k], shift)] + ranks[k]] = leaves[source][tile + own + k * lanes]

    return move


def _both(first: Any, second: Any) -> Any:
    @jit(device=True)
    def move(leaves, tile, held, own, ranks, targets, staged, starts, keys, shift):  # type: ignore[no-untyped-def]
        first(leaves, tile, held, own, ranks, targets, staged, starts, keys, shift)
        second(leaves, tile, held, own, ranks, targets, staged, starts, keys, shift)

    return move
