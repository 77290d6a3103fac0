"""The pass of a radix sort on the CPU device: one thread goes through each part of the elements.

Elements go to as many places in memory as there are digits. Stores are done in their order, so one that has to fetch
its cache line holds up all others: each asks for the line that its digit needs next. Asking anew for a line that is
there already costs less than telling whether it is, or than collecting the elements of a line before they are stored.
"""

from __future__ import annotations

from typing import Any

from numba.core import types

from numba_hip.cooperative.operators import kept
from numba_hip.decorators import jit
from numba_hip.language import cache_hints
from numba_hip.language.untyped_names import blockIdx, local_array

expect_store: Any = cache_hints.expect_store

MOST_COLUMNS = 2
"""Arrays that `move_by_thread` moves: keys, and what goes with them."""

AHEAD = 16
"""How many elements ahead of a store its digit's memory is asked for: a cache line of four bytes each."""

TABLES = 4
"""Neighbours are counted in different tables: most have the same digit in the high bits of small numbers, and counting
one would wait for the other."""


@kept
def count_by_thread(digit: Any, digits: int, place: int) -> Any:
    """A kernel in which each thread counts the digits of its part, for the array at *place*."""
    counters = TABLES * digits

    @jit
    def count_digits(count, length, parts, shift, *leaves):  # type: ignore[no-untyped-def]  # for kernels alone
        part = blockIdx.x
        found = local_array(counters, types.int32)
        for one in range(counters):
            found[one] = 0
        start, end = part * length, min((part + 1) * length, count)
        whole = start + (end - start) // TABLES * TABLES
        for i in range(start, whole, TABLES):
            for table in range(TABLES):
                found[types.uint64(table * digits + digit(leaves[0][types.uint64(i + table)], shift))] += 1
        for i in range(whole, end):
            found[digit(leaves[0][i], shift)] += 1
        for one in range(digits):
            total = types.int64(0)
            for table in range(TABLES):
                total += found[table * digits + one]
            leaves[place][one * parts + part] = total

    return count_digits


@kept
def move_by_thread(digit: Any, digits: int, columns: int) -> Any:
    """A kernel in which each thread moves the elements of its part: those of the first leaves, one or two arrays, to as
    many others, to the places that the leaf behind them has."""
    place, has_two, other = 2 * columns, columns == MOST_COLUMNS, columns + 1

    @jit
    def move_elements(count, length, parts, shift, *leaves):  # type: ignore[no-untyped-def]
        part = blockIdx.x
        start, end = part * length, min((part + 1) * length, count)
        first = types.int64(digit(leaves[0][start], shift)) * parts + part
        target = leaves[place][first]
        behind = leaves[place][first + 1] if first + 1 < digits * parts else count
        if behind - target == end - start:  # all of them have that digit
            for i in range(end - start):
                leaves[columns][types.uint64(target + i)] = leaves[0][types.uint64(start + i)]
            if has_two:
                for i in range(end - start):
                    leaves[other][types.uint64(target + i)] = leaves[1][types.uint64(start + i)]
        else:
            free = local_array(digits, types.uint64)
            for one in range(digits):
                free[one] = leaves[place][one * parts + part]
            for i in range(start, end):
                word = leaves[0][types.uint64(i)]
                own = types.uint64(digit(word, shift))
                target = free[own]
                free[own] = target + types.uint64(1)
                leaves[columns][target] = word
                expect_store(leaves[columns], target + types.uint64(AHEAD))
                if has_two:
                    leaves[other][target] = leaves[1][types.uint64(i)]
                    expect_store(leaves[other], target + types.uint64(AHEAD))

    return move_elements
