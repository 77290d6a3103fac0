"""The engine of scans and of all that is made of them: each tile's total, a scan of the totals, then each tile again.

What is done with the prefixes is a function that the caller gives: a scan stores them, a selection stores elements at
the places that they are. Reads twice and writes once what it works on, and no tile waits for another within a launch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba.core import types

from numba_hip import wave
from numba_hip.algorithms.operands import Operands
from numba_hip.algorithms.tiles import ROWS_AHEAD, Tiles, reads_ahead, tile_of_wave
from numba_hip.cooperative import values
from numba_hip.cooperative.operators import kept
from numba_hip.decorators import jit
from numba_hip.language import warp as warp_operations
from numba_hip.language.untyped_names import ballot, lanemask_lt, popc, threadIdx

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
    stream, leaves, ahead = operands.launch_stream, operands.leaves, reads_ahead(operands.device)
    if tiles.tiles > 1 or totals is not None:
        total = total_kernel(read, combine, write_total, lanes, ahead=ahead)
        total[tiles.grid, tiles.block, stream](tiles.elements, tiles.length, tiles.tiles, *leaves)
    if tiles.tiles > 1:
        one_wave = total_scan_kernel(read_total, combine, write_total)
        one_wave[1, tiles.lanes, stream](tiles.tiles, *leaves)
    last = prefix_kernel(read, combine, read_total, emit, lanes, ahead=ahead)
    last[tiles.grid, tiles.block, stream](tiles.elements, tiles.length, tiles.tiles, *leaves)


@kept
def total_kernel(read: Any, combine: Any, write: Any, lanes_do: OfLanes = BY_OPERATOR, *, ahead: bool = False) -> Any:
    """A kernel in which each wave combines the values of its tile, in their order; with *ahead* it reads several rows
    at once."""
    reduce_row = lanes_do.reduce

    @jit
    def tile_totals(count, length, tiles, *leaves):  # type: ignore[no-untyped-def]  # for kernels alone
        tile = tile_of_wave()
        if tile < tiles:
            lane, lanes = threadIdx.x, warp.warpsize
            start = tile * length
            end = min(start + length, count)
            rest = end - (end - start) % lanes
            is_first, total, row = True, read(leaves, start), start
            if ahead:
                while row + ROWS_AHEAD * lanes <= rest:
                    i = row + lane
                    one, two = read(leaves, i), read(leaves, i + lanes)
                    three, four = read(leaves, i + 2 * lanes), read(leaves, i + 3 * lanes)
                    of_row = reduce_row(one, combine)
                    total = of_row if is_first else combine(total, of_row)
                    total = combine(combine(total, reduce_row(two, combine)), reduce_row(three, combine))
                    total = combine(total, reduce_row(four, combine))
                    is_first, row = False, row + ROWS_AHEAD * lanes
            for whole in range(row, rest, lanes):  # whole rows: neighbours in memory, without a bound
                of_row = reduce_row(read(leaves, whole + lane), combine)
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
        lane, lanes = threadIdx.x, warp.warpsize
        through = wave.inclusive_scan(read(leaves, min(lane, count - 1)), combine)
        if lane < count:
            write(leaves, lane, through)
        following = read(leaves, min(lanes + lane, count - 1))
        for row in range(lanes, count, lanes):
            i, value = row + lane, following
            following = read(leaves, min(i + lanes, count - 1))  # before it is needed
            carry = wave.aggregate_of(through)
            through = combine(carry, wave.inclusive_scan(value, combine))
            if i < count:
                write(leaves, i, through)

    return scan_totals


@kept
def prefix_kernel(
    read: Any, combine: Any, read_total: Any, emit: Any, lanes_do: OfLanes = BY_OPERATOR, *, ahead: bool = False
) -> Any:
    """A kernel in which each wave scans its tile, from the totals of the tiles before it on; with *ahead* it reads
    several rows at once."""
    scan_row = lanes_do.scan

    @jit(device=True)
    def scan_whole_row(leaves, i, value, carry, is_first):  # type: ignore[no-untyped-def]  # for kernels alone
        through = scan_row(value, combine)
        through = through if is_first else combine(carry, through)
        before = wave.shuffle_up(through, 1)
        emit(leaves, i, before if threadIdx.x > 0 else carry, through)
        return wave.aggregate_of(through)

    @jit
    def scan_each_tile(count, length, tiles, *leaves):  # type: ignore[no-untyped-def]
        tile = tile_of_wave()
        if tile < tiles:
            lane, lanes = threadIdx.x, warp.warpsize
            start = tile * length
            end = min(start + length, count)
            rest = end - (end - start) % lanes
            is_first, row = tile == 0, start
            carry = read(leaves, start) if is_first else read_total(leaves, tile - 1)
            if ahead:
                while row + ROWS_AHEAD * lanes <= rest:
                    i = row + lane
                    one, two = read(leaves, i), read(leaves, i + lanes)
                    three, four = read(leaves, i + 2 * lanes), read(leaves, i + 3 * lanes)
                    carry = scan_whole_row(leaves, i, one, carry, is_first)
                    carry = scan_whole_row(leaves, i + lanes, two, carry, False)
                    carry = scan_whole_row(leaves, i + 2 * lanes, three, carry, False)
                    carry = scan_whole_row(leaves, i + 3 * lanes, four, carry, False)
                    is_first, row = False, row + ROWS_AHEAD * lanes
            for whole in range(row, rest, lanes):  # whole rows: neighbours in memory, without a bound
                carry = scan_whole_row(leaves, whole + lane, read(leaves, whole + lane), carry, is_first)
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
