"""``a.sort()``: sorts a one-dimensional array in ascending order, by the calling thread.

Insertion sort for few elements and heapsort for more: both need no memory and no recursion. NaN comes last, as in
NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence

from numba.core import types
from numba.core.errors import TypingError
from numba.extending import register_jitable

from hip_runtime.said_names import our
from numba_hip.language.methods import define_method
from numba_hip.language.unsupported_calls import refuse

FEW = 24
"""Elements up to which insertion takes no longer than a heap."""


@register_jitable
def _precedes(one, other):  # type: ignore[no-untyped-def]  # Numba compares annotations of overloads
    return one < other or (other != other and one == one)


@register_jitable
def _insert_all(a):  # type: ignore[no-untyped-def]
    for place in range(1, a.size):
        value = a[place]
        while place > 0 and _precedes(value, a[place - 1]):
            a[place] = a[place - 1]
            place -= 1
        a[place] = value


@register_jitable
def _sink(a, place, size):  # type: ignore[no-untyped-def]
    """Sift the element at *place* down in the heap of the first *size* elements."""
    value = a[place]
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and _precedes(a[child], a[child + 1]):
            child += 1
        if not _precedes(value, a[child]):
            break
        a[place] = a[child]
        place = child
    a[place] = value


@register_jitable
def _sort_heap(a):  # type: ignore[no-untyped-def]
    for place in range(a.size // 2 - 1, -1, -1):
        _sink(a, place, a.size)
    for last in range(a.size - 1, 0, -1):
        a[0], a[last] = a[last], a[0]
        _sink(a, 0, last)


def _define_sort(a):  # type: ignore[no-untyped-def]
    if a.ndim != 1 or not isinstance(a.dtype, (types.Integer, types.Float, types.Boolean)):
        raise TypingError(f"sort works on arrays of one dimension with real numbers in a kernel, not on {a}")
    if not a.mutable:
        raise TypingError("sort: the array is read-only")

    def sort(a):  # type: ignore[no-untyped-def]
        if a.size <= FEW:
            _insert_all(a)
        else:
            _sort_heap(a)

    return sort


def _check_sorted(name: str, args: Sequence[types.Type]) -> None:
    given = args[0] if args else types.none
    instead = "call its sort() instead, which sorts it in place"
    if not isinstance(given, types.Array):
        instead = f"assign them to a {our('local.array')}(n, dtype), and call its sort()"
    raise TypingError(f"{name}({given}) makes a list, and a kernel has no memory for one: {instead}")


refuse(sorted, "sorted", _check_sorted)
define_method(types.Array, "sort", _define_sort)
