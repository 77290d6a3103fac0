"""Functions that move whole fragments between memory and arrays on the CPU device, as vectors.

An array has the rows of the matrix together, or its columns. The elements of one lie one after another in the fragment,
too, or turns of some; those of the other are transposed in registers, by vectors that are merged like the halves of a
pack of cards.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from llvmlite import ir
from numba.core import cgutils, types

from numba_hip.bfloat import bfloat16
from numba_hip.language.matrix.kinds import Fragment
from numba_hip.language.matrix.unit import I64, Tile
from numba_hip.targets.cpu.matrix_functions import BYTES, COLUMNS, I8, I32, load, own_function, store

_ELEMENTS: dict[types.Type, tuple[ir.Type, int]] = {
    types.int8: (I8, 1), types.int32: (I32, 4), bfloat16: (ir.IntType(16), 2), types.float16: (ir.HalfType(), 2),
    types.float32: (ir.FloatType(), 4), types.float64: (ir.DoubleType(), 8),
}  # fmt: skip
"""The types of arrays, as LLVM has them, with their bytes."""

WIDEST = 64
"""Bytes of a register."""

Vectors = list[ir.Value]


def can_move(kind: Fragment, tile: Tile, *, is_load: bool) -> bool:
    """Whether there is a function for fragments *kind* and arrays as that of *tile*."""
    if tile.contiguous is None or tile.dtype not in _ELEMENTS:
        return False
    if tile.dtype != kind.dtype and (kind.dtype, tile.dtype) != (types.float32, types.float16):
        return False
    if is_load:
        return True
    is_turned = kind.role == "b" and kind.dtype in (types.int8, bfloat16)
    return not is_turned and (tile.contiguous == 1 or (kind.rows % COLUMNS == 0 and kind.columns % COLUMNS == 0))


def move_function(module: ir.Module, kind: Fragment, together: int, tile: Tile, *, is_load: bool) -> ir.Function:
    """``(data, address, step)``: move a fragment from or to an array, in which neighbours along the other axis than
    that of *tile* lie *step* bytes apart."""
    shape = f"{kind.rows}x{kind.columns}.{together}"
    along = "columns" if tile.contiguous == 0 else "rows"
    what = f"{'load' if is_load else 'store'}.{along}.{tile.dtype}.{kind.dtype}.{shape}"
    function, is_new = own_function(module, f"hip.matrix.{what}", [BYTES, BYTES, I64])
    if is_new:
        builder = ir.IRBuilder(function.append_basic_block())
        transfer = _Transfer(builder, function, kind, together, tile.dtype)
        if tile.contiguous == 1:
            transfer.load_rows() if is_load else transfer.store_rows()
        else:
            transfer.load_columns() if is_load else transfer.store_columns()
        builder.ret_void()
    return function


class _Transfer:
    """Writes one function."""

    def __init__(
        self, builder: ir.IRBuilder, function: ir.Function, kind: Fragment, together: int, outside: types.Type
    ) -> None:
        self._builder, self._together = builder, together
        self._rows, self._columns = kind.rows, kind.columns
        self._data, self._address, self._step = function.args
        self._outside, self._outside_bytes = _ELEMENTS[outside]
        inside = types.float32 if kind.dtype == types.float16 else kind.dtype
        self._inside, self._inside_bytes = _ELEMENTS[inside]

    def load_rows(self) -> None:
        """Row by row, or some rows at once, which are merged."""
        builder, chunk = self._builder, gcd(self._columns, COLUMNS)
        with cgutils.loop_nest(
            builder, [I64(self._rows // self._together), I64(self._columns // chunk)], I64
        ) as (turn, part):  # fmt: skip
            column = builder.mul(part, I64(chunk))
            rows = [builder.add(builder.mul(turn, I64(self._together)), I64(i)) for i in range(self._together)]
            vectors = _merge(builder, [self._enter(self._take(row, column, chunk)) for row in rows], len(rows))
            place = builder.mul(self._index(turn, column), I64(self._together))
            self._put_all(place, vectors)

    def store_rows(self) -> None:
        """Row by row."""
        builder, chunk = self._builder, gcd(self._columns, COLUMNS)
        with cgutils.loop_nest(builder, [I64(self._rows), I64(self._columns // chunk)], I64) as (row, part):
            column = builder.mul(part, I64(chunk))
            self._give(row, column, self._get(self._index(row, column), chunk))

    def load_columns(self) -> None:
        """Squares, or all columns at once. What lies together in the fragment is a word, which stays together."""
        builder = self._builder
        if self._together > 1:
            self._outside = self._inside = ir.IntType(8 * self._outside_bytes * self._together)
            self._outside_bytes = self._inside_bytes = self._outside_bytes * self._together
        words = self._rows // self._together
        wide, high = gcd(self._columns, COLUMNS), gcd(words, COLUMNS)
        if wide != self._columns:
            wide = high = min(wide, high)
        with cgutils.loop_nest(builder, [I64(words // high), I64(self._columns // wide)], I64) as (down, across):
            row, column = builder.mul(down, I64(high)), builder.mul(across, I64(wide))
            columns = [builder.add(column, I64(i)) for i in range(wide)]
            lines = [self._take(one, row, high) for one in columns]
            vectors = _merge(builder, _join(builder, lines, self._outside_bytes), wide)
            self._put_rows(row, column, [self._enter(vector) for vector in vectors], wide)

    def store_columns(self) -> None:
        """Squares."""
        builder = self._builder
        squares = [I64(self._rows // COLUMNS), I64(self._columns // COLUMNS)]
        with cgutils.loop_nest(builder, squares, I64) as (down, across):
            row, column = builder.mul(down, I64(COLUMNS)), builder.mul(across, I64(COLUMNS))
            rows = [builder.add(row, I64(i)) for i in range(COLUMNS)]
            lines = [self._get(self._index(one, column), COLUMNS) for one in rows]
            for i, vector in enumerate(_merge(builder, lines, COLUMNS)):
                self._give(builder.add(column, I64(i)), row, vector)

    # Places of the array: a row, or a column, and the first of neighbours in it.

    def _take(self, line: ir.Value, first: ir.Value, count: int) -> ir.Value:
        builder = self._builder
        return load(builder, ir.VectorType(self._outside, count), self._address, self._behind(line, first))

    def _enter(self, vector: ir.Value) -> ir.Value:
        """*vector* as the fragment has its elements."""
        if self._outside == self._inside:
            return vector
        return self._builder.fpext(vector, ir.VectorType(self._inside, vector.type.count))

    def _give(self, line: ir.Value, first: ir.Value, vector: ir.Value) -> None:
        builder = self._builder
        if self._outside != self._inside:
            vector = builder.fptrunc(vector, ir.VectorType(self._outside, vector.type.count))
        store(builder, vector, self._address, self._behind(line, first))

    def _behind(self, line: ir.Value, first: ir.Value) -> ir.Value:
        builder = self._builder
        return builder.add(builder.mul(line, self._step), builder.mul(first, I64(self._outside_bytes)))

    # Places of the fragment.

    def _index(self, row: ir.Value, column: ir.Value) -> ir.Value:
        return self._builder.add(self._builder.mul(row, I64(self._columns)), column)

    def _get(self, index: ir.Value, count: int) -> ir.Value:
        kind = ir.VectorType(self._inside, count)
        return load(self._builder, kind, self._data, self._builder.mul(index, I64(self._inside_bytes)))

    def _put(self, index: ir.Value, vector: ir.Value) -> None:
        store(self._builder, vector, self._data, self._builder.mul(index, I64(self._inside_bytes)))

    def _put_all(self, index: ir.Value, vectors: Vectors) -> None:
        """One after another."""
        for i, vector in enumerate(vectors):
            self._put(self._builder.add(index, I64(i * vector.type.count)), vector)

    def _put_rows(self, row: ir.Value, column: ir.Value, vectors: Vectors, wide: int) -> None:
        """Rows of *wide* elements, one after another in *vectors*."""
        if wide == self._columns:
            self._put_all(self._index(row, column), vectors)
            return
        builder, each = self._builder, vectors[0].type.count // wide
        for i, vector in enumerate(vectors):
            for part in range(each):
                elements = range(part * wide, (part + 1) * wide)
                place = self._index(builder.add(row, I64(i * each + part)), column)
                self._put(place, _pick(builder, vector, vector, elements))


def _join(builder: ir.IRBuilder, vectors: Vectors, size: int) -> Vectors:
    """The same elements, of *size* bytes, in the same order, in vectors of up to `WIDEST` bytes."""
    while len(vectors) > 1 and 2 * vectors[0].type.count * size <= WIDEST:
        elements = range(2 * vectors[0].type.count)
        vectors = [_pick(builder, one, other, elements) for one, other in zip(vectors[::2], vectors[1::2], strict=True)]
    return vectors


def _merge(builder: ir.IRBuilder, vectors: Vectors, lines: int) -> Vectors:
    """Transpose: of *lines*, a power of two, that lie one after another in *vectors*, the elements with number 0, then
    those with number 1, and so on, in as many vectors of the same length."""
    half, count = len(vectors) // 2, vectors[0].type.count
    order = [lane // 2 + lane % 2 * count for lane in range(2 * count)]
    for _ in range(lines.bit_length() - 1):
        if not half:
            fold = [lane // 2 + lane % 2 * (count // 2) for lane in range(count)]
            vectors = [_pick(builder, vectors[0], vectors[0], fold)]
            continue
        pairs = zip(vectors[:half], vectors[half:], strict=True)
        vectors = [_pick(builder, one, other, part) for one, other in pairs for part in (order[:count], order[count:])]
    return vectors


def _pick(builder: ir.IRBuilder, one: ir.Value, other: ir.Value, elements: Iterable[int]) -> ir.Value:
    """The *elements* of two vectors, which are numbered through."""
    numbers = [I32(element) for element in elements]
    return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(I32, len(numbers)), numbers))
