"""Shared memory for values of any kind, of a size that is known at compile time: an array for each of their numbers.

Functions that need memory for the same number of values of the same kind, and for the same purpose, have the same.
Whoever uses it waits for the others of its group after the last access, so that the next one finds it free.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from numba.core import types

from numba_hip.cooperative import values
from numba_hip.cooperative.groups import Group
from numba_hip.cooperative.operators import kept
from numba_hip.cooperative.value_functions import function_of
from numba_hip.cooperative.value_parts import leaf_kinds
from numba_hip.decorators import jit
from numba_hip.language.untyped_names import shared_array

Purpose = Literal["counters", "exchange", "neighbours", "offsets", "totals"]
"""What memory is for; a function that uses another one may not use memory of the same purpose meanwhile."""


class SharedValues(NamedTuple):
    """Device functions: of nothing, which gives *leaves*, of (leaves, i), and of (leaves, i, value)."""

    allocate: Any
    read: Any
    write: Any


@kept
def memory_of(group: Group, kind: types.Type, count: int, purpose: Purpose) -> SharedValues:
    """Shared memory for *count* values of *kind*: the waves of a block, which do not wait for one another, have none
    together with the block."""
    kinds = leaf_kinds(kind)
    owner = f"{purpose} of waves" if group.is_wave else purpose
    places = tuple(range(len(kinds)))
    names = {f"allocate_{place}": _allocate_one(kinds[place], count, f"{owner} {place}") for place in places}
    allocate = function_of("", [f"return ({''.join(f'{name}(), ' for name in names)})"], names)
    return SharedValues(allocate, values.read_parts(places, kind), values.write_parts(places, kind))


def _allocate_one(kind: types.Type, count: int, purpose: str) -> Any:
    @jit(device=True)
    def allocate():  # type: ignore[no-untyped-def]  # for kernels alone, as all of these
        return shared_array(count, kind) if purpose else None

    return allocate


@kept
def items_of(kind: types.Type, count: int = 0) -> SharedValues:
    """The items of a thread: an array, for values that are tuples a tuple of arrays, one for each of their numbers, of
    *count* elements at least. What they are is given in place of the memory: `SharedValues.allocate` makes leaves of
    it.

    Kernels raise an `IndexError` for fewer; LLVM leaves nothing of that where the number of elements is a constant.
    """
    places = tuple(range(len(leaf_kinds(kind))))
    leaves = "items" if isinstance(kind, types.BaseTuple) else "(items,)"
    checks = [f"check({leaves}[{place}])" for place in places] if count else []
    leaves_of = function_of("items", [*checks, f"return {leaves}"], {"check": room_for(count)} if count else {})
    return SharedValues(leaves_of, values.read_parts(places, kind), values.write_parts(places, kind))


@kept
def room_for(count: int) -> Any:
    """A device function of an array, which raises an `IndexError` if that has fewer than *count* elements."""
    message = f"a thread's array has less than {count} elements, the number of its items"

    @jit(device=True)
    def check(array):  # type: ignore[no-untyped-def]
        if array.size < count:
            raise IndexError(message)

    return check
