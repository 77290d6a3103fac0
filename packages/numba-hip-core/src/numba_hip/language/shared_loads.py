"""``hip.shared.load``: the threads of a block copy a part of an array into shared memory together.

They go over the part in turns, each of as many *units* as there are threads, and neighbours have neighbouring units. A
unit is an element that goes through registers. Or it is what a lane of the device loads into shared memory at once,
where all of the part lies within the array and addresses and rows are multiples of that: the lanes of a wave then write
neighbouring units behind an address that is the same for all of them, as the instruction wants it. An array with one
axis is a single row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError

from hip_runtime.said_names import our
from numba_hip.language.stub import given, number_type

BYTE, I32, I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)

MOST_ALIGNMENT = 4
"""The most bytes to which elements are known to be aligned that have as many or more, and are aligned at all."""

Pair = tuple[ir.Value, ir.Value]
"""Of a row and a column, each an i64."""


class DirectLoader(Protocol):
    """Loads of a device that take no registers."""

    widths: tuple[int, ...]
    """The bytes that a lane loads at once, most first."""

    def can_reach(self, builder: ir.IRBuilder, source: ir.Value, target: ir.Value) -> ir.Value:
        """Whether the addresses lie in memory between which there are such loads, an i1."""

    def first_of_wave(self, builder: ir.IRBuilder, thread: ir.Value) -> ir.Value:
        """The number of the first thread of the wave of *thread*, which counts the threads of the block; i32."""

    def load(self, builder: ir.IRBuilder, width: int, source: ir.Value, target: ir.Value) -> None:
        """Load *width* bytes at *source*, of each lane, to *target*, of the wave's first lane, and behind it."""

    def finish(self, builder: ir.IRBuilder) -> None:
        """Write what has to follow the loads, so that the next barrier waits for them."""


@dataclass(frozen=True)
class Part:
    """What is copied, as types."""

    target: types.Array
    source: types.Array


def define(target: types.Type, source: types.Type, start: types.Type) -> Part:
    """Check the types of a call."""
    for name, kind in (("target", target), ("source", source)):
        if not isinstance(kind, types.Array) or kind.ndim not in (1, 2):
            raise TypingError(f"{our('shared.load')}: {name} has to be an array with 1 or 2 axes, not {kind}")
        if not isinstance(kind.dtype, (types.Number, types.Boolean)):
            raise TypingError(f"{our('shared.load')}: {name} has to be an array of numbers, not of {kind.dtype}")
    if (target.ndim, target.dtype) != (source.ndim, source.dtype):
        raise TypingError(
            f"{our('shared.load')}: target and source have to be alike, not {target.ndim} axes of {target.dtype} and "
            f"{source.ndim} of {source.dtype}"
        )
    if not target.mutable:
        raise TypingError(f"{our('shared.load')}: target is an array that cannot be written")
    places = list(start) if isinstance(start, types.BaseTuple) else [start]
    if not all(isinstance(number_type(place), types.Integer) for place in places):
        raise TypingError(f"{our('shared.load')}: start has to be an integer or a tuple of integers, not {start}")
    if isinstance(start, types.BaseTuple) and len(start) != target.ndim:
        raise TypingError(
            f"{our('shared.load')}: start has {len(start)} numbers, and the arrays have {target.ndim} axes"
        )
    if not isinstance(start, types.BaseTuple) and target.ndim == 2 and given(start) != 0:
        raise TypingError(f"{our('shared.load')}: start is one number, and the arrays have 2 axes: pass (row, column)")
    return Part(target, source)


def write(context: Any, builder: ir.IRBuilder, part: Part, sig: Any, args: Any) -> None:
    """Write the code of one call."""
    copy = _Copy(context, builder, part, args, _start(context, builder, part, sig, args))
    loader = context.direct_loader()
    if loader is None:
        copy.write_by_axes()
        return
    done = builder.append_basic_block("shared_load.done")
    reaches = loader.can_reach(builder, copy.source.address, copy.target.address)
    for width in loader.widths:
        with builder.if_then(builder.and_(reaches, copy.fits(width))):
            copy.write_directly(loader, width)
            loader.finish(builder)
            builder.branch(done)
    copy.write_elements()
    builder.branch(done)
    builder.position_at_end(done)


