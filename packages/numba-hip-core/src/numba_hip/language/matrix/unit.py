"""What a target defines of fragments: which lane has which element, and how they are multiplied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from llvmlite import ir
from numba.core import types

from numba_hip.language.matrix.kinds import Fragment

I64 = ir.IntType(64)

Visit = Callable[[ir.Value, ir.Value, ir.Value], None]
"""Writes code for an element: its number, and how many rows and columns it lies behind the lane's first; all i64."""

Operand = tuple[Fragment, ir.Value]
"""A fragment: its type, and the address of the lane's elements."""


@dataclass(frozen=True)
class Tile:
    """The part of an array that a fragment is loaded from or stored to."""

    dtype: types.Type
    """The type of the array's elements."""
    address: ir.Value
    """That of the first element, of bytes."""
    steps: tuple[ir.Value, ir.Value]
    """Bytes from one row to the next, and from one column to the next; i64."""
    contiguous: int | None
    """The axis along which elements are known to be neighbours: 0 down a column, 1 along a row."""
    aligned: bool
    """Whether elements are at multiples of their own bytes."""


class MatrixUnit(Protocol):
    """The fragments of one target."""

    def check(self, kind: Fragment) -> None:
        """Raise `MatrixError` if the target has no such fragment."""

    def stored(self, kind: Fragment) -> types.Type:
        """The type as which elements lie in memory."""

    def most(self, kind: Fragment) -> int:
        """How many elements a lane can have."""

    def reserve(self, builder: ir.IRBuilder, kind: Fragment) -> ir.Value:
        """The address, of bytes, of new memory for the elements of a lane."""

    def count(self, builder: ir.IRBuilder, kind: Fragment) -> ir.Value:
        """How many elements a lane has, an i64."""

    def origin(self, builder: ir.IRBuilder, kind: Fragment) -> tuple[ir.Value, ir.Value]:
        """Row and column of this lane's first element, i64."""

    def offset(self, builder: ir.IRBuilder, kind: Fragment, index: ir.Value) -> tuple[ir.Value, ir.Value]:
        """How many rows and columns element number *index* lies behind the lane's first; all i64."""

    def each(self, builder: ir.IRBuilder, kind: Fragment, visit: Visit) -> None:
        """Write code that visits all elements of this lane, in their order."""

    def fill(self, builder: ir.IRBuilder, operand: Operand, value: ir.Value) -> None:
        """Make all elements of this lane *value*, of the fragment's type."""

    def move(self, builder: ir.IRBuilder, operand: Operand, tile: Tile, *, is_load: bool) -> bool:
        """Write code that loads the fragment from *tile*, or stores it there; False, and no code, where going over
        `each` element is as good."""

    def multiply(self, builder: ir.IRBuilder, target: Operand, a: Operand, b: Operand, c: Operand) -> None:
        """``target = a @ b + c``. Raises `MatrixError` if the target has no instruction for these types."""


def element_place(builder: ir.IRBuilder, context: Any, kind: Fragment, data: ir.Value, index: ir.Value) -> ir.Value:
    """The address of element number *index*, an i64, of the fragment at *data*."""
    element = context.get_data_type(context.matrix_unit().stored(kind))
    return builder.gep(builder.bitcast(data, element.as_pointer()), [index], inbounds=True, source_etype=element)


def read_element(builder: ir.IRBuilder, context: Any, kind: Fragment, data: ir.Value, index: ir.Value) -> ir.Value:
    """Element number *index*, a value of the fragment's type."""
    stored = context.matrix_unit().stored(kind)
    place = element_place(builder, context, kind, data, index)
    found = builder.load(place, typ=context.get_data_type(stored))
    return context.cast(builder, found, stored, kind.dtype)


def write_element(
    builder: ir.IRBuilder, context: Any, kind: Fragment, data: ir.Value, index: ir.Value, value: ir.Value
) -> None:
    """Make *value*, of the fragment's type, element number *index*."""
    stored = context.matrix_unit().stored(kind)
    builder.store(context.cast(builder, value, kind.dtype, stored), element_place(builder, context, kind, data, index))
