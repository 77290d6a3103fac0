"""What threads of a group do with the items of their neighbours: comparisons, differences, shifts."""

from __future__ import annotations

from typing import Any

from numba.core import types

from numba_hip.cooperative.groups import Group
from numba_hip.cooperative.operators import kept
from numba_hip.cooperative.shared_values import items_of, memory_of, room_for
from numba_hip.cooperative.value_functions import converted_to
from numba_hip.decorators import jit


@kept
def moving(group: Group, kind: types.Type) -> Any:
    """A device function of (value, source): the value of the thread number *source*, or its own if there is none."""
    allocate, read, write = memory_of(group, kind, group.threads, "neighbours")
    rank_of, size_of, sync, origin_of = group.rank, group.size, group.sync, group.origin

    @jit(device=True)
    def move(value, source):  # type: ignore[no-untyped-def]  # for kernels alone, as all of these
        places = allocate()
        rank, origin = rank_of(), origin_of(1)
        write(places, origin + rank, value)
        sync()
        moved = read(places, origin + (source if 0 <= source < size_of() else rank))
        sync()
        return moved

    return move


@kept
def moving_by(group: Group, kind: types.Type, *, around: bool) -> Any:
    """A device function of (value, distance): the value of the thread that is *distance* higher."""
    move, rank_of, size_of = moving(group, kind), group.rank, group.size
    convert = converted_to(kind)
    if around:
        return jit(device=True)(lambda value, distance: move(convert(value), (rank_of() + distance) % size_of()))
    return jit(device=True)(lambda value, distance: move(convert(value), rank_of() + distance))


@kept
def flagging(group: Group, kind: types.Type, items: int, differ: Any, *, heads: bool) -> Any:
    """A device function of (items, flags, outside): flags are 1 where an item and the one before it *differ*, and
    without *heads* it and the one behind it. What is before the first, or behind the last, is *outside*; their flag is
    1 if that is None."""
    leaves_of, read, _ = items_of(kind, items)
    move, rank_of, size_of, check = moving(group, kind), group.rank, group.size, room_for(items)

    @jit(device=True)
    def flag_heads(given, flags, outside=None):  # type: ignore[no-untyped-def]
        check(flags)
        own, rank = leaves_of(given), rank_of()
        other = move(read(own, items - 1), rank - 1)
        for k in range(items):
            one = read(own, k)
            flags[k] = 1 if differ(other, one) else 0
            other = one
        if rank == 0:
            if outside is None:
                flags[0] = 1
            else:
                flags[0] = 1 if differ(outside, read(own, 0)) else 0

    @jit(device=True)
    def flag_tails(given, flags, outside=None):  # type: ignore[no-untyped-def]
        check(flags)
        own, rank = leaves_of(given), rank_of()
        other = move(read(own, 0), rank + 1)
        for back in range(items):
            k = items - 1 - back
            one = read(own, k)
            flags[k] = 1 if differ(one, other) else 0
            other = one
        if rank == size_of() - 1:
            if outside is None:
                flags[items - 1] = 1
            else:
                flags[items - 1] = 1 if differ(read(own, items - 1), outside) else 0

    return flag_heads if heads else flag_tails


@kept
def subtracting(group: Group, kind: types.Type, items: int, subtract: Any, *, left: bool) -> Any:
    """A device function of (items, differences): *subtract* of each item and the one before it, without *left* the one
    behind it. The first, or the last, of all stays as it is."""
    leaves_of, read, write = items_of(kind, items)
    move, rank_of, size_of = moving(group, kind), group.rank, group.size

    @jit(device=True)
    def subtract_left(given, differences):  # type: ignore[no-untyped-def]
        own, made, rank = leaves_of(given), leaves_of(differences), rank_of()
        other = move(read(own, items - 1), rank - 1)
        for k in range(items):
            one = read(own, k)
            write(made, k, one if rank == 0 and k == 0 else subtract(one, other))
            other = one

    @jit(device=True)
    def subtract_right(given, differences):  # type: ignore[no-untyped-def]
        own, made, rank = leaves_of(given), leaves_of(differences), rank_of()
        last = rank == size_of() - 1
        other = move(read(own, 0), rank + 1)
        for back in range(items):
            k = items - 1 - back
            one = read(own, k)
            write(made, k, one if last and back == 0 else subtract(one, other))
            other = one

    return subtract_left if left else subtract_right


@kept
def shifting(group: Group, kind: types.Type, items: int, *, up: bool) -> Any:
    """A device function of (items, shifted): each item goes to the next place, without *up* to the one before. The
    first, or the last, place keeps its item."""
    leaves_of, read, write = items_of(kind, items)
    move, rank_of, size_of = moving(group, kind), group.rank, group.size

    @jit(device=True)
    def shift_up(given, shifted):  # type: ignore[no-untyped-def]
        own, made, rank = leaves_of(given), leaves_of(shifted), rank_of()
        other = move(read(own, items - 1), rank - 1)
        if rank == 0:
            other = read(own, 0)
        for k in range(items):
            one = read(own, k)
            write(made, k, other)
            other = one

    @jit(device=True)
    def shift_down(given, shifted):  # type: ignore[no-untyped-def]
        own, made, rank = leaves_of(given), leaves_of(shifted), rank_of()
        other = move(read(own, 0), rank + 1)
        if rank == size_of() - 1:
            other = read(own, items - 1)
        for back in range(items):
            k = items - 1 - back
            one = read(own, k)
            write(made, k, other)
            other = one

    return shift_up if up else shift_down
