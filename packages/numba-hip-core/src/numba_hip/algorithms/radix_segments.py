"""Radix sorts of the CPU device in one launch: a thread sorts a segment, which may be all there is.

One pass over the keys counts the digits of all passes, and a pass in which all keys have one digit is left out. Few
elements are in the caches, so digits of eight bits do, and launches would take longer than the passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba.core import types

from hip_runtime import DeviceArray
from numba_hip.algorithms.operands import Operands
from numba_hip.cooperative.operators import kept
from numba_hip.cooperative.ordered_bits import ordering, word_dtype
from numba_hip.cooperative.values import move_between
from numba_hip.decorators import jit
from numba_hip.language.untyped_names import blockIdx, local_array

DIGIT_BITS = 8
DIGITS = 1 << DIGIT_BITS
MOST_IN_ONE = 4096
"""More elements that are one segment are shared out among threads."""

MOST_INSERTED = 24
"""Fewer keys are sorted by insertion, as counters would take longer to clear."""


def sort_in_one_launch(operands: Operands, columns: Sequence[DeviceArray], ordered: Any, bits: int) -> None:
    """Sort *columns*, arrays of words, in place by the first of them: by the numbers of so many *bits* that *ordered*
    makes of its words."""
    _launch(Operands.like(operands), columns, ordered, bits, 1, whole)


def sort_segments(
    operands: Operands, values: DeviceArray, read_offset: Any, marks: int, *, descending: bool, argument: str
) -> None:
    """Sort each segment of *values*, which callers know as *argument*, in place: those that begin or end at one of the
    *marks* integers that *read_offset* returns for the leaves of *operands*."""
    words = values.view(word_dtype(values.dtype, argument))
    bounds = _between(read_offset, operands.add(marks))
    ordered = ordering(values.dtype, descending=descending)
    _launch(operands, [words], ordered, values.dtype.itemsize * 8, marks + 1, bounds)


def _launch(
    operands: Operands, columns: Sequence[DeviceArray], ordered: Any, bits: int, segments: int, bounds: Any
) -> None:
    """Sort segments; kernels get the leaves of *operands*, the *columns* and as much memory beside."""
    count, place = columns[0].size, len(operands.leaves)
    for column in columns:
        operands.add(column)
    for column in columns:
        operands.add(operands.array(count, column.dtype))
    kernel = _segment_kernel(bounds, ordered, -(-bits // DIGIT_BITS), place, len(columns))
    kernel[segments, 1, operands.launch_stream](count, *operands.leaves)


@jit(device=True)
def whole(_leaves, _segment, count):  # type: ignore[no-untyped-def]  # for kernels alone, as all of these
    """The bounds of the one segment that has all elements."""
    return types.int64(0), types.int64(count)


@kept
def _between(read_offset: Any, marks: int) -> Any:
    """A function of (leaves, segment, count): where a segment begins and ends."""

    @jit(device=True)
    def between(leaves, segment, count):  # type: ignore[no-untyped-def]
        start, end = types.int64(0), types.int64(count)
        if segment > 0:
            start = min(max(types.int64(read_offset(leaves, segment - 1)), 0), count)
        if segment < leaves[marks]:
            end = min(max(types.int64(read_offset(leaves, segment)), 0), count)
        return start, end

    return between


@kept
def _segment_kernel(bounds: Any, ordered: Any, passes: int, place: int, columns: int) -> Any:
    """A kernel in which each thread sorts a segment of the *columns* arrays from *place* on, by *passes* digits;
    those behind them have as much memory."""
    sort_radix, insert = _sort_radix(ordered, passes, place, columns), _insert(ordered, place)
    most_inserted = MOST_INSERTED if columns == 1 else 0

    @jit
    def sort_each(count, *leaves):  # type: ignore[no-untyped-def]
        start, end = bounds(leaves, types.int64(blockIdx.x), count)
        if end - start < most_inserted:
            insert(leaves, start, end)
        else:
            sort_radix(leaves, start, end)

    return sort_each


@kept
def _insert(ordered: Any, place: int) -> Any:
    @jit(device=True)
    def insert(leaves, start, end):  # type: ignore[no-untyped-def]
        for i in range(start + 1, end):
            word = leaves[place][types.uint64(i)]
            key, free = ordered(word), i
            while free > start and ordered(leaves[place][types.uint64(free - 1)]) > key:
                leaves[place][types.uint64(free)] = leaves[place][types.uint64(free - 1)]
                free -= 1
            leaves[place][types.uint64(free)] = word

    return insert


@kept
def _sort_radix(ordered: Any, passes: int, place: int, columns: int) -> Any:
    counters, beside = passes * DIGITS, place + columns
    there, back = _move_by(ordered, place, beside, columns), _move_by(ordered, beside, place, columns)
    copy_back = _copy(beside, place, columns)

    @jit(device=True)
    def sort_radix(leaves, start, end):  # type: ignore[no-untyped-def]
        free = local_array(counters, types.int32)
        for one in range(counters):
            free[one] = 0
        for i in range(start, end):
            key = types.uint64(ordered(leaves[place][types.uint64(i)]))
            for turn in range(passes):
                free[types.uint64(turn * DIGITS) + ((key >> types.uint64(turn * DIGIT_BITS)) & types.uint64(255))] += 1
        is_beside = False
        for turn in range(passes):
            before, has_one_digit = types.int32(0), False
            for one in range(turn * DIGITS, (turn + 1) * DIGITS):
                number = free[one]
                has_one_digit |= number == end - start
                free[one] = before
                before = types.int32(before + number)
            if not has_one_digit:
                if is_beside:
                    back(leaves, start, end, turn, free)
                else:
                    there(leaves, start, end, turn, free)
                is_beside = not is_beside
        if is_beside:
            copy_back(leaves, start, end)

    return sort_radix


@kept
def _move_by(ordered: Any, source: int, target: int, columns: int) -> Any:
    """A function that moves elements from the arrays from *source* on to those from *target* on, to the places that are
    free for digit *turn* of the first of them."""
    move = move_between(source, target, columns)

    @jit(device=True)
    def move_by(leaves, start, end, turn, free):  # type: ignore[no-untyped-def]
        shift, counter = types.uint64(turn * DIGIT_BITS), types.uint64(turn * DIGITS)
        for i in range(start, end):
            key = types.uint64(ordered(leaves[source][types.uint64(i)]))
            own = counter + ((key >> shift) & types.uint64(255))
            place = free[own]
            free[own] = types.int32(place + 1)
            place = min(place, end - 1 - start)  # of offsets that turn back, threads change each other's elements
            move(leaves, types.uint64(i), types.uint64(start + place))

    return move_by


@kept
def _copy(source: int, target: int, columns: int) -> Any:
    move = move_between(source, target, columns)

    @jit(device=True)
    def copy(leaves, start, end):  # type: ignore[no-untyped-def]
        for i in range(start, end):
            move(leaves, types.uint64(i), types.uint64(i))

    return copy
