"""How kernels read, write and combine the values of algorithms and of groups of threads.

A kernel gets one tuple of *leaves*: arrays and numbers. Readers and writers are device functions that know the places
of theirs in it. Each is made once for equal parts, so that equal calls find the kernel that was compiled before.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba.core import types
from numba.core.errors import NumbaError

from hip_devicelib.codeobject import CPU_TARGET
from numba_hip._numba.compiler import compiling_for
from numba_hip._numba.typing import as_dtype
from numba_hip.compilation.target_registry import compile_target
from numba_hip.cooperative.operators import KEPT, kept
from numba_hip.cooperative.value_functions import converted_to, expression_of, function_of, paths_of
from numba_hip.cooperative.value_parts import is_date, is_like, is_number, leaf_kinds, value_kind
from numba_hip.decorators import jit
from numba_hip.errors import AlgorithmError

PLACE = types.int64
"""The type of an index into the elements of an algorithm."""

MOST_PARTS = 64
"""Numbers of one value: kernels get an array for each, and keep them in registers."""


def returned_type(function: Any, *arguments: types.Type) -> types.Type:
    """The Numba type of what *function* returns for *arguments*."""
    target = compile_target(CPU_TARGET)
    typing_context = target.typing_context
    if hasattr(function, "py_func"):
        return typing_context.device_function(function).compile(arguments).signature.return_type
    with compiling_for(target.numba_name):  # Numba compiles functions of Python's own, such as `max`
        kind = typing_context.resolve_value_type(function)
        return typing_context.resolve_function_type(kind, arguments, {}).return_type


def dtypes_of(kind: types.Type, argument: str) -> list[np.dtype[Any]]:
    """The dtypes of the numbers that a value of *kind* consists of. Raises `AlgorithmError` for values that consist of
    something else, or of more than `MOST_PARTS`; *argument* is where they come from."""
    dtypes = _known_dtypes(kind)
    if not dtypes:
        raise AlgorithmError(
            f"{argument} has values of type {kind}; algorithms take numbers, and tuples and records of numbers"
        )
    if len(dtypes) > MOST_PARTS:
        raise AlgorithmError(
            f"{argument} has values of {len(dtypes)} numbers each; algorithms take {MOST_PARTS} at most: pass the "
            "fields that they look at with algorithms.CountingIterator(0), and gather the elements by the places"
        )
    return list(dtypes)


@lru_cache(KEPT)
def _known_dtypes(kind: types.Type) -> tuple[np.dtype[Any], ...]:
    """The dtypes of the numbers of a value of *kind*; none for values of anything else."""
    parts = leaf_kinds(kind)
    if not all(map(is_number, parts)):
        return ()
    return tuple(as_dtype(types.unliteral(part)) for part in parts)


def kind_of(dtype: Any, argument: str) -> types.Type:
    """The Numba type of the values that *dtype* means: a type of NumPy's, Numba's or Python's, a record type, whose
    values are named tuples, or a tuple of types. Raises `AlgorithmError` for others; *argument* is its name."""
    if isinstance(dtype, (tuple, list)):
        return types.Tuple([kind_of(part, f"{argument}[{place}]") for place, part in enumerate(dtype)])
    if isinstance(dtype, types.Type) and not isinstance(dtype, types.Record):
        dtypes_of(dtype, argument)
        return dtype
    try:
        made = value_kind(as_dtype(dtype) if isinstance(dtype, types.Record) else np.dtype(dtype))
    except (TypeError, NotImplementedError, ValueError) as error:
        raise AlgorithmError(
            f"{argument} is {dtype!r}; pass a type of numbers, of records, or a tuple: {error}"
        ) from None
    dtypes_of(made, argument)
    return made


@kept
def compared(key_of: Any, less: Any) -> Any:
    """*less* of the keys of two elements."""
    return jit(device=True)(lambda a, b: less(key_of(a), key_of(b)))


@kept
def read_leaf(place: int, hint: Any = None) -> Any:
    """A function of (leaves, i): element i of the array at *place*, read by *hint* if given; i is not negative.

    An index without a sign says that: lanes then read neighbours at once, where one that could count from the end
    might be anywhere.
    """
    if hint is not None:
        return jit(device=True)(lambda leaves, i: hint(leaves[place], types.uint64(i)))
    return jit(device=True)(lambda leaves, i: leaves[place][types.uint64(i)])


@kept
def read_constant(place: int) -> Any:
    """A function of (leaves, i): the value at *place*."""
    return jit(device=True)(lambda leaves, i: leaves[place])


@kept
def write_leaf(place: int) -> Any:
    """A function of (leaves, i, value) that stores a number in the array at *place*; i is not negative."""

    @jit(device=True)
    def write(leaves, i, value):  # type: ignore[no-untyped-def]  # for kernels alone, as all of these
        leaves[place][types.uint64(i)] = value

    return write


@kept
def read_counter(place: int) -> Any:
    """A function of (leaves, i): the number at *place* and i, of the type of that number."""

    @jit(device=True)
    def read(leaves, i):  # type: ignore[no-untyped-def]
        start = leaves[place]
        return type(start)(start + i)

    return read


@kept
def read_transformed(read: Any, function: Any) -> Any:
    """A function of (leaves, i): *function* of what *read* returns."""
    return jit(device=True)(lambda leaves, i: function(read(leaves, i)))


@kept
def read_permuted(read: Any, read_index: Any, size: int | None = None) -> Any:
    """A function of (leaves, i): what *read* returns for the index that *read_index* returns; negative ones count from
    the end if the number of values is at *size*."""
    if size is None:
        return jit(device=True)(lambda leaves, i: read(leaves, read_index(leaves, i)))

    @jit(device=True)
    def read_from_either_end(leaves, i):  # type: ignore[no-untyped-def]
        index = types.int64(read_index(leaves, i))
        return read(leaves, index if index >= 0 else index + leaves[size])

    return read_from_either_end


@kept
def read_reversed(read: Any, place: int) -> Any:
    """A function of (leaves, i): what *read* returns for the last place, which is at *place*, less i."""
    return jit(device=True)(lambda leaves, i: read(leaves, leaves[place] - i))


@kept
def read_together(reads: tuple[Any, ...]) -> Any:
    """A function of (leaves, i): a tuple of what each of *reads* returns."""
    names = {f"read_{place}": read for place, read in enumerate(reads)}
    return function_of("leaves, i", [f"return ({''.join(f'{name}(leaves, i), ' for name in names)})"], names)


@kept
def read_parts(places: tuple[int, ...], kind: types.Type) -> Any:
    """A function of (leaves, i): a value of *kind* whose parts are in the arrays at *places*; i is not negative."""
    if not isinstance(kind, types.BaseTuple):
        return read_leaf(places[0])
    names: dict[str, Any] = {"uint64": types.uint64}
    parts = (f"leaves[{place}][place]" for place in places)
    return function_of("leaves, i", ["place = uint64(i)", f"return {expression_of(kind, parts, names)}"], names)


@kept
def read_constants(places: tuple[int, ...], kind: types.Type) -> Any:
    """A function of (leaves, i): the value of *kind* whose parts are the numbers at *places*."""
    if not isinstance(kind, types.BaseTuple):
        return read_constant(places[0])
    names: dict[str, Any] = {}
    parts = (f"leaves[{place}]" for place in places)
    return function_of("leaves, i", [f"return {expression_of(kind, parts, names)}"], names)


@kept
def write_parts(places: tuple[int, ...], kind: types.Type) -> Any:
    """A function of (leaves, i, value) that stores the parts of a *value* of *kind* in the arrays at *places*; i is not
    negative."""
    if not isinstance(kind, types.BaseTuple):
        return write_leaf(places[0])
    stores = [f"leaves[{place}][place] = {path}" for place, path in zip(places, paths_of(kind), strict=True)]
    return function_of("leaves, i, value", ["place = uint64(i)", *stores], {"uint64": types.uint64})


@kept
def move_between(source: int, target: int, arrays: int) -> Any:
    """A function of (leaves, i, place): store element i of each of so many *arrays* from *source* on at *place* of one
    from *target* on."""
    moves = [f"leaves[{target + one}][place] = leaves[{source + one}][i]" for one in range(arrays)]
    return function_of("leaves, i, place", moves, {})


def _check_result(operator: Any, kind: types.Type, argument: str) -> None:
    found = _checked_type(operator, (kind, kind), argument)
    if found is not None and not is_like(found, kind):
        raise AlgorithmError(
            f"{argument} gives {found} for two values of type {kind}; it has to give another of these: convert it, or "
            "the values first"
        )


def _checked_type(function: Any, kinds: tuple[types.Type, ...], argument: str) -> types.Type | None:
    """The type of what *function* returns for values of *kinds*; None if only compiling the kernel tells what is wrong
    in it, and where. Raises `AlgorithmError` for a function of Python's or NumPy's that takes no such values."""
    is_written = hasattr(function, "py_func")
    try:
        return types.unliteral(returned_type(function if is_written else _calling(function, len(kinds)), *kinds))
    except (NumbaError, TypeError, ValueError, AttributeError):
        if is_written:
            return None
        raise AlgorithmError(
            f"{argument} is {getattr(function, '__name__', function)}, which kernels do not call with "
            f"{' and '.join(map(str, kinds))}: pass a function of Python that does the same"
        ) from None


@kept
def _calling(function: Any, takes: int) -> Any:
    """A device function that calls *function*: Numba finds some of Python's own only where they are called."""
    return jit(device=True)((lambda a: function(a)) if takes == 1 else (lambda a, b: function(a, b)))


