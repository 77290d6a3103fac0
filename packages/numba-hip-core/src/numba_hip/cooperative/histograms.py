"""Histograms of the items of a group, in an array that its threads share."""

from __future__ import annotations

from typing import Any, Literal

from numba.core import types

from numba_hip.cooperative.groups import Group
from numba_hip.cooperative.operators import kept
from numba_hip.cooperative.radix_ranks import radix_sorting
from numba_hip.cooperative.shared_values import items_of, memory_of, room_for
from numba_hip.decorators import jit
from numba_hip.language.untyped_names import atomic_add

ALGORITHMS = ("atomic", "sort")
"""How items are counted: each by an atomic addition; or sorted first, so that there is one addition for each bin."""


@kept
def filling(group: Group, bins: int) -> Any:
    """A device function of an array, which sets its first *bins* elements to zero."""
    rank_of, size_of, sync = group.rank, group.size, group.sync

    @jit(device=True)
    def fill(counts):  # type: ignore[no-untyped-def]  # for kernels alone, as all of these
        for one in range(rank_of(), bins, size_of()):
            counts[one] = 0
        sync()

    return fill


def counting(group: Group, kind: types.Type, items: int, bins: int, algorithm: Literal["atomic", "sort"]) -> Any:
    """A device function of (items, counts) that adds to element b of *counts* how many items are b."""
    if algorithm == "atomic":
        return _counting_at_once(group, items, bins)
    return _counting_sorted(group, kind, items, bins)


@kept
def _counting_at_once(group: Group, items: int, bins: int) -> Any:
    sync, check = group.sync, room_for(items)

    @jit(device=True)
    def count(given, counts):  # type: ignore[no-untyped-def]
        check(given)
        for k in range(items):
            if 0 <= given[k] < bins:
                atomic_add(counts, types.int32(given[k]), 1)
        sync()

    return count


@kept
def _counting_sorted(group: Group, kind: types.Type, items: int, bins: int) -> Any:
    allocate, read, write = memory_of(group, kind, group.threads * items, "exchange")
    sort = radix_sorting(
        group, types.Tuple((kind,)), kind, items, (0, kind.bitwidth), descending=False, striped_at_end=False
    )
    leaves_of, read_item, _ = items_of(kind)
    rank_of, size_of, sync, origin_of = group.rank, group.size, group.sync, group.origin

    @jit(device=True)
    def count(given, counts):  # type: ignore[no-untyped-def]
        rank, origin, total = rank_of(), origin_of(items), size_of() * items
        sort(given, (given,), total)
        places, own = allocate(), leaves_of(given)
        for k in range(items):
            write(places, origin + rank * items + k, read_item(own, k))
        sync()
        for k in range(items):
            place, one = rank * items + k, given[k]
            if 0 <= one < bins and (place == total - 1 or read(places, origin + place + 1) != one):
                counts[types.int32(one)] += place + 1
        sync()
        for k in range(items):
            place, one = rank * items + k, given[k]
            if 0 <= one < bins and (place == 0 or read(places, origin + place - 1) != one):
                counts[types.int32(one)] -= place
        sync()

    return count