def _start(context: Any, builder: ir.IRBuilder, part: Part, sig: Any, args: Any) -> Pair:
    kind = sig.args[2]
    if isinstance(kind, types.Omitted):
        return I64(0), I64(0)
    if not isinstance(kind, types.BaseTuple):
        number = context.cast(builder, args[2], kind, types.int64)
        return I64(0), number if part.target.ndim == 1 else I64(0)
    values = cgutils.unpack_tuple(builder, args[2], len(kind))
    places = [context.cast(builder, value, one, types.int64) for value, one in zip(values, kind, strict=True)]
    return (I64(0), places[0]) if len(places) == 1 else (places[0], places[1])


class _Matrix:
    """An array as a matrix, with steps in bytes; those that its type tells are constants."""

    def __init__(self, context: Any, builder: ir.IRBuilder, kind: types.Array, value: ir.Value, size: int) -> None:
        array = context.make_array(kind)(context, builder, value)
        extents = list(cgutils.unpack_tuple(builder, array.shape, kind.ndim))
        steps = list(cgutils.unpack_tuple(builder, array.strides, kind.ndim))
        if kind.layout in "CF":
            steps[-1 if kind.layout == "C" else 0] = I64(size)
        if kind.ndim == 1:
            extents.insert(0, I64(1))
            steps.insert(0, I64(0))
        elif kind.layout == "C":
            steps[0] = builder.mul(extents[1], I64(size))
        self.kind, self.pointer = kind, array.data.type
        self.address = builder.bitcast(array.data, BYTE.as_pointer())
        self.extents, self.steps = (extents[0], extents[1]), (steps[0], steps[1])


