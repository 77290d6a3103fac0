"""The pass of a radix sort on the CPU device: one thread goes through each part of the elements.

What bounds it is that elements go to as many places in memory as there are digits. They are collected in private
memory, in a row for each digit, and a row is stored at once when it ends where a cache line of the result does (Satish
et al., "Fast sort on CPUs and GPUs", 2010).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from numba.core import types

from numba_hip.cooperative.operators import KEPT
from numba_hip.decorators import jit
from numba_hip.language import cache_hints
from numba_hip.language.untyped_names import blockIdx, local_array

expect_store: Any = cache_hints.expect_store

ROW = 16
"""Elements of a digit that are stored at once: a cache line of four bytes each."""

TABLES = 4
"""Neighbours are counted in different tables: most have the same digit in the high bits of small numbers, and counting
one would wait for the other."""


@lru_cache(KEPT)
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


@lru_cache(KEPT)
def move_by_thread(digit: Any, digits: int, kinds: tuple[types.Type, ...]) -> Any:
    """A kernel in which each thread moves the elements of its part: those of the first leaves, one or two arrays of
    *kinds*, to as many others, to the places that the leaf behind them has."""
    columns = len(kinds)
    place, has_two, first_kind, second_kind = 2 * columns, columns == 2, kinds[0], kinds[-1]
    other, slots = columns + 1, digits * ROW
    second_slots = slots if has_two else 1
    store_run, last = _store_run(), ROW - 1

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
            free, begin = local_array(digits, types.int64), local_array(digits, types.int64)
            rows, more = local_array(slots, first_kind), local_array(second_slots, second_kind)
            for one in range(digits):
                begin[one] = leaves[place][one * parts + part]
                free[one] = begin[one]
            for i in range(start, end):
                word = leaves[0][types.uint64(i)]
                own = types.uint64(digit(word, shift))
                target = free[own]
                free[own] = target + 1
                slot = own * types.uint64(ROW) + types.uint64(target & last)
                rows[slot] = word
                if has_two:
                    more[slot] = leaves[1][types.uint64(i)]
                if target & last == last:
                    row = max(target - last, begin[own])
                    store_run(leaves[columns], rows, own, row, target + 1)
                    expect_store(leaves[columns], types.uint64(target + 1))
                    if has_two:
                        store_run(leaves[other], more, own, row, target + 1)
                        expect_store(leaves[other], types.uint64(target + 1))
            for one in range(digits):
                target = free[one]
                row = max(target - (target & last), begin[one])
                store_run(leaves[columns], rows, types.uint64(one), row, target)
                if has_two:
                    store_run(leaves[other], more, types.uint64(one), row, target)

    return move_elements


@lru_cache(KEPT)
def _store_run() -> Any:
    """A function that stores the elements of a row that belong to the places from *row* up to *end*."""

    @jit(device=True)
    def store(target, rows, one, row, end):  # type: ignore[no-untyped-def]
        if end - row == ROW:
            for k in range(ROW):
                target[types.uint64(row + k)] = rows[one * types.uint64(ROW) + types.uint64(k)]
        else:
            for k in range(row, end):
                target[types.uint64(k)] = rows[one * types.uint64(ROW) + types.uint64(k % ROW)]

    return store
