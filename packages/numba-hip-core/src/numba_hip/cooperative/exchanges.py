"""Exchange of items between the threads of a group, through shared memory.

Items are *blocked* if each thread has neighbours, and *striped* if neighbours are in neighbouring threads.
"""

from __future__ import annotations

from typing import Any

from numba.core import types

from numba_hip.cooperative.groups import Group
from numba_hip.cooperative.operators import kept
from numba_hip.cooperative.shared_values import items_of, memory_of, room_for
from numba_hip.decorators import jit


@jit(device=True)
def blocked(rank, _size, items, k):  # type: ignore[no-untyped-def]  # for kernels alone, as all of these
    """The place of item *k* of thread *rank*, which has *items*."""
    return rank * items + k


@jit(device=True)
def striped(rank, size, _items, k):  # type: ignore[no-untyped-def]
    """The place of item *k* of thread *rank* of *size*."""
    return k * size + rank


@kept
def rearrangement(group: Group, kind: types.Type, items: int, source: Any, target: Any) -> Any:
    """A device function of the items that takes them from the places *source* to the places *target*."""
    memory, own = memory_of(group, kind, group.threads * items, "exchange"), items_of(kind, items)
    allocate, read, write = memory
    leaves_of, read_item, write_item = own
    rank_of, size_of, sync, origin_of = group.rank, group.size, group.sync, group.origin

    @jit(device=True)
    def rearrange(given):  # type: ignore[no-untyped-def]
        places, own_items = allocate(), leaves_of(given)
        rank, size, origin = rank_of(), size_of(), origin_of(items)
        for k in range(items):
            write(places, origin + source(rank, size, items, k), read_item(own_items, k))
        sync()
        for k in range(items):
            write_item(own_items, k, read(places, origin + target(rank, size, items, k)))
        sync()

    return rearrange


@kept
def scattering(group: Group, kind: types.Type, items: int, target: Any) -> Any:
    """A device function of (items, ranks): item k goes to place ``ranks[k]`` of the group, and each thread gets those
    at the places *target*. Items with a negative rank go nowhere."""
    allocate, read, write = memory_of(group, kind, group.threads * items, "exchange")
    leaves_of, read_item, write_item = items_of(kind, items)
    rank_of, size_of, sync, origin_of = group.rank, group.size, group.sync, group.origin
    check = room_for(items)

    @jit(device=True)
    def scatter(given, ranks):  # type: ignore[no-untyped-def]
        check(ranks)
        places, own_items = allocate(), leaves_of(given)
        rank, size, origin = rank_of(), size_of(), origin_of(items)
        for k in range(items):
            if 0 <= ranks[k] < size * items:
                write(places, origin + ranks[k], read_item(own_items, k))
        sync()
        for k in range(items):
            write_item(own_items, k, read(places, origin + target(rank, size, items, k)))
        sync()

    return scatter
