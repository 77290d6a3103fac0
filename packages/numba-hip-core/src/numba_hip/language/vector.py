"""``hip.vector``: loads vectors from neighbouring elements of an array, and stores them.

A vector can have any shape. Its last axis runs along the last axis of the array, and so on. Contiguous elements become
one access of the device if it supports that many bytes at that alignment.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError

from hip_runtime.said_names import our
from numba_hip.language import array_allocation
from numba_hip.language.array_elements import place_from_start
from numba_hip.language.stub import Lower, device_function
from numba_hip.language.vector_types import VectorType, components, make_vector

MOST_COMPONENTS = 256
"""A vector has its components in registers: one of more than these is a mistake."""


class _Element(NamedTuple):
    """The address of a vector's component, and its alignment in bytes."""

    pointer: ir.Value
    alignment: int | None


@device_function("vector.load")
def load(
    array: types.Type, indices: types.Type, shape: types.Type, alignment: types.Type = None
) -> tuple[types.Type, Lower]:
    """``vector.load(array, indices, shape, alignment=None)``: the vector of *shape*, a constant or a tuple of them,
    that begins at ``array[indices]``.

    *indices* is an integer, or a tuple of one for each axis. An integer counts the elements of an array of more axes,
    too, which has to be in C order. *array* can be a pointer. *alignment* promises that the address of the first
    element is a multiple of that many bytes, and that the elements of a row lie side by side."""
    first = _check(our("vector.load"), array, indices)
    extents = array_allocation.constant_shape(our("vector.load"), shape)
    if not extents or not 1 <= math.prod(extents) <= MOST_COMPONENTS:
        raise TypingError(
            f"{our('vector.load')}: a vector has 1 to {MOST_COMPONENTS} components, not those of {extents}"
        )
    promised = _alignment(our("vector.load"), alignment)
    kind = VectorType(first.dtype, extents)
    _check_axes(our("vector.load"), first, kind)

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        _check_promise(our("vector.load"), promised)
        numbers = []
        for element in _elements(context, builder, (array, indices), args[:2], kind, promised):
            value = context.unpack_value(builder, kind.base, element.pointer, align=element.alignment)
            numbers.append((value, kind.base))
        return make_vector(context, builder, kind, numbers)

    return kind, lower


@device_function("vector.store")
def store(
    array: types.Type, index: types.Type, vector: types.Type, alignment: types.Type = None
) -> tuple[types.Type, Lower]:
    """``vector.store(array, index, vector, alignment=None)``: writes the components of *vector* to the elements from
    ``array[index]`` on. See `load`, which reads them."""
    first = _check(our("vector.store"), array, index)
    if not first.mutable:
        raise TypingError(f"{our('vector.store')}: the array is read-only")
    if not isinstance(vector, VectorType):
        raise TypingError(f"{our('vector.store')}: the third argument has to be a vector, got {vector}")
    promised = _alignment(our("vector.store"), alignment)
    _check_axes(our("vector.store"), first, vector)

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        _check_promise(our("vector.store"), promised)
        elements = _elements(context, builder, (array, index), args[:2], vector, promised)
        for element, (number, base) in zip(elements, components(builder, args[2], vector), strict=True):
            value = context.cast(builder, number, base, first.dtype)
            context.pack_value(builder, first.dtype, value, element.pointer, align=element.alignment)
        return context.get_dummy_value()

    return types.void, lower


def _check(function: str, array: types.Type, index: types.Type) -> Any:
    """The type of *array*, an array or a pointer that can be indexed by *index*. Raises `TypingError` otherwise."""
    numbers = types.Number, types.Boolean
    if not isinstance(array, (types.Array, types.CPointer)) or not isinstance(array.dtype, numbers):
        raise TypingError(f"{function}: the first argument has to be an array of numbers or a pointer, got {array}")
    indices = list(index) if isinstance(index, types.BaseTuple) else [index]
    if not all(isinstance(one, types.Integer) for one in indices):
        raise TypingError(f"{function}: the index has to be an integer or a tuple of integers, got {index}")
    if isinstance(array, types.CPointer):
        if isinstance(index, types.BaseTuple):
            raise TypingError(f"{function}: a pointer has one index, which counts elements; got {index}")
    elif array.ndim > 1 and not isinstance(index, types.BaseTuple):
        if array.layout != "C":
            raise TypingError(
                f"{function}: one index counts the elements of an array in C order; {array} takes one for each axis"
            )
    elif len(indices) != array.ndim:
        raise TypingError(f"{function}: an array of {array.ndim} dimensions cannot be indexed with {index}")
    return array


