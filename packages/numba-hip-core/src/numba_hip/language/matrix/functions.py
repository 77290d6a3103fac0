"""The functions of ``hip.matrix`` that do not access arrays."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import RequireLiteralValue, TypingError

from numba_hip.language import array_allocation
from numba_hip.language.matrix.kinds import ROLES, Fragment, check_kind, check_operands
from numba_hip.language.stub import Lower, device_function, given, number_type

I32 = ir.IntType(32)


def fragment_type(function: str, name: str, argument: types.Type) -> Fragment:
    """The type of the argument *name*; raises `TypingError` if it is no fragment."""
    if not isinstance(argument, Fragment):
        raise TypingError(f"hip.matrix.{function}: {name} has to be a fragment of hip.matrix, not {argument}")
    return argument


def is_number(kind: types.Type) -> bool:
    """Whether elements can be converted to and from *kind*."""
    return isinstance(kind, types.Number) and not isinstance(kind, types.Complex)


@device_function("matrix.fragment")
def fragment(role: types.Type, shape: types.Type, dtype: types.Type) -> tuple[types.Type, Lower]:
    """``fragment(role, shape, dtype)``: a new small matrix, not initialised, whose elements the lanes of a wave have
    together.

    *role* is "a", "b" or "accumulator", *shape* the constants (m, n, k) of a product of (m, k) by (k, n), and *dtype*
    the type of the elements. `MatrixError` if the target has no such fragment. A fragment is this call's own, and a
    name for it another name, as with arrays."""
    name = given(role)
    if not isinstance(name, str):
        raise RequireLiteralValue(f"hip.matrix.fragment: role has to be a constant string, one of {ROLES}, not {role}")
    extents = array_allocation.constant_shape("hip.matrix.fragment", shape)
    element = array_allocation.element_type("hip.matrix.fragment", dtype)
    if name not in ROLES or len(extents) != 3:
        raise TypingError(
            f"hip.matrix.fragment: role is {name!r} and shape {extents}; pass one of {ROLES}, and (m, n, k)"
        )
    kind = Fragment(name, (extents[0], extents[1], extents[2]), element)

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        check_kind(kind)
        if context.enable_boundscheck:
            _check_waves(context, builder)
        unit = context.matrix_unit()
        unit.check(kind)
        return unit.reserve(builder, kind)

    return kind, lower


def _check_waves(context: Any, builder: ir.IRBuilder) -> None:
    """Raise `ValueError` in a kernel whose blocks end in a part of a wave."""
    threads = I32(1)
    for axis in "xyz":
        threads = builder.mul(threads, context.block_dim(builder, axis))
    rest = builder.urem(threads, context.wave_size(builder))
    with builder.if_then(builder.icmp_unsigned("!=", rest, I32(0)), likely=False):
        message = "hip.matrix needs whole waves: the threads of a block have to be a multiple of hip.warpsize"
        context.call_conv.return_user_exc(builder, ValueError, (message,))


@device_function("matrix.fill")
def fill(fragment: types.Type, value: types.Type) -> tuple[types.Type, Lower]:
    """``fill(fragment, value)``: make all elements *value*."""
    kind, number = fragment_type("fill", "fragment", fragment), number_type(value)
    if not is_number(number) and not isinstance(number, types.Boolean):
        raise TypingError(f"hip.matrix.fill: value has to be a number, not {number}")

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        element = context.cast(builder, args[1], sig.args[1], kind.dtype)
        context.matrix_unit().fill(builder, (kind, args[0]), element)
        return context.get_dummy_value()

    return types.void, lower


@device_function("matrix.mma")
def mma(d: types.Type, a: types.Type, b: types.Type, c: types.Type) -> tuple[types.Type, Lower]:
    """``mma(d, a, b, c)``: ``d = a @ b + c``, of fragments of one shape; *d* may be *c*.

    Products of float16, bfloat16, numbers of 8 bits and float32 are added up in float32, of int8 in int32 with
    wrap-around, and of float64 in float64. In which order, and whether a sum is rounded in between, is up to the
    device. `MatrixError` if the target does not multiply such fragments."""
    given_kinds = [fragment_type("mma", name, kind) for name, kind in zip("dabc", (d, a, b, c), strict=True)]

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        check_operands(*given_kinds)
        operands = list(zip(given_kinds, args, strict=True))
        context.matrix_unit().multiply(builder, *operands)
        return context.get_dummy_value()

    return types.void, lower


@device_function("matrix.position")
def position(fragment: types.Type, index: types.Type) -> tuple[types.Type, Lower]:
    """``position(fragment, index)``: row and column, in the whole matrix, of this lane's element number *index*: two
    int64."""
    kind = fragment_type("position", "fragment", fragment)
    if not isinstance(number_type(index), types.Integer):
        raise TypingError(f"hip.matrix.position: index has to be an integer, not {index}")

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        unit = context.matrix_unit()
        place = context.cast(builder, args[1], sig.args[1], types.int64)
        first, behind = unit.origin(builder, kind), unit.offset(builder, kind, place)
        pair = [builder.add(start, more) for start, more in zip(first, behind, strict=True)]
        return context.make_tuple(builder, sig.return_type, pair)

    return types.UniTuple(types.int64, 2), lower
