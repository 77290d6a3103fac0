"""Stable merge sorts by a function that compares two items.

Threads sort their own items, and then merge: each finds by bisection where its part of the result begins in both inputs
(Green, McColl, Bader, "GPU merge path", 2012).
"""

from __future__ import annotations

from typing import Any

from numba.core import types

from numba_hip.cooperative.groups import Group
from numba_hip.cooperative.operators import kept
from numba_hip.cooperative.shared_values import items_of, memory_of
from numba_hip.decorators import jit


@kept
def own_sorting(kind: types.Type, items: int, less: Any) -> Any:
    """A device function of (leaves, count) that sorts the first *count* items of a thread, by exchanges of neighbours
    at places that are constants: the items stay in registers."""
    _, read, write = items_of(kind)

    @jit(device=True)
    def sort(leaves, count):  # type: ignore[no-untyped-def]  # for kernels alone, as all of these
        for turn in range(items):
            for pair in range(items // 2):
                k = 2 * pair + (turn & 1)
                if k + 1 < items and k + 1 < count:
                    one, other = read(leaves, k), read(leaves, k + 1)
                    if less(other, one):
                        write(leaves, k, other)
                        write(leaves, k + 1, one)

    return sort


@kept
def merge_sorting(group: Group, kind: types.Type, items: int, less: Any) -> Any:
    """A device function of (items, valid) that sorts the items before *valid*, which are of *kind*."""
    allocate, read, write = memory_of(group, kind, group.threads * items, "exchange")
    leaves_of, read_item, write_item = items_of(kind, items)
    sort_own = own_sorting(kind, items, less)
    find = _split(read, less)
    rank_of, size_of, sync, origin_of = group.rank, group.size, group.sync, group.origin

    @jit(device=True)
    def sort(given, valid):  # type: ignore[no-untyped-def]
        places, own = allocate(), leaves_of(given)
        start, origin = rank_of() * items, origin_of(items)
        count = min(valid, size_of() * items)
        sort_own(own, count - start)
        width = items
        while width < size_of() * items:
            for k in range(items):
                write(places, origin + start + k, read_item(own, k))
            sync()
            pair = start // (2 * width) * (2 * width)
            middle, end = min(pair + width, count), min(pair + 2 * width, count)
            if start < end:
                i = pair + find(places, origin + pair, middle - pair, origin + middle, end - middle, start - pair)
                j = middle + start - i
                for k in range(items):
                    if start + k < end:
                        takes_first = j >= end
                        if i < middle and j < end:
                            takes_first = not less(read(places, origin + j), read(places, origin + i))
                        if takes_first:
                            write_item(own, k, read(places, origin + i))
                            i += 1
                        else:
                            write_item(own, k, read(places, origin + j))
                            j += 1
            sync()
            width *= 2

    return sort


@kept
def _split(read: Any, less: Any) -> Any:
    """A device function: how many of the first *done* results of a merge are of the first of its inputs, of *ahead*
    items from *first* on; the second has *behind* from *second* on."""

    @jit(device=True)
    def find(places, first, ahead, second, behind, done):  # type: ignore[no-untyped-def]
        low, high = max(done - behind, 0), min(done, ahead)
        while low < high:
            middle = (low + high) // 2
            if less(read(places, second + done - 1 - middle), read(places, first + middle)):
                high = middle
            else:
                low = middle + 1
        return low

    return find
