"""Values of algorithms and of groups of threads: numbers and tuples of numbers, and how kernels read, write and convert
them.

A kernel gets one tuple of *leaves*: arrays and numbers. Readers and writers are device functions that know the places
of theirs in it. Each is made once for equal parts, so that equal calls find the kernel that was compiled before.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numba.core import types
from numba.core.errors import NumbaError

from hip_devicelib.codeobject import CPU_TARGET
from numba_hip._numba.compiler import compiling_for
from numba_hip._numba.typing import as_dtype, from_dtype
from numba_hip.compilation.target_registry import compile_target
from numba_hip.cooperative.operators import KEPT, kept
from numba_hip.decorators import jit
from numba_hip.errors import AlgorithmError

PLACE = types.int64
"""The type of an index into the elements of an algorithm."""


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
    """The dtypes of the numbers that a value of *kind* consists of. Raises `AlgorithmError` for values that are neither
    numbers nor tuples of numbers; *argument* is where they come from."""
    dtypes = _known_dtypes(kind)
    if not dtypes:
        raise AlgorithmError(f"{argument} has values of type {kind}; algorithms take numbers and tuples of numbers")
    return list(dtypes)


@lru_cache(KEPT)
def _known_dtypes(kind: types.Type) -> tuple[np.dtype[Any], ...]:
    """The dtypes of the numbers of a value of *kind*; none for values that are no numbers, nor tuples of some."""
    parts = leaf_kinds(kind)
    if not all(map(_is_number, parts)):
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
        found = as_dtype(dtype) if isinstance(dtype, types.Record) else np.dtype(dtype)
        if found.names is None:
            made = from_dtype(found)
        else:
            parts = [from_dtype(found.fields[name][0]) for name in found.names]
            made = types.NamedTuple(parts, record_class(found.names))
    except (TypeError, NotImplementedError, ValueError) as error:
        raise AlgorithmError(
            f"{argument} is {dtype!r}; pass a type of numbers, of records, or a tuple: {error}"
        ) from None
    dtypes_of(made, argument)
    return made


def _is_number(kind: types.Type) -> bool:
    return isinstance(kind, (types.Number, types.Boolean, types.NPDatetime, types.NPTimedelta))


def leaf_kinds(kind: types.Type) -> list[types.Type]:
    """The types of the numbers that a value of *kind* consists of."""
    return list(kind) if isinstance(kind, types.BaseTuple) else [kind]


@kept
def record_class(fields: tuple[str, ...]) -> type:
    """The class of the tuples that records with *fields* are read as."""
    return namedtuple("Record", fields)


@kept
def key_of(parts: int | None, named: type | None) -> Any:
    """A function of the numbers of an element: the key, a number or a tuple of the first *parts*."""
    if parts is None:
        return jit(device=True)(lambda element: element[0])
    if named is None:
        return jit(device=True)(lambda element: element[:parts])
    return jit(device=True)(lambda element: named(*element[:parts]))


@kept
def compared(key_of: Any, less: Any) -> Any:
    """*less* of the keys of two elements."""
    return jit(device=True)(lambda a, b: less(key_of(a), key_of(b)))


@kept
def read_leaf(place: int) -> Any:
    """A function of (leaves, i): element i of the array at *place*; i is not negative.

    An index without a sign says that: lanes then read neighbours at once, where one that could count from the end
    might be anywhere.
    """
    return jit(device=True)(lambda leaves, i: leaves[place][types.uint64(i)])


@kept
def read_constant(place: int) -> Any:
    """A function of (leaves, i): the value at *place*."""
    return jit(device=True)(lambda leaves, i: leaves[place])


@kept
def read_counter(place: int) -> Any:
    """A function of (leaves, i): the number at *place* and i, of the type of that number."""

    @jit(device=True)
    def read(leaves, i):  # type: ignore[no-untyped-def]  # for kernels alone, as all of these
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
def read_together(reads: tuple[Any, ...], named: type | None = None) -> Any:
    """A function of (leaves, i): a tuple of what each of *reads* returns, of the class *named* if given."""
    first = reads[0]
    joined: Any = jit(device=True)(lambda leaves, i: (first(leaves, i),))
    for read in reads[1:]:
        joined = _joined(joined, read)
    return joined if named is None else jit(device=True)(lambda leaves, i: named(*joined(leaves, i)))


@kept
def read_parts(places: tuple[int, ...], kind: types.Type) -> Any:
    """A function of (leaves, i): a value of *kind* whose parts are in the arrays at *places*."""
    if not isinstance(kind, types.BaseTuple):
        return read_leaf(places[0])
    return read_together(tuple(map(read_leaf, places)), class_of(kind))


def class_of(kind: types.Type) -> type | None:
    """The class of the tuples of *kind*, if they have names."""
    return kind.instance_class if isinstance(kind, types.BaseNamedTuple) else None


def _joined(read_tuple: Any, read: Any) -> Any:
    return jit(device=True)(lambda leaves, i: (*read_tuple(leaves, i), read(leaves, i)))


@kept
def write_leaves(places: tuple[int, ...], *, is_tuple: bool) -> Any:
    """A function of (leaves, i, value) that stores the *value*, or the parts of a tuple, in the arrays at *places*; i
    is not negative."""
    if not is_tuple:
        place = places[0]

        @jit(device=True)
        def write(leaves, i, value):  # type: ignore[no-untyped-def]
            leaves[place][types.uint64(i)] = value

        return write
    write = _write_part(places[0], 0)
    for part, place in enumerate(places[1:], 1):
        write = _both(write, _write_part(place, part))
    return write


def _write_part(place: int, part: int) -> Any:
    @jit(device=True)
    def write(leaves, i, value):  # type: ignore[no-untyped-def]
        leaves[place][types.uint64(i)] = value[part]

    return write


def _both(first: Any, second: Any) -> Any:
    @jit(device=True)
    def write(leaves, i, value):  # type: ignore[no-untyped-def]
        first(leaves, i, value)
        second(leaves, i, value)

    return write


@kept
def converted_to(kind: types.Type) -> Any:
    """A function that converts a value to *kind*: a number, or a tuple of as many numbers."""
    if not isinstance(kind, types.BaseTuple):
        return jit(device=True)(lambda value: kind(value))
    made = _convert_parts(list(kind))
    if not isinstance(kind, types.BaseNamedTuple):
        return made
    named = kind.instance_class
    return jit(device=True)(lambda value: named(*made(value)))


def _convert_parts(kinds: Sequence[types.Type]) -> Any:
    first = kinds[0]
    converted = jit(device=True)(lambda value: (first(value[0]),))
    for part, kind in enumerate(kinds[1:], 1):
        converted = _convert_next(converted, part, kind)
    return converted


def _convert_next(before: Any, part: int, kind: types.Type) -> Any:
    return jit(device=True)(lambda value: (*before(value), kind(value[part])))


def _check_result(operator: Any, kind: types.Type, argument: str) -> None:
    try:
        found = types.unliteral(returned_type(operator, kind, kind))
    except (NumbaError, ValueError, AttributeError):
        return  # a function of Python's own, or compiling the kernel tells where in the operator
    parts, wanted = leaf_kinds(found), leaf_kinds(kind)
    alike = isinstance(found, types.BaseTuple) == isinstance(kind, types.BaseTuple) and len(parts) == len(wanted)
    if not alike or not all(map(_is_number, parts)):
        raise AlgorithmError(f"{argument} gives {found} for two values of type {kind}; it has to give another of these")


@kept
def combining(operator: Any, kind: types.Type, argument: str = "op") -> Any:
    """*operator* with its result converted to *kind*: int32 and int32 is int64 in Numba. Raises `AlgorithmError`, which
    names the *argument*, if the result is no such value."""
    _check_result(operator, kind, argument)
    convert = converted_to(kind)
    return jit(device=True)(lambda a, b: convert(operator(a, b)))
