"""The first k elements in the order of their keys, without sorting the others.

Digit by digit, from the highest on, the key that comes last among the first k is found: the digits of the keys that
begin as it does are counted, and the counts tell its next digit (Alabi et al., "Fast k-selection algorithms for
graphics processing units", 2012). Then the places of the keys before it are collected, and of its equals as many as are
needed. The host waits for nothing.
"""

from __future__ import annotations

from typing import Any

from numba.core import types

from hip_runtime import DeviceArray
from numba_hip.algorithms.histograms import MOST_BLOCKS, THREADS
from numba_hip.algorithms.operands import Operands
from numba_hip.algorithms.selection_threads import compare_by_thread, count_by_thread, parts_of, place_by_thread
from numba_hip.algorithms.tiled_scan import scan_tiles
from numba_hip.algorithms.tiles import tiles_of
from numba_hip.cooperative import values
from numba_hip.cooperative.operators import kept
from numba_hip.cooperative.ordered_bits import ordering, word_dtype
from numba_hip.cooperative.value_functions import converted_to
from numba_hip.decorators import jit
from numba_hip.language.untyped_names import atomic_add, grid, gridsize, shared_array, syncthreads, threadIdx

DIGIT_BITS = 8
DIGITS = 1 << DIGIT_BITS

LEAST_SHARE = 8
"""If more than one of that many elements are wanted, sorting all of them is faster."""

WORDS, COUNTS, STATE, PLACES = range(4)
"""The leaves of the kernels: the bits of the keys, the counts of digits, what is known of the last key, and results."""

COUNTED = types.UniTuple(types.int64, 2)
"""How many keys are before the last one, and how many are equal to it."""


def select_places(operands: Operands, keys: DeviceArray, count: int, *, descending: bool, argument: str) -> DeviceArray:
    """The places of the first *count* of *keys* in their order, which callers know as *argument*; at least 1, and fewer
    than there are. The places ascend."""
    dtype = keys.dtype
    ordered = ordering(dtype, descending=descending)
    words = keys.view(word_dtype(dtype, argument))
    counts, state = operands.array(DIGITS, "int64"), operands.array(2, "uint64")
    places = operands.array(count, "int64")
    of_kernels = Operands.like(operands)
    for leaf in (words, counts, state, places):
        of_kernels.add(leaf)
    if by_threads(operands):
        _select_by_threads(of_kernels, ordered, dtype.itemsize, keys.size, count)
        return places
    stream, leaves = operands.launch_stream, of_kernels.leaves
    blocks = min(-(-keys.size // THREADS), MOST_BLOCKS)
    _start_kernel()[1, DIGITS, stream](count, *leaves)
    for shift in range(dtype.itemsize * 8 - DIGIT_BITS, -1, -DIGIT_BITS):
        _count_kernel(ordered)[blocks, THREADS, stream](keys.size, shift, *leaves)
        _choose_kernel()[1, 1, stream](*leaves)
    read, emit = _compare_with_last(ordered), _emit_place()
    scan_tiles(of_kernels, tiles_of(operands.device, keys.size), read, _add_both, COUNTED, emit)
    return places


def by_threads(operands: Operands) -> bool:
    """Whether one thread goes through each part of the keys, rather than lanes through all."""
    return operands.device.is_cpu


def _select_by_threads(operands: Operands, ordered: Any, itemsize: int, size: int, count: int) -> None:
    parts, length = parts_of(size)
    operands.add(operands.array(2 * parts, "int64"))
    stream, leaves = operands.launch_stream, operands.leaves
    _start_kernel()[1, DIGITS, stream](count, *leaves)
    for shift in range(itemsize * 8 - DIGIT_BITS, -1, -DIGIT_BITS):
        count_by_thread(ordered)[parts, 1, stream](size, length, shift, *leaves)
        _choose_kernel()[1, 1, stream](*leaves)
    compare_by_thread(ordered)[parts, 1, stream](size, length, *leaves)
    place_by_thread(ordered)[parts, 1, stream](size, length, *leaves)


@kept
def _start_kernel() -> Any:
    @jit
    def start(count, *leaves):  # type: ignore[no-untyped-def]  # for kernels alone, as all of these
        i = grid(1)
        leaves[COUNTS][i] = 0
        if i == 0:
            leaves[STATE][0] = 0
            leaves[STATE][1] = count

    return start


@kept
def _count_kernel(ordered: Any) -> Any:
    """A kernel that counts the digits at bit *shift* of the keys that begin as the last one does."""

    @jit
    def count_digits(count, shift, *leaves):  # type: ignore[no-untyped-def]
        found = shared_array(DIGITS, types.int32)
        found[threadIdx.x] = 0
        syncthreads()
        begin = leaves[STATE][0]
        for i in range(grid(1), count, gridsize(1)):
            word = types.uint64(ordered(leaves[WORDS][i])) >> types.uint64(shift)
            if word >> types.uint64(DIGIT_BITS) == begin:
                atomic_add(found, types.int32(word & types.uint64(DIGITS - 1)), 1)
        syncthreads()
        if found[threadIdx.x] > 0:
            atomic_add(leaves[COUNTS], threadIdx.x, types.int64(found[threadIdx.x]))

    return count_digits


@kept
def _choose_kernel() -> Any:
    """A kernel of one thread that takes the next digit of the last key from the counts, and clears them."""

    @jit
    def choose_digit(*leaves):  # type: ignore[no-untyped-def]
        wanted = types.int64(leaves[STATE][1])
        chosen, before, running = types.int64(0), types.int64(0), types.int64(0)
        for digit in range(DIGITS):
            count = leaves[COUNTS][digit]
            if running < wanted:
                chosen, before = digit, running
            running += count
            leaves[COUNTS][digit] = 0
        leaves[STATE][0] = (leaves[STATE][0] << types.uint64(DIGIT_BITS)) | types.uint64(chosen)
        leaves[STATE][1] = wanted - before

    return choose_digit


@jit(device=True)
def _add_both(a, b):  # type: ignore[no-untyped-def]
    return a[0] + b[0], a[1] + b[1]


@kept
def _compare_with_last(ordered: Any) -> Any:
    """A function of (leaves, i): whether key i comes before the last one, and whether it equals it, as numbers."""

    @jit(device=True)
    def compare(leaves, i):  # type: ignore[no-untyped-def]
        word, last = types.uint64(ordered(leaves[WORDS][i])), leaves[STATE][0]
        return types.int64(word < last), types.int64(word == last)

    return values.read_transformed(compare, converted_to(COUNTED))


@kept
def _emit_place() -> Any:
    """A function that stores the places of what is chosen: the keys before the last one, and as many of its equals as
    are wanted. What was counted through i - 1 tells where: one of both grew by 1 at i if i may be chosen."""

    @jit(device=True)
    def emit(leaves, i, before, through):  # type: ignore[no-untyped-def]
        ahead, equal = before if i > 0 else (types.int64(0), types.int64(0))
        wanted = types.int64(leaves[STATE][1])
        if through[0] > ahead or (through[1] > equal and equal < wanted):
            leaves[PLACES][ahead + min(equal, wanted)] = i

    return emit
