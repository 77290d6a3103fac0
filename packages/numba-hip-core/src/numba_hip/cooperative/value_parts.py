"""The numbers that a value consists of, its *parts*: a number is its own only one, a tuple has those of its elements,
which may be tuples again. Records are read as named tuples, and the small arrays in them as tuples.

Kernels keep each part in an array of its own; what an operator gets is the value.
"""

from __future__ import annotations

from collections import namedtuple
from operator import itemgetter
from typing import Any

import numpy as np
from numba.core import types

from numba_hip._numba.typing import as_dtype, from_dtype
from numba_hip.cooperative.operators import kept


def leaf_kinds(kind: types.Type) -> list[types.Type]:
    """The types of the numbers that a value of *kind* consists of."""
    if not isinstance(kind, types.BaseTuple):
        return [kind]
    return [leaf for element in kind for leaf in leaf_kinds(element)]


def is_number(kind: types.Type) -> bool:
    """Whether values of *kind* are numbers, dates and truth values among them."""
    return isinstance(kind, (types.Number, types.Boolean)) or is_date(kind)


def is_date(kind: types.Type) -> bool:
    """Whether values of *kind* are dates or the times between them, which become no other type."""
    return isinstance(kind, (types.NPDatetime, types.NPTimedelta))


def is_like(kind: types.Type, wanted: types.Type) -> bool:
    """Whether a value of *kind* has a number wherever one of *wanted* has one, that can become one, and nothing
    else."""
    if not isinstance(wanted, types.BaseTuple):
        return is_number(kind) and _can_become(kind, wanted)
    return (
        isinstance(kind, types.BaseTuple) and len(kind) == len(wanted) and all(map(is_like, tuple(kind), tuple(wanted)))
    )


def _can_become(kind: types.Type, wanted: types.Type) -> bool:
    """Whether a number of *kind* says the same as one of *wanted*, but for its range and precision. The sum of a uint64
    and an int64 is a float64 in Numba."""
    if is_date(kind) or is_date(wanted):
        return bool(kind == wanted)
    if isinstance(kind, types.Complex):
        return isinstance(wanted, types.Complex)
    return not (isinstance(kind, types.Float) and isinstance(wanted, types.Integer) and wanted != types.uint64)


def without_literals(kind: types.Type) -> types.Type:
    """*kind* where the values of its parts, which the compiler may know, are not a part of the type."""
    if not isinstance(kind, types.BaseTuple):
        return types.unliteral(kind)
    return types.BaseTuple.from_types([without_literals(element) for element in kind], class_of(kind))


def class_of(kind: types.Type) -> type | None:
    """The class of the tuples of *kind*, if they have names."""
    return kind.instance_class if isinstance(kind, types.BaseNamedTuple) else None


@kept
def record_class(fields: tuple[str, ...]) -> type:
    """The class of the tuples that records with *fields* are read as. Fields may have names that those of named tuples
    cannot, such as ``class`` and ``_x``; kernels get at them by place, and by name where Python's grammar lets them."""
    named = namedtuple("Record", fields, rename=True)  # type: ignore[misc]  # of names that are known later
    if named._fields == fields:
        return named
    members = {name: property(itemgetter(place)) for place, name in enumerate(fields)}
    return type("Record", (named,), {"__slots__": (), "_fields": fields, **members})


def value_kind(dtype: np.dtype[Any]) -> types.Type:
    """The Numba type of the values that elements of *dtype* are read as. Raises what Numba does for those that it does
    not know."""
    if dtype.subdtype is not None:
        element, shape = dtype.subdtype
        kind = value_kind(element)
        for extent in reversed(shape):
            kind = types.BaseTuple.from_types([kind] * extent)
        return kind
    if dtype.names is None:
        return from_dtype(dtype)
    fields: Any = dtype.fields
    return types.BaseTuple.from_types([value_kind(fields[name][0]) for name in dtype.names], record_class(dtype.names))


def element_dtype(kind: types.Type) -> np.dtype[Any]:
    """The dtype of an array of values of *kind*. The fields of tuples without names are f0, f1, ..., as NumPy has it;
    within others, tuples of one type are small arrays."""
    if not isinstance(kind, types.BaseTuple):
        number: np.dtype[Any] = as_dtype(types.unliteral(kind))
        return number
    names = getattr(kind, "fields", None) or tuple(f"f{place}" for place in range(len(kind)))
    return np.dtype([(name, _field_dtype(element)) for name, element in zip(names, kind, strict=True)])


def _field_dtype(kind: types.Type) -> np.dtype[Any]:
    shape: tuple[int, ...] = ()
    while isinstance(kind, types.UniTuple):
        shape, kind = (*shape, kind.count), kind.dtype
    return np.dtype((element_dtype(kind), shape))


def numbers_of(value: Any) -> list[Any]:
    """The numbers of a *value* of the host: a tuple, a list, a record, an array, or a number."""
    if isinstance(value, np.void) and value.dtype.names is not None:
        return [number for name in value.dtype.names for number in numbers_of(value[name])]
    if isinstance(value, np.ndarray):
        value = list(value) if value.ndim else [value[()]]
    if isinstance(value, (tuple, list)):
        return [number for element in value for number in numbers_of(element)]
    return [value]
