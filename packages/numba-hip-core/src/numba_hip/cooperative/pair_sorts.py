"""Sorts as their callers see them: of keys alone, or of keys with values, which are sorted as one item."""

from __future__ import annotations

from typing import Any

from numba.core import types

from numba_hip.cooperative import values
from numba_hip.cooperative.groups import Group
from numba_hip.cooperative.merge_sorts import merge_sorting
from numba_hip.cooperative.operators import kept
from numba_hip.cooperative.radix_ranks import radix_sorting
from numba_hip.cooperative.shared_values import items_of
from numba_hip.cooperative.value_functions import rebuilt
from numba_hip.cooperative.value_parts import leaf_kinds
from numba_hip.decorators import jit


@kept
def radix_sort_of(
    group: Group, key: types.Type, value: types.Type | None, items: int, bits: tuple[int, int], descending: bool,
    striped: bool,
) -> Any:  # fmt: skip
    """A device function of (keys, values, valid_items=None), without *value* of (keys, valid_items=None)."""
    kind = types.Tuple([key, *([] if value is None else leaf_kinds(value))])
    sort = radix_sorting(group, kind, key, items, bits, descending=descending, striped_at_end=striped)
    every = _all_of(group, items)
    if value is None:

        @jit(device=True)
        def sort_keys(keys, valid_items=None):  # type: ignore[no-untyped-def]  # for kernels alone, as all of these
            if valid_items is None:
                sort(keys, (keys,), every())
            else:
                sort(keys, (keys,), valid_items)

        return sort_keys
    leaves_of = items_of(value).allocate

    @jit(device=True)
    def sort_pairs(keys, payload, valid_items=None):  # type: ignore[no-untyped-def]
        if valid_items is None:
            sort(keys, (keys, *leaves_of(payload)), every())
        else:
            sort(keys, (keys, *leaves_of(payload)), valid_items)

    return sort_pairs


@kept
def merge_sort_keys(group: Group, kind: types.Type, items: int, less: Any) -> Any:
    """A device function of (keys, valid_items=None)."""
    sort, every = merge_sorting(group, kind, items, less), _all_of(group, items)

    @jit(device=True)
    def sort_keys(keys, valid_items=None):  # type: ignore[no-untyped-def]
        if valid_items is None:
            sort(keys, every())
        else:
            sort(keys, valid_items)

    return sort_keys


@kept
def merge_sort_pairs(group: Group, key: types.Type, value: types.Type, items: int, less: Any) -> Any:
    """A device function of (keys, values, valid_items=None)."""
    kind = types.Tuple([*leaf_kinds(key), *leaf_kinds(value)])
    compare = values.compared(rebuilt(key), less)
    sort, every = merge_sorting(group, kind, items, compare), _all_of(group, items)
    keys_of, leaves_of = items_of(key).allocate, items_of(value).allocate

    @jit(device=True)
    def sort_pairs(keys, payload, valid_items=None):  # type: ignore[no-untyped-def]
        if valid_items is None:
            sort((*keys_of(keys), *leaves_of(payload)), every())
        else:
            sort((*keys_of(keys), *leaves_of(payload)), valid_items)

    return sort_pairs


def _all_of(group: Group, items: int) -> Any:
    size_of = group.size
    return jit(device=True)(lambda: size_of() * items)
