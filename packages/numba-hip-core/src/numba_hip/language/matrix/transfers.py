"""Loads and stores of fragments: a tile of a two-dimensional array, or of one that is flat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import RequireLiteralValue, TypingError

from numba_hip.errors import MatrixError
from numba_hip.language.matrix.functions import fragment_type, is_number
from numba_hip.language.matrix.kinds import Fragment
from numba_hip.language.matrix.unit import I64, Tile, read_element, write_element
from numba_hip.language.stub import Lower, device_function, given, number_type

LAYOUTS = ("row", "col")
BYTE = ir.IntType(8)


@dataclass(frozen=True)
class _Call:
    """A load or a store: what is given, as types."""

    function: str
    kind: Fragment
    array: types.Array
    layout: str
    has_leading: bool


def _define(
    function: str, name: str, fragment: types.Type, array: types.Type, places: tuple[types.Type, ...],
    leading: types.Type, layout: types.Type,
) -> _Call:  # fmt: skip
    """Check the types of a call, of which the array is called *name*."""
    kind = fragment_type(function, "fragment", fragment)
    if not isinstance(array, types.Array) or array.ndim not in (1, 2) or not is_number(array.dtype):
        raise TypingError(f"hip.matrix.{function}: {name} has to be an array of numbers with 1 or 2 axes, not {array}")
    for argument in places:
        if not isinstance(number_type(argument), types.Integer):
            raise TypingError(f"hip.matrix.{function}: row and column have to be integers, not {argument}")
    order = given(layout)
    if not isinstance(order, str):
        raise RequireLiteralValue(f"hip.matrix.{function}: layout has to be a constant string, one of {LAYOUTS}")
    has_leading = not (
        isinstance(leading, types.NoneType) or (isinstance(leading, types.Omitted) and leading.value is None)
    )
    if has_leading and not isinstance(number_type(leading), types.Integer):
        raise TypingError(f"hip.matrix.{function}: leading has to be an integer, not {leading}")
    return _Call(function, kind, array, order, has_leading)


def _check(call: _Call) -> None:
    """What is reported at the line: values that are not possible."""
    if call.layout not in LAYOUTS:
        raise MatrixError(f"hip.matrix.{call.function}: layout is {call.layout!r}; it can be one of {LAYOUTS}")
    if call.array.ndim == 2 and (call.has_leading or call.layout != "row"):
        raise MatrixError(
            f"hip.matrix.{call.function}: leading and layout are for arrays with one axis; this one, {call.array}, has "
            "two, and tells both itself: pass array.T for the other order"
        )
    if call.array.ndim == 1 and not call.has_leading:
        raise MatrixError(
            f"hip.matrix.{call.function}: an array with one axis, {call.array}, needs leading, the elements from one "
            "row to the next, or from one column to the next with layout='col'"
        )


def _steps(
    context: Any, builder: ir.IRBuilder, call: _Call, array: Any, leading: ir.Value | None
) -> tuple[ir.Value, ir.Value]:
    """Bytes from one row to the next, and from one column to the next; known ones as constants."""
    size = I64(context.get_abi_sizeof(context.get_data_type(call.array.dtype)))
    strides = list(cgutils.unpack_tuple(builder, array.strides, call.array.ndim))
    if call.array.layout in "CF":
        strides[-1 if call.array.layout == "C" else 0] = size
    if call.array.ndim == 2:
        return strides[0], strides[1]
    far = builder.mul(leading, strides[0], flags=("nsw",))
    return (far, strides[0]) if call.layout == "row" else (strides[0], far)


def _check_bounds(
    context: Any, builder: ir.IRBuilder, call: _Call, array: Any, places: list[ir.Value], leading: ir.Value | None
) -> None:
    """Raise `IndexError` if the tile is not within the array, where that is asked for."""
    extents = cgutils.unpack_tuple(builder, array.shape, call.array.ndim)
    ends = [builder.add(place, I64(extent - 1))
            for place, extent in zip(places, (call.kind.rows, call.kind.columns), strict=True)]  # fmt: skip
    if call.array.ndim == 2:
        checked = [(corner[axis], extents[axis], axis) for corner in (places, ends) for axis in (0, 1)]
    else:
        outer = 0 if call.layout == "row" else 1
        checked = [(builder.add(builder.mul(corner[outer], leading), corner[1 - outer]), extents[0], 0)
                   for corner in (places, ends)]  # fmt: skip
    for place, extent, axis in checked:
        cgutils.do_boundscheck(context, builder, place, extent, axis)


def _contiguous(call: _Call) -> int | None:
    """The axis of the tile along which elements are neighbours, if the types tell."""
    if call.array.ndim == 1:
        return LAYOUTS.index("col" if call.layout == "row" else "row") if call.array.layout in "CF" else None
    return {"C": 1, "F": 0}.get(call.array.layout)


def _behind(builder: ir.IRBuilder, address: ir.Value, place: Sequence[ir.Value], steps: Sequence[ir.Value]) -> ir.Value:
    """The address of the element *place*, of row and column, of a matrix at *address*."""
    for index, step in zip(place, steps, strict=True):
        address = builder.gep(address, [builder.mul(index, step)], source_etype=BYTE)
    return address


def _transfer(
    call: _Call, context: Any, builder: ir.IRBuilder, sig: Any, args: Any, places_at: int, *, is_load: bool
) -> None:
    """Write code that moves each element of the lane between its *fragment* and its place in the array."""
    _check(call)
    kind, unit = call.kind, context.matrix_unit()
    array = context.make_array(call.array)(context, builder, args[1])

    def number(at: int) -> ir.Value:
        if isinstance(sig.args[at], types.Omitted):
            return I64(sig.args[at].value)
        return context.cast(builder, args[at], sig.args[at], types.int64)

    places = [number(places_at), number(places_at + 1)]
    leading = number(places_at + 2) if call.has_leading else None
    if context.enable_boundscheck:
        _check_bounds(context, builder, call, array, places, leading)
    steps = _steps(context, builder, call, array, leading)
    corner = _behind(builder, builder.bitcast(array.data, BYTE.as_pointer()), places, steps)
    tile = Tile(call.array.dtype, corner, steps, _contiguous(call))
    if unit.move(builder, (kind, args[0]), tile, is_load=is_load):
        return
    base = _behind(builder, corner, unit.origin(builder, kind), steps)
    align = None if call.array.aligned else 1

    def visit(index: ir.Value, row: ir.Value, column: ir.Value) -> None:
        distance = builder.add(builder.mul(row, steps[0]), builder.mul(column, steps[1]))
        pointer = builder.bitcast(builder.gep(base, [distance], source_etype=BYTE), array.data.type)
        if is_load:
            found = context.unpack_value(builder, call.array.dtype, pointer, align=align)
            value = context.cast(builder, found, call.array.dtype, kind.dtype)
            write_element(builder, context, kind, args[0], index, value)
        else:
            value = read_element(builder, context, kind, args[0], index)
            value = context.cast(builder, value, kind.dtype, call.array.dtype)
            context.pack_value(builder, call.array.dtype, value, pointer, align=align)

    unit.each(builder, kind, visit)


@device_function("matrix.load")
def load(
    fragment: types.Type, source: types.Type, row: types.Type = 0, column: types.Type = 0,
    leading: types.Type = None, layout: types.Type = "row",
) -> tuple[types.Type, Lower]:  # fmt: skip
    """``load(fragment, source, row=0, column=0, leading=None, layout="row")``: the elements of *source* from *row* and
    *column* on, as many as *fragment* has; converted, if they are of another type.

    *source* is a two-dimensional array in any order, or view of one. Or it is an array with one axis, in which
    *leading* elements lie from one row to the next, or with *layout* "col" from one column to the next. The tile has
    to lie within the array."""
    call = _define("load", "source", fragment, source, (row, column), leading, layout)

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        _transfer(call, context, builder, sig, args, 2, is_load=True)
        return context.get_dummy_value()

    return types.void, lower


@device_function("matrix.store")
def store(
    fragment: types.Type, target: types.Type, row: types.Type = 0, column: types.Type = 0,
    leading: types.Type = None, layout: types.Type = "row",
) -> tuple[types.Type, Lower]:  # fmt: skip
    """``store(fragment, target, row=0, column=0, leading=None, layout="row")``: write the elements of *fragment* to
    *target*, from *row* and *column* on: the opposite of `load`."""
    call = _define("store", "target", fragment, target, (row, column), leading, layout)
    if not call.array.mutable:
        raise TypingError("hip.matrix.store: target is an array that cannot be written")

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        _transfer(call, context, builder, sig, args, 2, is_load=False)
        return context.get_dummy_value()

    return types.void, lower
