"""Lowering: registries, Numba's lowering of builtins and arrays, and its bounds checks."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

from numba.core import cgutils, fastmathpass, types
from numba.core.errors import UnsupportedError
from numba.core.imputils import RefType, Registry, builtin_registry, iternext_impl

__all__ = ["RefType", "Registry", "bounds_check_in_progress", "c_helper_names", "divide_reals", "getitem_of_any_index",
           "import_lowering_of_builtins", "in_one_unit", "iternext_impl", "mark_fastmath", "part_of_complex_array",
           "set_record_field", "setitem_of_any_index", "view_as_dtype", "view_of_part"]  # fmt: skip

BUILTIN_MODULES = (
    "numba.cpython.builtins", "numba.cpython.charseq", "numba.cpython.enumimpl", "numba.cpython.iterators",
    "numba.cpython.numbers", "numba.cpython.rangeobj", "numba.cpython.slicing", "numba.cpython.tupleobj",
    "numba.cpython.unicode", "numba.core.optional", "numba.misc.literal", "numba.np.arrayobj", "numba.np.npdatetime",
    "numba.np.unsafe.ndarray",
)  # fmt: skip
"""Modules that enter their lowering into Numba's own registry when imported."""


@cache
def import_lowering_of_builtins() -> list[Any]:
    """Load Numba's lowering of Python's builtins; returns its registries.

    If two entries have the same types, the one installed last is used.
    """
    for name in BUILTIN_MODULES:
        importlib.import_module(name)
    cmath = importlib.import_module("numba.cpython.cmathimpl")
    return [builtin_registry, cmath.registry]


def divide_reals(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Numba's lowering of ``/`` of floats, which raises where the divisor is 0."""
    from numba.cpython import numbers

    return numbers.real_div_impl(context, builder, sig, args)


def in_one_unit(context: Any, builder: Any, kinds: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """The *values* of two timedeltas of *kinds*, counted in the smaller one of their units."""
    from numba.np import npdatetime

    return list(npdatetime.normalize_timedeltas(context, builder, *values, *kinds))


def getitem_of_any_index(index: Any) -> Callable[..., Any]:
    """Numba's lowering of ``array[index]`` for an index of type *index*."""
    from numba.np import arrayobj

    found = arrayobj.getitem_array_tuple if isinstance(index, types.BaseTuple) else arrayobj.getitem_arraynd_intp
    return cast(Callable[..., Any], found)


def setitem_of_any_index(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Numba's lowering of ``array[index] = value``."""
    from numba.np import arrayobj

    return arrayobj.setitem_array(context, builder, sig, args)


def part_of_complex_array(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    """Numba's lowering of ``array.real`` and ``array.imag``."""
    from numba.np import arrayobj

    lower = {"real": arrayobj.array_real_part, "imag": arrayobj.array_imag_part}[name]
    return lower(context, builder, kind, value)


def set_record_field(context: Any, builder: Any, sig: Any, args: Any, name: str) -> Any:
    """Numba's lowering of ``record.name = value``."""
    from numba.np import arrayobj

    return arrayobj.record_setattr(context, builder, sig, args, name)


def view_as_dtype(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Numba's lowering of ``array.view(dtype)``."""
    from numba.np import arrayobj

    return arrayobj.array_view(context, builder, sig, args)


def view_of_part(
    context: Any, builder: Any, kinds: Sequence[Any], values: Sequence[Any]
) -> tuple[Any, list[Any], list[Any]]:
    """The part of an array that an index selects: pointer to its first element, extents, and strides.

    *kinds* and *values* are those of the array and of the index: integers, slices, an ellipsis, new axes.
    """
    from numba.np import arrayobj

    array_type, index_type = kinds
    array, index = values
    index_types, indices = [index_type], [index]
    if isinstance(index_type, types.BaseTuple):
        index_types, indices = list(index_type), cgutils.unpack_tuple(builder, index, len(index_type))
    made = arrayobj.make_array(array_type)(context, builder, array)
    index_types, indices = arrayobj.normalize_indices(context, builder, index_types, indices)
    try:
        pointer, extents, steps = arrayobj.basic_indexing(
            context, builder, array_type, made, index_types, indices, boundscheck=context.enable_boundscheck
        )
    except NotImplementedError:
        raise UnsupportedError(
            "an array cannot be assigned through an index that is an array itself: assign in a loop"
        ) from None
    return pointer, list(extents), list(steps)


def mark_fastmath(module: Any, options: Any) -> None:
    """Give the floating-point operations of a module, and its calls, LLVM's flags for *options* of ``fastmath``."""
    fastmathpass.rewrite_module(module, options)


def c_helper_names() -> frozenset[str]:
    """Names of the functions in C that lowering calls, each with ``numba_`` before it."""
    from numba import _helperlib

    return frozenset(_helperlib.c_helpers)


def bounds_check_in_progress() -> tuple[Any, Any, Any] | None:
    """Index, extent and axis of the bounds check that Numba is lowering, if the caller's caller is that function.

    Numba's exception does not contain the index, which is only known on the device.
    """
    caller = sys._getframe(2)
    if caller.f_code is not cgutils.do_boundscheck.__code__:
        return None
    found = caller.f_locals
    return found["ind"], found["dimlen"], found["axis"]