def _check_axes(function: str, array: Any, vector: VectorType) -> None:
    if isinstance(array, types.Array) and 1 < array.ndim < len(vector.shape):
        raise TypingError(f"{function}: {vector} has more axes than {array}")


def _alignment(function: str, argument: types.Type) -> int | None:
    """The alignment that the program promises, or None."""
    if argument is None or isinstance(argument, (types.Omitted, types.NoneType)):
        return None
    return array_allocation.constant_alignment(function, argument)


def _check_promise(function: str, promised: int | None) -> None:
    if promised is not None:
        array_allocation.check_alignment(function, promised)


def _elements(
    context: Any, builder: ir.IRBuilder, kinds: Any, args: Any, vector: VectorType, promised: int | None
) -> list[_Element]:
    """Where each component of *vector* is, which begins at the index (of *kinds*, *args*) in the array before it."""
    array, _ = kinds
    start, steps = _start(context, builder, kinds, args, vector)
    natural = context.get_abi_alignment(context.get_data_type(array.dtype))
    # A broken promise would end the process, where threads of it run the kernel: its accesses take any alignment.
    most = natural if promised is None or context.runs_in_process else promised
    size = int(context.get_abi_sizeof(context.get_data_type(array.dtype)))
    if promised is not None:
        steps[-1] = context.get_constant(types.intp, size)
    rank = len(steps)
    extents = vector.shape if rank == len(vector.shape) else (vector.count,)
    base = builder.bitcast(start, ir.IntType(8).as_pointer())
    found = []
    for place in itertools.product(*map(range, extents)):
        pointer = base
        for axis, index in enumerate(place):
            offset = builder.mul(steps[axis], context.get_constant(types.intp, index), flags=("nsw",))
            pointer = builder.gep(pointer, [offset], inbounds=True)
        in_row = place[-1] * size
        aligned = most if not any(place) else min(most, in_row & -in_row) if not any(place[:-1]) else natural
        if isinstance(array, types.Array) and not array.aligned:
            aligned = 1
        found.append(_Element(builder.bitcast(pointer, start.type), aligned))
    return found


def _start(
    context: Any, builder: ir.IRBuilder, kinds: Any, args: Any, vector: VectorType
) -> tuple[ir.Value, list[ir.Value]]:
    """The address of the first component, and how many bytes the next one along each axis of the vector is away."""
    array, index = kinds
    size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(array.dtype)))
    if isinstance(array, types.CPointer):
        return builder.gep(args[0], [context.cast(builder, args[1], index, types.intp)]), [size]
    made = context.make_array(array)(context, builder, args[0])
    whole = array.ndim > 1 and not isinstance(index, types.BaseTuple)  # as if it had one dimension
    extents = [made.nitems] if whole else cgutils.unpack_tuple(builder, made.shape, array.ndim)
    strides = [size] if whole else cgutils.unpack_tuple(builder, made.strides, array.ndim)
    given = cgutils.unpack_tuple(builder, args[1], len(index)) if isinstance(index, types.BaseTuple) else [args[1]]
    named = list(index) if isinstance(index, types.BaseTuple) else [index]
    places = [
        place_from_start(context, builder, value, of, extent)
        for value, of, extent in zip(given, named, extents, strict=True)
    ]
    if array.layout == "C":
        strides[-1] = size
    covered = vector.shape if len(vector.shape) <= len(strides) else (vector.count,)
    if context.enable_boundscheck:
        _check_bounds(context, builder, places, extents, covered)
    address = builder.bitcast(made.data, ir.IntType(8).as_pointer())
    for place, step in zip(places, strides, strict=True):
        address = builder.gep(address, [builder.mul(place, step, flags=("nsw",))], inbounds=True)
    return builder.bitcast(address, made.data.type), strides[len(strides) - len(covered) :]


def _check_bounds(
    context: Any, builder: ir.IRBuilder, places: list[ir.Value], extents: list[ir.Value], covered: tuple[int, ...]
) -> None:
    """Check the first and the last component along each axis."""
    for axis, (place, extent) in enumerate(zip(places, extents, strict=True)):
        cgutils.do_boundscheck(context, builder, place, extent, axis)
        beyond = axis - (len(places) - len(covered))
        if beyond >= 0 and covered[beyond] > 1:
            last = builder.add(place, context.get_constant(types.intp, covered[beyond] - 1))
            cgutils.do_boundscheck(context, builder, last, extent, axis)
