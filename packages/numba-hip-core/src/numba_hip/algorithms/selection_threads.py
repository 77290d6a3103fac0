"""The parts of a radix selection on the CPU device: one thread goes through each part of the keys.

Few keys begin as the last one wanted does, and few are chosen: a branch that is hardly ever taken costs less than waves
whose lanes all take part.
"""

from __future__ import annotations

from typing import Any

from numba.core import types

from numba_hip.cooperative.operators import kept
from numba_hip.decorators import jit
from numba_hip.language.untyped_names import atomic_add, blockIdx, local_array

DIGIT_BITS = 8
DIGITS = 1 << DIGIT_BITS
TABLES = 4
AT_ONCE = 32
"""So many keys are looked at in vectors, and one by one only if some of them are of interest."""

MOST_PARTS = 64
LEAST_IN_PART = 16384

WORDS, COUNTS, STATE, PLACES, CHOSEN = range(5)
"""The leaves of the kernels, as those of `radix_selection`, and how many keys each part has before the last one and
equal to it."""


def parts_of(count: int) -> tuple[int, int]:
    """How many parts *count* keys have, and how many keys each of them."""
    length = max(-(-count // MOST_PARTS), LEAST_IN_PART)
    return -(-count // length), length


@kept
def count_by_thread(ordered: Any) -> Any:
    """A kernel that counts the digits at bit *shift* of the keys that begin as the last one does."""
    counters = TABLES * DIGITS

    @jit
    def count_digits(count, length, shift, *leaves):  # type: ignore[no-untyped-def]  # for kernels alone, as all of these
        found = local_array(counters, types.int32)
        for one in range(counters):
            found[one] = 0
        begin = leaves[STATE][0]
        end = min((blockIdx.x + 1) * length, count)
        for first in range(blockIdx.x * length, end, AT_ONCE):
            behind, alike = min(first + AT_ONCE, end), types.int32(0)
            for i in range(first, behind):
                word = types.uint64(ordered(leaves[WORDS][types.uint64(i)])) >> types.uint64(shift)
                alike |= types.int32(word >> types.uint64(DIGIT_BITS) == begin)
            if alike:
                for i in range(first, behind):
                    word = types.uint64(ordered(leaves[WORDS][types.uint64(i)])) >> types.uint64(shift)
                    if word >> types.uint64(DIGIT_BITS) == begin:
                        table = types.uint64(i % TABLES) * types.uint64(DIGITS)
                        found[table + (word & types.uint64(DIGITS - 1))] += 1
        for one in range(DIGITS):
            total = types.int64(0)
            for table in range(TABLES):
                total += found[table * DIGITS + one]
            if total > 0:
                atomic_add(leaves[COUNTS], one, total)

    return count_digits


@kept
def compare_by_thread(ordered: Any) -> Any:
    """A kernel that counts the keys of each part that come before the last one wanted, and its equals."""

    @jit
    def compare_part(count, length, *leaves):  # type: ignore[no-untyped-def]
        last, ahead, equal = leaves[STATE][0], types.int64(0), types.int64(0)
        for i in range(blockIdx.x * length, min((blockIdx.x + 1) * length, count)):
            word = types.uint64(ordered(leaves[WORDS][types.uint64(i)]))
            ahead += types.int64(word < last)
            equal += types.int64(word == last)
        leaves[CHOSEN][2 * blockIdx.x] = ahead
        leaves[CHOSEN][2 * blockIdx.x + 1] = equal

    return compare_part


@kept
def place_by_thread(ordered: Any) -> Any:
    """A kernel that stores the places of what is chosen: the keys before the last one, and as many of its equals as are
    wanted, in their order."""

    @jit
    def place_part(count, length, *leaves):  # type: ignore[no-untyped-def]
        last, wanted = leaves[STATE][0], types.int64(leaves[STATE][1])
        ahead, equal = types.int64(0), types.int64(0)
        for part in range(blockIdx.x):
            ahead += leaves[CHOSEN][2 * part]
            equal += leaves[CHOSEN][2 * part + 1]
        end = min((blockIdx.x + 1) * length, count)
        for first in range(blockIdx.x * length, end, AT_ONCE):
            behind, chosen = min(first + AT_ONCE, end), types.int32(0)
            for i in range(first, behind):
                chosen |= types.int32(types.uint64(ordered(leaves[WORDS][types.uint64(i)])) <= last)
            if chosen:
                for i in range(first, behind):
                    word = types.uint64(ordered(leaves[WORDS][types.uint64(i)]))
                    if word < last or (word == last and equal < wanted):
                        leaves[PLACES][ahead + min(equal, wanted)] = i
                    ahead += types.int64(word < last)
                    equal += types.int64(word == last)

    return place_part
