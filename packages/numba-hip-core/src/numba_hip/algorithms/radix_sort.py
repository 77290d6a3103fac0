"""Stable radix sorts: a pass for each digit of the keys, eight or eleven bits, from the lowest on.

A pass counts the digits of each part of the elements, scans the counts digit by digit, and moves each element to the
next free place of its digit. On GPUs a block goes through each part, on the CPU device one thread, with the free places
in the first-level cache.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba.core import types

from hip_runtime import DeviceArray
from numba_hip.algorithms.operands import Operands
from numba_hip.algorithms.radix_blocks import (
    DIGIT_BITS,
    MOST_BLOCKS,
    THREADS,
    Columns,
    columns_of,
    count_by_block,
    move_by_block,
)
from numba_hip.algorithms.radix_segments import MOST_IN_ONE, sort_in_one_launch
from numba_hip.algorithms.radix_threads import MOST_COLUMNS, count_by_thread, move_by_thread
from numba_hip.algorithms.tiled_scan import scan_tiles
from numba_hip.algorithms.tiles import tiles_of
from numba_hip.cooperative import values
from numba_hip.cooperative.operators import kept
from numba_hip.cooperative.ordered_bits import ordering, word_dtype
from numba_hip.decorators import jit
from numba_hip.language.untyped_names import blockIdx, local_array

WIDE_DIGIT_BITS = 11
"""Digits of threads that have many elements: three passes over keys of four bytes, six over those of eight."""

LEAST_OF_WIDE_DIGITS = 1 << 16
"""For fewer elements the counts of so many digits take longer than a pass."""

MOST_PARTS_ON_CPU = 64
LEAST_ON_CPU = 4096
"""On the CPU device: tiles are for threads that have some, and each has counts for all digits."""


class Parts(NamedTuple):
    """*elements* in *parts* parts of *length* elements, each for one worker: a block or a thread."""

    elements: int
    length: int
    parts: int


def sort_pairs(
    operands: Operands,
    keys: DeviceArray,
    others: Sequence[DeviceArray],
    *,
    descending: bool,
    argument: str = "keys",
    sources: Sequence[DeviceArray] | None = None,
    bits: tuple[int, int] | None = None,
) -> None:
    """Sort *keys*, which callers know as *argument*, in place, and the elements of *others* with them; equal keys keep
    their order. With *sources*, arrays as large as *keys* and *others*, their elements are sorted, and they stay as
    they are. With *bits*, those from the first up to and without the second are looked at alone."""
    dtype, count = keys.dtype, keys.size
    columns = [_view(keys, word_dtype(dtype, argument)), *map(_as_words, others)]
    given = columns if sources is None else [_view(one, to.dtype) for one, to in zip(sources, columns, strict=True)]
    width = dtype.itemsize * 8 if bits is None else bits[1] - bits[0]
    if count < 2 or not width:
        _copy_columns(operands, given, columns)
        return
    ordered = ordering(dtype, descending=descending, bits=bits)
    if count <= MOST_IN_ONE and not uses_blocks(operands):
        _copy_columns(operands, given, columns)
        sort_in_one_launch(operands, columns, ordered, width)
        return
    spare = [operands.array(count, column.dtype) for column in columns]
    parts = _parts_of(operands, count, columns_of([column.dtype for column in columns]))
    digit_bits = _digit_bits(operands, dtype.itemsize, count)
    counts = operands.array((1 << digit_bits) * parts.parts, "int64")
    digit = _digit_of(ordered, digit_bits)
    shifts = range(0, width, digit_bits)
    if len(shifts) % 2 and given is columns:  # the first pass writes there, as the last one does
        _copy_columns(operands, columns, spare)
        given = spare
    for left, shift in zip(reversed(range(len(shifts))), shifts, strict=True):
        target = spare if left % 2 else columns
        _move_by_digit(operands, parts, digit, 1 << digit_bits, shift, given, target, counts)
        given = target


def _copy_columns(operands: Operands, sources: Sequence[DeviceArray], targets: Sequence[DeviceArray]) -> None:
    """Copy each of *sources* to its target, if those are others."""
    if sources is not targets:
        for target, source in zip(targets, sources, strict=True):
            target.copy_to_device(source, stream=operands.stream)


def _as_words(column: DeviceArray) -> DeviceArray:
    """*column* as unsigned numbers, if there are some of its size: what elements mean makes no difference."""
    size = column.dtype.itemsize
    return _view(column, np.dtype(f"u{size}")) if size in (1, 2, 4, 8) else column


def _view(array: DeviceArray, dtype: np.dtype[Any]) -> DeviceArray:
    """*array* with elements of *dtype*."""
    return array if array.dtype == dtype else array.view(dtype)


def uses_blocks(operands: Operands) -> bool:
    """Whether the elements are shared out among blocks, or among threads."""
    return not operands.device.is_cpu


def _digit_bits(operands: Operands, itemsize: int, count: int) -> int:
    """How many bits of keys of *itemsize* bytes a pass looks at."""
    is_wide = not uses_blocks(operands) and itemsize > 2 and count >= LEAST_OF_WIDE_DIGITS
    return WIDE_DIGIT_BITS if is_wide else DIGIT_BITS


def _parts_of(operands: Operands, count: int, columns: Columns) -> Parts:
    if uses_blocks(operands):
        tiles = -(-count // columns.tile)
        length = -(-tiles // MOST_BLOCKS) * columns.tile
        return Parts(count, length, -(-count // length))
    length = max(-(-count // MOST_PARTS_ON_CPU), LEAST_ON_CPU)
    return Parts(count, length, -(-count // length))


def _move_by_digit(
    operands: Operands,
    parts: Parts,
    digit: Any,
    digits: int,
    shift: int,
    sources: Sequence[DeviceArray],
    targets: Sequence[DeviceArray],
    counts: DeviceArray,
) -> None:
    """Move the elements of *sources* to *targets* in the order of the *digit*, one of *digits*, at bit
    *shift* of the first of them."""
    of_pass = Operands.like(operands)
    for array in (*sources, *targets, counts):
        of_pass.add(array)
    place, columns = len(sources) * 2, len(sources)
    stream = operands.launch_stream
    if uses_blocks(operands):
        grid, block = parts.parts, THREADS
        kinds = columns_of([source.dtype for source in sources])
        count_digits = count_by_block(digit, place)
        move = move_by_block(digit, kinds, place, int(operands.device.WARP_SIZE))
    else:
        grid, block = parts.parts, 1
        count_digits = count_by_thread(digit, digits, place)
        of_few = columns <= MOST_COLUMNS
        move = move_by_thread(digit, digits, columns) if of_few else _move_by_thread(digit, digits, place, columns)
    count_digits[grid, block, stream](*parts, shift, *of_pass.leaves)
    starts = Operands.like(operands)
    starts.add(counts)
    write = values.write_leaf(0)
    scan_tiles(
        starts,
        tiles_of(operands.device, counts.size),
        values.read_leaf(0),
        operator.add,
        types.int64,
        _emit_start(write),
    )
    move[grid, block, stream](*parts, shift, *of_pass.leaves)


@kept
def _emit_start(write: Any) -> Any:
    return jit(device=True)(lambda leaves, i, before, through: write(leaves, i, before if i > 0 else types.int64(0)))


@kept
def _digit_of(ordered: Any, bits: int) -> Any:
    mask = types.uint64((1 << bits) - 1)

    def digit(word, shift):  # type: ignore[no-untyped-def]
        return types.int32((types.uint64(ordered(word)) >> types.uint64(shift)) & mask)

    return jit(device=True)(digit)


@kept
def _move_by_thread(digit: Any, digits: int, place: int, columns: int) -> Any:
    move = values.move_between(0, columns, columns)

    @jit
    def move_elements(count, length, parts, shift, *leaves):  # type: ignore[no-untyped-def]
        part = blockIdx.x
        free = local_array(digits, types.int64)
        for one in range(digits):
            free[one] = leaves[place][one * parts + part]
        for i in range(part * length, min((part + 1) * length, count)):
            own = digit(leaves[0][i], shift)
            target = free[own]
            free[own] = target + 1
            move(leaves, i, target)

    return move_elements