class _Copy:
    """Writes loops over the units of a part."""

    def __init__(self, context: Any, builder: ir.IRBuilder, part: Part, args: Any, start: Pair) -> None:
        self._context, self._builder, self._start = context, builder, start
        self._dtype = part.target.dtype
        self._size: int = context.get_abi_sizeof(context.get_data_type(self._dtype))
        self.target = _Matrix(context, builder, part.target, args[0], self._size)
        self.source = _Matrix(context, builder, part.source, args[1], self._size)
        index = [context.thread_index(builder, axis) for axis in "xyz"]
        extents = [context.block_dim(builder, axis) for axis in "xyz"]
        self._x, self._width = index[0], extents[0]
        self._line = builder.add(index[1], builder.mul(index[2], extents[1]))
        self._lines = builder.mul(extents[1], extents[2])
        self._thread = builder.add(self._x, builder.mul(self._line, self._width))
        self._threads = builder.mul(self._lines, self._width)

    def write_by_axes(self) -> None:
        """Element by element, through registers: rows along the other axes of the block, which need no divisions, if
        rows are no shorter than the block is wide."""
        builder, (rows, columns) = self._builder, self.target.extents
        if self.target.kind.ndim == 1:
            self.write_elements()
            return
        rows, columns = builder.trunc(rows, I32), builder.trunc(columns, I32)
        with builder.if_else(builder.icmp_unsigned("<=", self._width, columns)) as (narrow, wide):
            with (
                narrow,
                cgutils.for_range_slice(builder, self._line, rows, self._lines, intp=I32) as (row, _),
                cgutils.for_range_slice(builder, I32(0), columns, self._width, intp=I32) as (first, _),
            ):
                column = builder.add(first, self._x)
                with builder.if_then(builder.icmp_unsigned("<", column, columns)):
                    self._write_element(builder.zext(row, I64), builder.zext(column, I64))
            with wide:
                self.write_elements()

    def write_elements(self) -> None:
        """Element by element, through registers, in turns over all of them."""
        builder, (rows, columns) = self._builder, self.target.extents
        total = builder.trunc(builder.mul(rows, columns), I32)
        with cgutils.for_range_slice(builder, I32(0), total, self._threads, intp=I32) as (first, _):
            unit = builder.add(first, self._thread)
            with builder.if_then(builder.icmp_unsigned("<", unit, total)):
                self._write_element(*self._divide(unit, builder.trunc(columns, I32)))

    def _write_element(self, row: ir.Value, column: ir.Value) -> None:
        builder, context = self._builder, self._context
        align = [None if one.kind.aligned else 1 for one in (self.source, self.target)]
        place = self._behind(self.target, row, column)
        with builder.if_else(self._is_inside(row, column)) as (inside, outside):
            with inside:
                found = self._behind(self.source, *self._moved(row, column))
                value = context.unpack_value(builder, self._dtype, found, align=align[0])
                context.pack_value(builder, self._dtype, value, place, align=align[1])
            with outside:
                context.pack_value(builder, self._dtype, context.get_constant_null(self._dtype), place, align=align[1])

    def fits(self, width: int) -> ir.Value:
        """Whether the part lies within *source*, and in rows of units of *width* bytes that are aligned in both."""
        builder, target, source = self._builder, self.target, self.source
        size = I64(self._size)
        row = builder.mul(target.extents[1], size)
        conditions = [builder.icmp_signed("==", one.steps[1], size) for one in (target, source)]
        for first, count, most in zip(self._start, target.extents, source.extents, strict=True):
            conditions.append(builder.icmp_signed(">=", first, I64(0)))
            conditions.append(builder.icmp_signed("<=", builder.add(first, count), most))
        if target.kind.ndim == 2:
            conditions.append(builder.icmp_signed(">=", target.steps[0], row))
        if self._size % width or width > MOST_ALIGNMENT or not (target.kind.aligned and source.kind.aligned):
            together = builder.or_(row, builder.mul(self._start[1], size))
            for one in (target, source):
                together = builder.or_(together, builder.or_(builder.ptrtoint(one.address, I64), one.steps[0]))
            conditions.append(builder.icmp_signed("==", builder.and_(together, I64(width - 1)), I64(0)))
        return reduce(builder.and_, conditions)

    def write_directly(self, loader: DirectLoader, width: int) -> None:
        """*width* bytes at once, without registers; also over the gaps between rows, where nothing is loaded."""
        builder, target, source = self._builder, self.target, self.source
        unit_bytes = I64(width)
        length = builder.udiv(builder.mul(target.extents[1], I64(self._size)), unit_bytes)
        pitch = length if target.kind.layout == "C" else builder.udiv(target.steps[0], unit_bytes)
        total = builder.trunc(builder.mul(target.extents[0], pitch if target.kind.ndim == 2 else length), I32)
        corner = self._behind(source, *self._start)
        wave = loader.first_of_wave(builder, self._thread)
        with cgutils.for_range_slice(builder, I32(0), total, self._threads, intp=I32) as (first, _):
            unit = builder.add(first, self._thread)
            row, place = self._divide(unit, builder.trunc(pitch, I32))
            is_there = builder.icmp_unsigned("<", unit, total)
            if pitch is not length:
                is_there = builder.and_(is_there, builder.icmp_unsigned("<", place, length))
            with builder.if_then(is_there):
                distance = builder.mul(place, unit_bytes)
                if target.kind.ndim == 2:
                    distance = builder.add(distance, builder.mul(row, source.steps[0]))
                behind = builder.mul(builder.zext(builder.add(first, wave), I64), unit_bytes)
                loader.load(builder, width, _gep(builder, corner, distance), _gep(builder, target.address, behind))

    def _divide(self, unit: ir.Value, length: ir.Value) -> Pair:
        """Row and place in it of a unit, for rows of *length*."""
        builder = self._builder
        if self.target.kind.ndim == 1:
            return I64(0), builder.zext(unit, I64)
        row = builder.udiv(unit, length)
        place = builder.sub(unit, builder.mul(row, length))
        return builder.zext(row, I64), builder.zext(place, I64)

    def _moved(self, row: ir.Value, column: ir.Value) -> Pair:
        """The place in *source*."""
        return self._builder.add(self._start[0], row), self._builder.add(self._start[1], column)

    def _is_inside(self, row: ir.Value, column: ir.Value) -> ir.Value:
        builder = self._builder
        places = zip(self._moved(row, column), self.source.extents, strict=True)
        checks = [builder.icmp_unsigned("<", place, extent) for place, extent in places]
        return checks[1] if self.target.kind.ndim == 1 else builder.and_(*checks)

    def _behind(self, matrix: _Matrix, row: ir.Value, column: ir.Value) -> ir.Value:
        """The address of an element."""
        builder = self._builder
        address = matrix.address
        if matrix.kind.ndim == 2:
            address = _gep(builder, address, builder.mul(row, matrix.steps[0]))
        address = _gep(builder, address, builder.mul(column, matrix.steps[1]))
        return builder.bitcast(address, matrix.pointer)


def _gep(builder: ir.IRBuilder, address: ir.Value, distance: ir.Value) -> ir.Value:
    return builder.gep(builder.bitcast(address, BYTE.as_pointer()), [distance], source_etype=BYTE)
