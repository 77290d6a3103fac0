"""The engine of scans and of all that is made of them: each tile's total, a scan of the totals, then each tile again.

What is done with the prefixes is a function that the caller gives: a scan stores them, a selection stores elements at
the places that they are. Reads twice and writes once what it works on, and no tile waits for another within a launch.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from numba.core import types

from numba_hip import wave
from numba_hip.algorithms.operands import Operands
from numba_hip.algorithms.tiles import WAVES_IN_BLOCK, Tiles
from numba_hip.cooperative import values
from numba_hip.cooperative.operators import KEPT
from numba_hip.decorators import jit
from numba_hip.language.untyped_names import blockDim, blockIdx, threadIdx


def scan_tiles(
    operands: Operands,
    tiles: Tiles,
    read: Any,
    operator: Any,
    kind: types.Type,
    emit: Any,
    totals: tuple[Any, Any] | None = None,
) -> None:
    """Launch a scan by *operator* of the values of *kind* that *read* returns.

    *emit* is a function of (leaves, i, before, through): the values up to i without and with its own, combined. For i
    = 0 there is nothing before, and *before* is any value. The kernels get the leaves that *operands* have now. If
    *emit* reads the total, *totals* are the functions of the scratch memory for it, in which it comes last.
    """
    combine = values.combining(operator, kind)
    read_total, write_total = operands.scratch(tiles.tiles, kind) if totals is None else totals
    stream, leaves = operands.launch_stream, operands.leaves
    if tiles.tiles > 1 or totals is not None:
        total = total_kernel(read, combine, write_total)
        total[tiles.grid, tiles.block, stream](tiles.elements, tiles.length, tiles.tiles, *leaves)
    if tiles.tiles > 1:
        one_wave = total_scan_kernel(read_total, combine, write_total)
        one_wave[1, tiles.lanes, stream](tiles.tiles, *leaves)
    last = prefix_kernel(read, combine, read_total, emit)
    last[tiles.grid, tiles.block, stream](tiles.elements, tiles.length, tiles.tiles, *leaves)


@lru_cache(KEPT)
def total_kernel(read: Any, combine: Any, write: Any) -> Any:
    """A kernel in which each wave combines the values of its tile, in their order."""

    @jit
    def tile_totals(count, length, tiles, *leaves):  # type: ignore[no-untyped-def]  # for kernels alone
        tile = blockIdx.x * WAVES_IN_BLOCK + threadIdx.y
        if tile < tiles:
            lane = threadIdx.x
            start = tile * length
            end = min(start + length, count)
            lanes = blockDim.x
            value = read(leaves, min(start + lane, end - 1))
            total = wave.reduce(value, combine, end - start)
            for row in range(start + lanes, end, lanes):
                value = read(leaves, min(row + lane, end - 1))
                total = combine(total, wave.reduce(value, combine, end - row))
            if lane == 0:
                write(leaves, tile, total)

    return tile_totals


@lru_cache(KEPT)
def total_scan_kernel(read: Any, combine: Any, write: Any) -> Any:
    """A kernel of one wave that replaces totals by what they and those before come to."""

    @jit
    def scan_totals(count, *leaves):  # type: ignore[no-untyped-def]
        lane, lanes = threadIdx.x, blockDim.x
        through = wave.inclusive_scan(read(leaves, min(lane, count - 1)), combine)
        if lane < count:
            write(leaves, lane, through)
        for row in range(lanes, count, lanes):
            carry = wave.aggregate_of(through)
            i = row + lane
            through = combine(carry, wave.inclusive_scan(read(leaves, min(i, count - 1)), combine))
            if i < count:
                write(leaves, i, through)

    return scan_totals


@lru_cache(KEPT)
def prefix_kernel(read: Any, combine: Any, read_total: Any, emit: Any) -> Any:
    """A kernel in which each wave scans its tile, from the totals of the tiles before it on."""

    @jit
    def scan_each_tile(count, length, tiles, *leaves):  # type: ignore[no-untyped-def]
        tile = blockIdx.x * WAVES_IN_BLOCK + threadIdx.y
        if tile < tiles:
            lane = threadIdx.x
            start = tile * length
            end = min(start + length, count)
            lanes = blockDim.x
            i = start + lane
            value = read(leaves, min(i, end - 1))
            through = wave.inclusive_scan(value, combine)
            before = wave.shuffle_up(through, 1)
            if tile > 0:
                carry = read_total(leaves, tile - 1)
                before = combine(carry, before) if lane > 0 else carry
                through = combine(carry, through)
            if i < end:
                emit(leaves, i, before, through)
            for row in range(start + lanes, end, lanes):
                carry = wave.aggregate_of(through)
                i = row + lane
                value = read(leaves, min(i, end - 1))
                through = combine(carry, wave.inclusive_scan(value, combine))
                before = wave.shuffle_up(through, 1)
                before = before if lane > 0 else carry
                if i < end:
                    emit(leaves, i, before, through)

    return scan_each_tile
