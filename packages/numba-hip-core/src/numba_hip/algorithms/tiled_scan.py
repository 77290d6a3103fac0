"""The engine of scans and of all that is made of them: each tile's total, a scan of the totals, then each tile again.

What is done with the prefixes is a function that the caller gives: a scan stores them, a selection stores elements at
the places that they are. Reads twice and writes once what it works on, and no tile waits for another within a launch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba.core import types

from numba_hip import wave
from numba_hip.algorithms.operands import Operands
from numba_hip.algorithms.tiles import WAVES_IN_BLOCK, Tiles
from numba_hip.cooperative import values
from numba_hip.cooperative.operators import kept
from numba_hip.decorators import jit
from numba_hip.language import warp as warp_operations
from numba_hip.language.untyped_names import ballot, blockDim, blockIdx, lanemask_lt, popc, threadIdx

# What this means in a kernel, a type checker cannot know.
warp: Any = warp_operations


class OfLanes(NamedTuple):
    """How a wave combines a row: device functions with the arguments of `wave.reduce` and `wave.inclusive_scan`."""

    reduce: Any
    scan: Any


@jit(device=True)
def _count(is_one, _combine, count=64):  # type: ignore[no-untyped-def]  # for kernels alone, as all of these
    return types.int64(popc(ballot(is_one != 0 and warp.laneid < count)))


@jit(device=True)
def _count_through(is_one, _combine):  # type: ignore[no-untyped-def]
    return types.int64(popc(ballot(is_one != 0) & lanemask_lt())) + is_one


BY_OPERATOR = OfLanes(wave.reduce, wave.inclusive_scan)
BY_VOTES = OfLanes(_count, _count_through)
"""For sums of int64 values that are 0 or 1: one vote tells what six shuffles do."""


def scan_tiles(
    operands: Operands,
    tiles: Tiles,
    read: Any,
    operator: Any,
    kind: types.Type,
    emit: Any,
    totals: tuple[Any, Any] | None = None,
    lanes: OfLanes = BY_OPERATOR,
) -> None:
    """Launch a scan by *operator* of the values of *kind* that *read* returns.

    *emit* is a function of (leaves, i, before, through): the values up to i without and with its own, combined. For i
    = 0 there is nothing before, and *before* is any value. The kernels get the leaves that *operands* have now. If
    *emit* reads the total, *totals* are the functions of the scratch memory for it, in which it comes last. *lanes* is
    how the values of a row are combined.
    """
    combine = values.combining(operator, kind)
    read_total, write_total = operands.scratch(tiles.tiles, kind) if totals is None else totals
    stream, leaves = operands.launch_stream, operands.leaves
    if tiles.tiles > 1 or totals is not None:
        total = total_kernel(read, combine, write_total, lanes)
        total[tiles.grid, tiles.block, stream](tiles.elements, tiles.length, tiles.tiles, *leaves)
    if tiles.tiles > 1:
        one_wave = total_scan_kernel(read_total, combine, write_total)
        one_wave[1, tiles.lanes, stream](tiles.tiles, *leaves)
    last = prefix_kernel(read, combine, read_total, emit, lanes)
    last[tiles.grid, tiles.block, stream](tiles.elements, tiles.length, tiles.tiles, *leaves)


@kept
def total_kernel(read: Any, combine: Any, write: Any, lanes_do: OfLanes = BY_OPERATOR) -> Any:
    """A kernel in which each wave combines the values of its tile, in their order."""
    reduce_row = lanes_do.reduce

    @jit
    def tile_totals(count, length, tiles, *leaves):  # type: ignore[no-untyped-def]  # for kernels alone
        tile = blockIdx.x * WAVES_IN_BLOCK + threadIdx.y
        if tile < tiles:
            lane = threadIdx.x
            start = tile * length
            end = min(start + length, count)
            lanes = blockDim.x
            rest = end - (end - start) % lanes
            is_first, total = True, read(leaves, start)
            for row in range(start, rest, lanes):  # whole rows: neighbours in memory, without a bound
                of_row = reduce_row(read(leaves, row + lane), combine)
                total = of_row if is_first else combine(total, of_row)
                is_first = False
            if rest < end:
                of_row = reduce_row(read(leaves, min(rest + lane, end - 1)), combine, end - rest)
                total = of_row if is_first else combine(total, of_row)
            if lane == 0:
                write(leaves, tile, total)

    return tile_totals


@kept
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


@kept
def prefix_kernel(read: Any, combine: Any, read_total: Any, emit: Any, lanes_do: OfLanes = BY_OPERATOR) -> Any:
    """A kernel in which each wave scans its tile, from the totals of the tiles before it on."""
    scan_row = lanes_do.scan

    @jit
    def scan_each_tile(count, length, tiles, *leaves):  # type: ignore[no-untyped-def]
        tile = blockIdx.x * WAVES_IN_BLOCK + threadIdx.y
        if tile < tiles:
            lane = threadIdx.x
            start = tile * length
            end = min(start + length, count)
            lanes = blockDim.x
            rest = end - (end - start) % lanes
            is_first = tile == 0
            carry = read(leaves, start) if is_first else read_total(leaves, tile - 1)
            for row in range(start, rest, lanes):  # whole rows: neighbours in memory, without a bound
                through = scan_row(read(leaves, row + lane), combine)
                through = through if is_first else combine(carry, through)
                before = wave.shuffle_up(through, 1)
                emit(leaves, row + lane, before if lane > 0 else carry, through)
                carry = wave.aggregate_of(through)
                is_first = False
            i = rest + lane
            if rest < end:
                through = scan_row(read(leaves, min(i, end - 1)), combine)
                through = through if is_first else combine(carry, through)
                before = wave.shuffle_up(through, 1)
                before = before if lane > 0 else carry
                if i < end:
                    emit(leaves, i, before, through)

    return scan_each_tile
