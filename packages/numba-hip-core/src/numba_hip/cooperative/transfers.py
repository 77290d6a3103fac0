"""Loads and stores of the items of a group: a tile of an array."""

from __future__ import annotations

from typing import Any

from numba.core import types

from numba_hip.cooperative.exchanges import blocked, rearrangement, striped
from numba_hip.cooperative.groups import Group
from numba_hip.cooperative.operators import kept
from numba_hip.cooperative.shared_values import items_of
from numba_hip.decorators import jit

ALGORITHMS = ("direct", "striped", "transpose", "vectorize", "warp_transpose")
"""How items are loaded and stored. All leave them blocked, but for "striped"."""


@kept
def load_at(group: Group, kind: types.Type, items: int, place: Any) -> Any:
    """A device function of (source, items, first, valid, default): each item gets the element of *source* that is
    *first* behind the place *place*. From *valid* on, items keep what they have, or get the *default* if that is not
    None. Without *valid*, None, all are loaded."""
    elements_of, (leaves_of, read, write) = items_of(kind).allocate, items_of(kind, items)
    rank_of, size_of = group.rank, group.size

    @jit(device=True)
    def load(source, given, first, valid, default):  # type: ignore[no-untyped-def]  # for kernels alone
        elements, own = elements_of(source), leaves_of(given)
        rank, size = rank_of(), size_of()
        for k in range(items):
            i = first + place(rank, size, items, k)
            if valid is None or i < valid:
                write(own, k, read(elements, i))
            elif default is not None:
                write(own, k, default)

    return load


@kept
def store_at(group: Group, kind: types.Type, items: int, place: Any) -> Any:
    """A device function of (target, items, first, valid): the opposite of `load_at`'s."""
    elements_of, (leaves_of, read, write) = items_of(kind).allocate, items_of(kind, items)
    rank_of, size_of = group.rank, group.size

    @jit(device=True)
    def store(target, given, first, valid):  # type: ignore[no-untyped-def]
        elements, own = elements_of(target), leaves_of(given)
        rank, size = rank_of(), size_of()
        for k in range(items):
            i = first + place(rank, size, items, k)
            if valid is None or i < valid:
                write(elements, i, read(own, k))

    return store


def loading(group: Group, waves: Group, kind: types.Type, items: int, algorithm: str) -> Any:
    """A device function of (source, items, valid=None, default=None); *waves* are those of the group."""
    if algorithm in ("direct", "vectorize", "striped"):
        return _whole_load(load_at(group, kind, items, striped if algorithm == "striped" else blocked))
    part = waves if algorithm == "warp_transpose" else group
    plain = load_at(part, kind, items, striped)
    return _transposed_load(plain, rearrangement(part, kind, items, striped, blocked), _first(group, part), items)


def storing(group: Group, waves: Group, kind: types.Type, items: int, algorithm: str) -> Any:
    """A device function of (target, items, valid=None)."""
    if algorithm in ("direct", "vectorize", "striped"):
        return _whole_store(store_at(group, kind, items, striped if algorithm == "striped" else blocked))
    part = waves if algorithm == "warp_transpose" else group
    plain = store_at(part, kind, items, striped)
    there, back = (rearrangement(part, kind, items, *way) for way in ((blocked, striped), (striped, blocked)))
    return _transposed_store(plain, there, back, _first(group, part), items)


def _first(group: Group, part: Group) -> Any:
    """A device function of how many items a thread has: where in the tile of *group* that of *part* begins."""
    return _at_start if part == group else part.origin


@jit(device=True)
def _at_start(_each):  # type: ignore[no-untyped-def]
    return 0


@kept
def _whole_load(load: Any) -> Any:
    return jit(device=True)(lambda source, items, valid=None, default=None: load(source, items, 0, valid, default))


@kept
def _transposed_load(plain: Any, transpose: Any, origin: Any, count: int) -> Any:
    @jit(device=True)
    def load(source, items, valid=None, default=None):  # type: ignore[no-untyped-def]
        plain(source, items, origin(count), valid, default)
        transpose(items)

    return load


@kept
def _whole_store(store: Any) -> Any:
    return jit(device=True)(lambda target, items, valid=None: store(target, items, 0, valid))


@kept
def _transposed_store(plain: Any, there: Any, back: Any, origin: Any, count: int) -> Any:
    @jit(device=True)
    def store(target, items, valid=None):  # type: ignore[no-untyped-def]
        there(items)
        plain(target, items, origin(count), valid)
        back(items)  # the caller's items stay as they were

    return store
