"""Arrays that a kernel creates: what shared, private and constant memory have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.errors import RequireLiteralValue, TypingError, UnsupportedError
from numba.core.typing.templates import AttributeTemplate

from hip_runtime.said_names import our
from numba_hip._numba.typing import from_dtype
from numba_hip.errors import AlignmentError
from numba_hip.language.registry import typing
from numba_hip.language.stub import given
from numba_hip.language.vector_types import element_of


def cannot_allocate() -> str:
    """What is said of a call that makes an array as NumPy does."""
    return (
        "this makes a new array, and a kernel cannot allocate memory: pass an array for the result, as in "
        f"np.add(a, b, out), assign the elements in a loop, or use {our('local.array')} or {our('shared.array')}"
    )


class _Allocation(AttributeTemplate):
    """The method that Numba's array constructors look up on the type. It does not use `overload_classmethod`, which
    would register its lowering for Numba's CPU target, too, whose constructors would then fail."""

    key = types.TypeRef(types.Array)

    def resolve__allocate(self, kind: types.TypeRef) -> types.Type:
        raise UnsupportedError(cannot_allocate())


typing.register_attr(_Allocation)


PYTHONS = {
    float: "np.float64, or np.float32, which has half of the bytes",
    int: "np.int64, or np.int32, which has half of the bytes",
    bool: "np.bool_",
    complex: "np.complex128, or np.complex64, which has half of the bytes",
}
"""Python's own types of numbers, which kernels know as functions, and the dtypes to pass instead."""

MOST_BYTES = 2**31 - 1
"""An array in shared or private memory cannot be larger in any case; devices have limits of their own."""


def constant_shape(function: str, shape: types.Type) -> tuple[int, ...]:
    """The extents of a shape, which is a literal integer or a tuple of them."""
    members: Sequence[Any] = shape if isinstance(shape, types.BaseTuple) else [shape]
    extents = []
    for member in members:
        extent = given(member)
        if isinstance(member, types.Float):
            raise TypingError(f"{function}: the shape has a {member}; divide with // instead of /, or write a constant")
        if extent is None:
            raise RequireLiteralValue(
                f"{function}: the shape must consist of constants, got {shape}; if a size is known only at run time, "
                "use a constant that it never exceeds, or shared memory whose size the launch gives: "
                f"{our('shared.array')}(0, dtype) and kernel[grid, block, stream, nbytes]"
            )
        if not isinstance(extent, int) or isinstance(extent, bool) or extent < 0:
            raise TypingError(f"{function}: the shape has extent {extent!r}; it must be an integer, 0 or more")
        extents.append(extent)
    return tuple(extents)


def constant_alignment(function: str, argument: types.Type) -> int:
    """The alignment that an argument means, a literal or left out; `check_alignment` checks its value."""
    if argument is None or isinstance(argument, (types.Omitted, types.NoneType)):
        return 1
    value = given(argument)
    if not isinstance(value, int) or isinstance(value, bool):
        raise RequireLiteralValue(f"{function}: alignment must be a constant integer, got {argument}")
    return value


def check_alignment(function: str, value: int) -> None:
    """Raises `AlignmentError` unless memory can be aligned to *value* bytes. Called when code is lowered, so that the
    error is reported at the line, and not as the reason why no implementation was found."""
    if value < 1 or value & (value - 1):
        raise AlignmentError(f"{function}: Alignment must be a power of two, got {value}")


def element_type(function: str, dtype: types.Type) -> types.Type:
    """The element type for a dtype: a Numba or NumPy type, or its name."""
    name = given(dtype)
    if isinstance(name, str):
        try:
            return from_dtype(np.dtype(name))
        except (TypeError, NotImplementedError):
            raise TypingError(f"{function}: Invalid NumPy dtype specified: {name!r}") from None
    if isinstance(dtype, (types.DType, types.NumberClass)):
        return dtype.dtype
    if isinstance(dtype, types.TypeRef):
        return dtype.instance_type
    vector = element_of(dtype)
    if vector is not None:
        return vector
    shown = dtype
    if isinstance(dtype, types.Function) and (meant := PYTHONS.get(dtype.typing_key)) is not None:
        shown = f"Python's {dtype.typing_key.__name__}; pass {meant}"
    raise TypingError(f"{function}: the dtype has to be a type of numbers or of vectors, got {shown}")


def bytes_of(function: str, context: Any, shape: Sequence[int], dtype: types.Type, most: int | None) -> int:
    """The bytes of an array. Raises `TypingError` if it exceeds *most*, the target's limit for that memory."""
    size = math.prod(shape) * int(context.get_abi_sizeof(context.get_data_type(dtype)))
    limit = MOST_BYTES if most is None else most
    if size > limit:
        where = "" if most is None else f" for {context.codegen().target}"
        raise TypingError(
            f"{function}: an array of shape {tuple(shape)} of {dtype} has {size} bytes; at most {limit}{where}"
        )
    return size


def make_array(
    context: Any, builder: ir.IRBuilder, kind: types.Array, data: ir.Value, shape: Sequence[ir.Value]
) -> ir.Value:
    """An array of type *kind*, in C order, of which element 0 is at *data* and the extents are *shape* (i64)."""
    itemsize = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    strides = [itemsize]
    for extent in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], extent))
    array = context.make_array(kind)(context, builder)
    context.populate_array(
        array,
        data=builder.bitcast(data, array.data.type),
        shape=list(shape),
        strides=strides,
        itemsize=itemsize,
        meminfo=None,
    )
    return array._getvalue()


def constants(context: Any, shape: Sequence[int]) -> list[ir.Constant]:
    """*shape* as values of LLVM."""
    return [context.get_constant(types.intp, extent) for extent in shape]
