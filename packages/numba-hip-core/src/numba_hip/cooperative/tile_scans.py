"""Reductions and scans of several items of each thread: each thread combines its own, the group what comes of them."""

from __future__ import annotations

from typing import Any

from numba.core import types

from numba_hip.cooperative.groups import Group
from numba_hip.cooperative.operators import kept
from numba_hip.cooperative.scans import reduction, scan
from numba_hip.cooperative.shared_values import items_of
from numba_hip.cooperative.value_functions import converted_to
from numba_hip.decorators import jit


@kept
def value_reduction(group: Group, kind: types.Type, combine: Any) -> Any:
    """A device function of (value, valid_items=None)."""
    reduce_values, convert, size_of = reduction(group, kind, combine), converted_to(kind), group.size
    reduce_all = reduction(group, kind, combine, of_all=True)

    @jit(device=True)
    def reduce(value, valid_items=None):  # type: ignore[no-untyped-def]  # for kernels alone, as all of these
        if valid_items is None:
            return reduce_all(convert(value), size_of())
        return reduce_values(convert(value), valid_items)

    return reduce


@kept
def item_reduction(group: Group, kind: types.Type, items: int, combine: Any) -> Any:
    """A device function of (items, valid_items=None)."""
    reduce_values, rank_of, size_of = reduction(group, kind, combine), group.rank, group.size
    reduce_all = reduction(group, kind, combine, of_all=True)
    leaves_of, read, _ = items_of(kind, items)

    @jit(device=True)
    def reduce(given, valid_items=None):  # type: ignore[no-untyped-def]
        own = leaves_of(given)
        value = read(own, 0)
        if valid_items is None:
            for k in range(1, items):
                value = combine(value, read(own, k))
            return reduce_all(value, size_of())
        first = rank_of() * items
        for k in range(1, items):
            if first + k < valid_items:
                value = combine(value, read(own, k))
        return reduce_values(value, (valid_items + items - 1) // items)

    return reduce


@kept
def value_scan(group: Group, kind: types.Type, combine: Any, *, inclusive: bool, aggregate: bool) -> Any:
    """A device function of a value and what comes before all: the prefix, with *aggregate* also what all come to."""
    scan_values, convert, rank_of = scan(group, kind, combine), converted_to(kind), group.rank

    @jit(device=True)
    def scan_inclusively(value, initial=None):  # type: ignore[no-untyped-def]
        _, through, total = scan_values(convert(value))
        if initial is not None:
            through = combine(convert(initial), through)
        return through, total

    @jit(device=True)
    def scan_exclusively(value, initial):  # type: ignore[no-untyped-def]
        before, _, total = scan_values(convert(value))
        return (combine(convert(initial), before) if rank_of() > 0 else convert(initial)), total

    if inclusive:
        return (
            scan_inclusively
            if aggregate
            else jit(device=True)(lambda value, initial=None: scan_inclusively(value, initial)[0])
        )
    return (
        scan_exclusively if aggregate else jit(device=True)(lambda value, initial: scan_exclusively(value, initial)[0])
    )


@kept
def item_scan(group: Group, kind: types.Type, items: int, combine: Any, *, inclusive: bool) -> Any:
    """A device function of a thread's items, which it replaces by prefixes, and what comes before all; returns what all
    items come to."""
    scan_values, convert, rank_of = scan(group, kind, combine), converted_to(kind), group.rank
    leaves_of, read, write = items_of(kind, items)

    @jit(device=True)
    def combined(own):  # type: ignore[no-untyped-def]
        value = read(own, 0)
        for k in range(1, items):
            value = combine(value, read(own, k))
        return value

    @jit(device=True)
    def scan_inclusively(given, initial=None):  # type: ignore[no-untyped-def]
        own = leaves_of(given)
        before, _, total = scan_values(combined(own))
        running = read(own, 0)
        if rank_of() > 0:
            running = combine(before, running)
        if initial is not None:
            running = combine(convert(initial), running)
        for k in range(items):
            if k > 0:
                running = combine(running, read(own, k))
            write(own, k, running)
        return total

    @jit(device=True)
    def scan_exclusively(given, initial):  # type: ignore[no-untyped-def]
        own = leaves_of(given)
        before, _, total = scan_values(combined(own))
        running = convert(initial)
        if rank_of() > 0:
            running = combine(running, before)
        for k in range(items):
            value = read(own, k)
            write(own, k, running)
            running = combine(running, value)
        return total

    return scan_inclusively if inclusive else scan_exclusively


@kept
def from_zero(scan_from: Any) -> Any:
    """A device function of a value, or of items: *scan_from* of it and 0."""
    return jit(device=True)(lambda value: scan_from(value, 0))
