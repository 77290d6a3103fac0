"""Ranks of digits, and radix sorts made of them.

Each thread counts its digits in columns of its own, and a scan over all columns, digit by digit, tells where the items
of a digit and a thread go (Merrill and Grimshaw, "High performance and scalable radix sorting", 2011).
"""

from __future__ import annotations

from typing import Any

from numba.core import types

from numba_hip._numba.typing import as_dtype
from numba_hip.cooperative.exchanges import blocked, scattering, striped
from numba_hip.cooperative.groups import Group
from numba_hip.cooperative.operators import kept
from numba_hip.cooperative.ordered_bits import ordering, word_dtype
from numba_hip.cooperative.scans import exclusive_sum
from numba_hip.cooperative.shared_values import memory_of, room_for
from numba_hip.decorators import jit
from numba_hip.language.untyped_names import local_array

DIGIT_BITS = 4


@kept
def ranking(group: Group, items: int, bits: int) -> Any:
    """A device function of (digits, ranks): for each of a thread's digits, numbers of *bits* bits, where it goes if all
    of the group are sorted stably."""
    digit_count = 1 << bits
    allocate, read, write = memory_of(group, types.uint16, group.threads * digit_count, "counters")
    rank_of, size_of, sync, origin_of = group.rank, group.size, group.sync, group.origin
    add_up, check = exclusive_sum(group), room_for(items)

    @jit(device=True)
    def rank_digits(digits, ranks):  # type: ignore[no-untyped-def]  # for kernels alone
        check(digits)
        check(ranks)
        counters = allocate()
        rank, size, origin = rank_of(), size_of(), origin_of(digit_count)
        for digit in range(digit_count):
            write(counters, origin + digit * size + rank, 0)
        for k in range(items):
            place = origin + types.int32(digits[k]) * size + rank
            before = types.int32(read(counters, place))
            ranks[k] = before
            write(counters, place, before + 1)
        sync()
        first = origin + rank * digit_count
        found = types.int32(0)
        for one in range(digit_count):
            found += read(counters, first + one)
        running, _ = add_up(found)
        for one in range(digit_count):
            count = types.int32(read(counters, first + one))
            write(counters, first + one, running)
            running += count
        sync()
        for k in range(items):
            ranks[k] += types.int32(read(counters, origin + types.int32(digits[k]) * size + rank))
        sync()

    return rank_digits


@kept
def radix_sorting(
    group: Group,
    kind: types.Type,
    key: types.Type,
    items: int,
    bits: tuple[int, int],
    *,
    descending: bool,
    striped_at_end: bool,
) -> Any:
    """A device function of (keys, elements, valid) that sorts items of *kind* by the bits from ``bits[0]`` up to
    ``bits[1]`` of their first number, of type *key*. *elements* are all the items have, with the keys. Items from
    *valid* on stay behind the others. In the end they are striped if
    *striped_at_end*."""
    dtype = as_dtype(key)
    word, ordered = word_dtype(dtype, "dtype").type, ordering(dtype, descending=descending)
    low, high = bits
    rank_digits = ranking(group, items, DIGIT_BITS)
    move = scattering(group, kind, items, blocked)
    move_last = scattering(group, kind, items, striped if striped_at_end else blocked)
    rank_of, check = group.rank, room_for(items)

    @jit(device=True)
    def sort(keys, elements, valid):  # type: ignore[no-untyped-def]
        check(keys)
        words = keys.view(word)
        digits, ranks = local_array(items, types.int32), local_array(items, types.int32)
        first = rank_of() * items
        for bit in range(low, high, DIGIT_BITS):
            mask = (1 << min(DIGIT_BITS, high - bit)) - 1
            for k in range(items):
                digit = types.int32((types.uint64(ordered(words[k])) >> types.uint64(bit)) & types.uint64(mask))
                digits[k] = digit if first + k < valid else mask
            rank_digits(digits, ranks)
            if bit + DIGIT_BITS < high:
                move(elements, ranks)
            else:
                move_last(elements, ranks)

    return sort