@kept
def deciding(function: Any, kinds: tuple[types.Type, ...], argument: str) -> Any:
    """*function*, which tells something of values of *kinds*. Raises `AlgorithmError`, which names the *argument*, if
    it gives nothing that is true or false."""
    found = _checked_type(function, kinds, argument)
    if found is not None and not is_number(getattr(found, "type", found)):
        raise AlgorithmError(
            f"{argument} gives {found} for {' and '.join(map(str, kinds))}; it has to tell whether something is true: "
            "return True or False"
        )
    return function


@kept
def combining(operator: Any, kind: types.Type, argument: str = "op") -> Any:
    """*operator* with its result converted to *kind*: int32 and int32 is int64 in Numba. Raises `AlgorithmError`, which
    names the *argument*, if the result is no such value."""
    operator = of_dates(operator, kind)
    _check_result(operator, kind, argument)
    convert = converted_to(kind)
    return jit(device=True)(lambda a, b: convert(operator(a, b)))


OF_DATES: dict[Any, Any] = {
    np.maximum: lambda a, b: a if a != a or a > b else b,
    np.minimum: lambda a, b: a if a != a or a < b else b,
    np.fmax: lambda a, b: b if a != a or b > a else a,
    np.fmin: lambda a, b: b if a != a or b < a else a,
}
"""Functions of NumPy's that Numba gives a result without a unit for dates."""


@kept
def of_dates(operator: Any, kind: types.Type) -> Any:
    """*operator*, or one that does the same for dates, if these are what *kind* is."""
    if not is_date(kind) or not isinstance(operator, np.ufunc) or operator not in OF_DATES:
        return operator
    return jit(device=True)(OF_DATES[operator])
