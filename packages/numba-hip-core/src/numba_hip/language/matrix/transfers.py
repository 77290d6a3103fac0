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
from numba_hip.language.matrix.unit import I64, Tile, Visit, read_element, write_element
from numba_hip.language.stub import Lower, device_function, given, number_type
from numba_hip.named_calls import call_named

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
    is_partial: bool


def _define(
    function: str, name: str, fragment: types.Type, array: types.Type, places: tuple[types.Type, ...],
    leading: types.Type, layout: types.Type, partial: types.Type,
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
    is_partial = given(partial)
    if not isinstance(is_partial, bool):
        raise RequireLiteralValue(f"hip.matrix.{function}: partial has to be a constant, True or False, not {partial}")
    return _Call(function, kind, array, order, has_leading, is_partial)


def _check(call: _Call) -> None:
    """What is reported at the line: values that are not possible."""
    if call.layout not in LAYOUTS:
        raise MatrixError(f"hip.matrix.{call.function}: layout is {call.layout!r}; it can be one of {LAYOUTS}")
    if call.array.ndim == 2 and (call.has_leading or call.layout != "row"):
        raise MatrixError(
            f"hip.matrix.{call.function}: leading and layout are for arrays with one axis; this one, {call.array}, has "
            "two, and tells both itself: pass array.T for the other order"
        )
    if call.array.ndim == 1 and call.is_partial:
        raise MatrixError(
            f"hip.matrix.{call.function}: partial is for arrays with two axes, whose ends are known; this one, "
            f"{call.array}, has one: pass array.reshape(rows, columns)"
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
    array = context.make_array(call.array)(context, builder, args[1])

    def number(at: int) -> ir.Value:
        if isinstance(sig.args[at], types.Omitted):
            return I64(sig.args[at].value)
        return context.cast(builder, args[at], sig.args[at], types.int64)

    places = [number(places_at), number(places_at + 1)]
    leading = number(places_at + 2) if call.has_leading else None
    if context.enable_boundscheck and not call.is_partial:
        _check_bounds(context, builder, call, array, places, leading)
    transfer = _Transfer(context, builder, call, args[0], array, places, leading, is_load=is_load)
    if not call.is_partial:
        transfer.move_all()
        return
    with builder.if_else(transfer.is_whole()) as (whole, cut):
        with whole:
            transfer.move_all()
        with cut:
            transfer.move_inside()


class _Transfer:
    """Writes code that moves elements between the *fragment* of a call and *array*, from *places* on."""

    def __init__(
        self, context: Any, builder: ir.IRBuilder, call: _Call, fragment: ir.Value, array: Any,
        places: list[ir.Value], leading: ir.Value | None, *, is_load: bool,
    ) -> None:  # fmt: skip
        self._context, self._builder, self._call, self._is_load = context, builder, call, is_load
        self._fragment, self._array, self._places = fragment, array, places
        self._steps = _steps(context, builder, call, array, leading)
        first = builder.bitcast(array.data, BYTE.as_pointer())
        self._corner = _behind(builder, first, places, self._steps)

    def is_whole(self) -> ir.Value:
        """Whether all of the tile lies within the array, an i1."""
        builder, fine = self._builder, ir.Constant(ir.IntType(1), 1)
        sides = self._call.kind.rows, self._call.kind.columns
        extents = cgutils.unpack_tuple(builder, self._array.shape, 2)
        for place, side, extent in zip(self._places, sides, extents, strict=True):
            fine = builder.and_(fine, builder.icmp_signed(">=", place, I64(0)))
            fine = builder.and_(fine, builder.icmp_signed("<=", builder.add(place, I64(side)), extent))
        return fine

    def move_all(self) -> None:
        """All elements, as the device does it best."""
        call, unit = self._call, self._context.matrix_unit()
        tile = Tile(call.array.dtype, self._corner, self._steps, _contiguous(call), call.array.aligned)
        if not unit.move(self._builder, (call.kind, self._fragment), tile, is_load=self._is_load):
            unit.each(self._builder, call.kind, self._mover())

    def move_inside(self) -> None:
        """The elements within the array; those outside are loaded as 0, and not stored."""
        context, builder, kind = self._context, self._builder, self._call.kind
        unit, move = context.matrix_unit(), self._mover()
        firsts = [builder.add(place, start)
                  for place, start in zip(self._places, unit.origin(builder, kind), strict=True)]  # fmt: skip
        extents = cgutils.unpack_tuple(builder, self._array.shape, 2)
        if self._is_load:
            unit.fill(builder, (kind, self._fragment), context.get_constant_null(kind.dtype))

        def visit(index: ir.Value, row: ir.Value, column: ir.Value) -> None:
            at = zip(firsts, (row, column), extents, strict=True)
            inside = [builder.icmp_unsigned("<", builder.add(first, more), extent) for first, more, extent in at]
            with builder.if_then(builder.and_(*inside)):
                move(index, row, column)

        unit.each(builder, kind, visit)
        # Or LLVM would move the last load behind the branches, and those of a whole tile would not become one.
        call_named(builder, "llvm.sideeffect", ir.VoidType())

    def _mover(self) -> Visit:
        """What moves one element of the lane."""
        context, builder, call, steps = self._context, self._builder, self._call, self._steps
        kind, dtype, pointer_type = call.kind, call.array.dtype, self._array.data.type
        base = _behind(builder, self._corner, context.matrix_unit().origin(builder, kind), steps)
        align = None if call.array.aligned else 1

        def visit(index: ir.Value, row: ir.Value, column: ir.Value) -> None:
            distance = builder.add(builder.mul(row, steps[0]), builder.mul(column, steps[1]))
            pointer = builder.bitcast(builder.gep(base, [distance], source_etype=BYTE), pointer_type)
            if self._is_load:
                found = context.unpack_value(builder, dtype, pointer, align=align)
                value = context.cast(builder, found, dtype, kind.dtype)
                write_element(builder, context, kind, self._fragment, index, value)
            else:
                value = read_element(builder, context, kind, self._fragment, index)
                value = context.cast(builder, value, kind.dtype, dtype)
                context.pack_value(builder, dtype, value, pointer, align=align)

        return visit


@device_function("matrix.load")
def load(
    fragment: types.Type, source: types.Type, row: types.Type = 0, column: types.Type = 0,
    leading: types.Type = None, layout: types.Type = "row", partial: types.Type = False,
) -> tuple[types.Type, Lower]:  # fmt: skip
    """``load(fragment, source, row=0, column=0, leading=None, layout="row", partial=False)``: the elements of
    *source* from *row* and *column* on, as many as *fragment* has; converted, if they are of another type.

    *source* is a two-dimensional array in any order, or view of one. Or it is an array with one axis, in which
    *leading* elements lie from one row to the next, or with *layout* "col" from one column to the next. The tile has
    to lie within the array, unless *partial* is True, for arrays with two axes: what lies outside, also before the
    beginning, is 0 then."""
    call = _define("load", "source", fragment, source, (row, column), leading, layout, partial)

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        _transfer(call, context, builder, sig, args, 2, is_load=True)
        return context.get_dummy_value()

    return types.void, lower


@device_function("matrix.store")
def store(
    fragment: types.Type, target: types.Type, row: types.Type = 0, column: types.Type = 0,
    leading: types.Type = None, layout: types.Type = "row", partial: types.Type = False,
) -> tuple[types.Type, Lower]:  # fmt: skip
    """``store(fragment, target, row=0, column=0, leading=None, layout="row", partial=False)``: write the elements of
    *fragment* to *target*, from *row* and *column* on: the opposite of `load`. If *partial* is True, those that lie
    outside are left out."""
    call = _define("store", "target", fragment, target, (row, column), leading, layout, partial)
    if not call.array.mutable:
        raise TypingError("hip.matrix.store: target is an array that cannot be written")

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        _transfer(call, context, builder, sig, args, 2, is_load=False)
        return context.get_dummy_value()

    return types.void, lower
