"""Reductions: all elements, or those of each segment, combined to one value."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from numba.core import types

from hip_runtime.array import StreamLike
from numba_hip import wave
from numba_hip.algorithms.initial_values import accumulator_type, add_initial
from numba_hip.algorithms.iterators import TransformIterator
from numba_hip.algorithms.operands import Operands, Operator
from numba_hip.algorithms.readers import count_of
from numba_hip.algorithms.segment_checks import check_offsets
from numba_hip.algorithms.tiled_scan import total_kernel
from numba_hip.algorithms.tiles import ROWS_AHEAD, WAVES_IN_BLOCK, reads_ahead, tile_of_wave, tiles_of
from numba_hip.cooperative import values
from numba_hip.cooperative.operators import in_kernels, kept
from numba_hip.cooperative.value_functions import converted_to
from numba_hip.decorators import jit
from numba_hip.errors import AlgorithmError
from numba_hip.language import warp as warp_operations
from numba_hip.language.untyped_names import threadIdx

# What this means in a kernel, a type checker cannot know.
warp: Any = warp_operations


def reduce(
    source: Any,
    op: Operator = operator.add,
    init: Any = None,
    *,
    count: int | None = None,
    commutative: bool = True,
    out: Any = None,
    stream: StreamLike = None,
) -> Any:
    """*init* (if given) and all values of *source* combined by *op*.

    *source* is an array with one axis, of the device or the host, or an iterator; *count* is how many of its values are
    used, by default all. *op* is associative; say ``commutative=False`` if it is not commutative, which takes longer.
    The result has the type of *init* if that is a NumPy number, else that of the values: pass ``np.int64(0)`` for
    sums of small integers. It is returned as a number, or as a record for values that are tuples; if *out* is given, an
    array, it is stored in its element 0 without waiting. Raises `AlgorithmError` for arguments that do not fit,
    and for no values without *init*.
    """
    operands = Operands(stream)
    reader = operands.reader(source, "source")
    number = count_of(reader, count, "source")
    kind = accumulator_type(operands, reader.read, init)
    if not number and init is None:
        raise AlgorithmError("source has no values: pass init=, the result for no values")
    target = operands.output(out, "out", 1, kind)
    combine = values.combining(in_kernels(op, "op"), kind)
    read = values.read_transformed(reader.read, converted_to(kind))
    write = operands.writer(target, kind)
    start = None if init is None else add_initial(operands, init, kind)
    stream_or_default = operands.launch_stream
    if not number:
        _store_kernel(start, write)[1, 1, stream_or_default](*operands.leaves)
    else:
        tiles = tiles_of(operands.device, number)
        write_result = _write_from(start, combine, write)
        of_tiles = column_kernel if commutative else total_kernel
        is_one = tiles.tiles == 1
        read_total, write_total = (None, write_result) if is_one else operands.scratch(tiles.tiles, kind)
        first = of_tiles(read, combine, write_total, ahead=reads_ahead(operands.device))
        first[tiles.grid, tiles.block, stream_or_default](tiles.elements, tiles.length, tiles.tiles, *operands.leaves)
        if not is_one:
            last = total_kernel(read_total, combine, write_result)
            last[1, tiles.block, stream_or_default](tiles.tiles, tiles.tiles, 1, *operands.leaves)
    if out is None:
        return operands.number(target)
    operands.finish(target, out)
    return None


def transform_reduce(
    source: Any,
    transform: Callable[[Any], Any],
    op: Operator = operator.add,
    init: Any = None,
    *,
    count: int | None = None,
    commutative: bool = True,
    out: Any = None,
    stream: StreamLike = None,
) -> Any:
    """What *transform* makes of each value of *source*, combined as `reduce` does."""
    made = TransformIterator(source, transform)
    return reduce(made, op, init, count=count, commutative=commutative, out=out, stream=stream)


def segmented_reduce(
    source: Any,
    offsets: Any,
    op: Operator = operator.add,
    init: Any = 0,
    *,
    out: Any = None,
    stream: StreamLike = None,
) -> Any:
    """For each segment of *source*, *init* and its values in their order, combined by *op*.

    Segment k begins at ``offsets[k]`` and ends before ``offsets[k + 1]``; what is outside of *source* does not count.
    *offsets* ascend, which is checked where they are on the host; a segment that ends before it begins is empty.
    See `reduce` for the other arguments. Returns an array with an element for each segment.
    """
    operands = Operands(stream)
    reader = operands.reader(source, "source")
    number = count_of(reader, None, "source")
    kind = accumulator_type(operands, reader.read, init)
    bounds = operands.reader(offsets, "offsets")
    segments = max(count_of(bounds, None, "offsets") - 1, 0)
    check_offsets(operands, offsets, bounds.read)
    target = operands.output(out, "out", segments, kind)
    if segments:
        read = values.read_transformed(reader.read, converted_to(kind))
        start = add_initial(operands, init, kind)
        combine = values.combining(in_kernels(op, "op"), kind)
        kernel = _segment_kernel(read, bounds.read, combine, start, operands.writer(target, kind))
        lanes = int(operands.device.WARP_SIZE)
        blocks = -(-segments // WAVES_IN_BLOCK)
        kernel[blocks, (lanes, WAVES_IN_BLOCK), operands.launch_stream](number, segments, *operands.leaves)
    return operands.finish(target, out, None if out is not None else segments)


@kept
def column_kernel(read: Any, combine: Any, write: Any, *, ahead: bool = False) -> Any:
    """A kernel in which each lane combines a column of its wave's tile, and then the lanes: in another order than that
    of the values. With *ahead* it reads several rows at once."""

    @jit
    def combine_columns(count, length, tiles, *leaves):  # type: ignore[no-untyped-def]  # for kernels alone
        tile = tile_of_wave()
        if tile < tiles:
            lane, lanes = threadIdx.x, warp.warpsize
            start = tile * length
            end = min(start + length, count)
            rest = end - (end - start) % lanes
            if start < rest:
                value, row = read(leaves, start + lane), start + lanes
                if ahead:
                    while row + ROWS_AHEAD * lanes <= rest:
                        i = row + lane
                        one, two = read(leaves, i), read(leaves, i + lanes)
                        three, four = read(leaves, i + 2 * lanes), read(leaves, i + 3 * lanes)
                        value = combine(combine(combine(combine(value, one), two), three), four)
                        row += ROWS_AHEAD * lanes
                for whole in range(row, rest, lanes):  # whole rows, without a bound
                    value = combine(value, read(leaves, whole + lane))
                if rest + lane < end:
                    value = combine(value, read(leaves, rest + lane))
            else:
                value = read(leaves, min(start + lane, end - 1))
            total = wave.reduce(value, combine, end - start)
            if lane == 0:
                write(leaves, tile, total)

    return combine_columns


@kept
def _segment_kernel(read: Any, read_offset: Any, combine: Any, start: Any, write: Any) -> Any:
    """A kernel in which each wave combines the values of one segment."""

    @jit
    def combine_segments(count, segments, *leaves):  # type: ignore[no-untyped-def]
        segment = tile_of_wave()
        if segment < segments:
            lane, lanes = threadIdx.x, warp.warpsize
            first = min(max(types.int64(read_offset(leaves, segment)), 0), count)
            end = min(max(types.int64(read_offset(leaves, segment + 1)), 0), count)
            total = start(leaves, 0)
            for row in range(first, end, lanes):
                value = read(leaves, min(row + lane, end - 1))
                total = combine(total, wave.reduce(value, combine, end - row))
            if lane == 0:
                write(leaves, segment, total)

    return combine_segments


@kept
def _write_from(start: Any, combine: Any, write: Any) -> Any:
    """*write* of what it is given behind what *start* reads, if that is given."""
    if start is None:
        return write
    return jit(device=True)(lambda leaves, i, value: write(leaves, i, combine(start(leaves, i), value)))


@kept
def _store_kernel(start: Any, write: Any) -> Any:
    """A kernel of one thread that stores what *start* reads."""

    @jit
    def store_start(*leaves):  # type: ignore[no-untyped-def]
        write(leaves, 0, start(leaves, 0))

    return store_start
