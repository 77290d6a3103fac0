"""Fragments on the CPU device: each lane has all the elements that its part of a product needs.

A lane of a wave of *w* lanes has ``m * n / w`` elements of an accumulator: neighbours of column ``lane % n``. Of *a* it
has their rows, and of *b* that column, as other lanes have too. So no lane waits for another, every form of the CPU
device can run it, and the products are loops over private arrays, which are vectors where lanes are.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from numba_hip.language.matrix.kinds import ACCUMULATOR, A, B, Fragment, check_product
from numba_hip.language.matrix.unit import I64, Operand, Visit

FEWEST_LANES = 32
"""Lanes of a wave; there may be more, which is not known before the kernel is loaded."""

AT_ONCE = 4
"""Sums that are added up at once. Every lane has a multiple of these."""


class CpuMatrixUnit:
    """The fragments of all GPUs, for lowering in *context*."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def check(self, kind: Fragment) -> None:
        """The CPU device has what any GPU has."""

    def stored(self, kind: Fragment) -> types.Type:
        """The type in which products are added up: factors are converted once."""
        if isinstance(kind.dtype, types.Integer):
            return types.int32
        return kind.dtype if kind.dtype in (types.float32, types.float64) else types.float32

    def most(self, kind: Fragment) -> int:
        """In waves of 32 lanes."""
        m, n, k = kind.dims
        rows = m * n // FEWEST_LANES
        return {A: rows * k, B: k, ACCUMULATOR: rows}[kind.role]

    def count(self, builder: ir.IRBuilder, kind: Fragment) -> ir.Value:
        """As the size of a wave makes it."""
        if kind.role == B:
            return I64(kind.rows)
        return builder.mul(self._rows(builder, kind), I64(kind.dims[2] if kind.role == A else 1))

    def origin(self, builder: ir.IRBuilder, kind: Fragment) -> tuple[ir.Value, ir.Value]:
        """From the number of the lane."""
        lane, n = builder.zext(self._context.lane(builder), I64), kind.dims[1]
        row = builder.mul(builder.udiv(lane, I64(n)), self._rows(builder, kind))
        column = builder.urem(lane, I64(n))
        return {A: (row, I64(0)), B: (I64(0), column), ACCUMULATOR: (row, column)}[kind.role]

    def offset(self, builder: ir.IRBuilder, kind: Fragment, index: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Row by row of *a*."""
        if kind.role != A:
            return index, I64(0)
        return builder.udiv(index, I64(kind.columns)), builder.urem(index, I64(kind.columns))

    def each(self, builder: ir.IRBuilder, kind: Fragment, visit: Visit) -> None:
        """Loops."""
        if kind.role != A:
            with cgutils.for_range(builder, self.count(builder, kind), intp=I64) as loop:
                visit(loop.index, loop.index, I64(0))
            return
        with cgutils.loop_nest(builder, [self._rows(builder, kind), I64(kind.columns)], I64) as (row, column):
            visit(builder.add(builder.mul(row, I64(kind.columns)), column), row, column)

    def multiply(self, builder: ir.IRBuilder, target: Operand, a: Operand, b: Operand, c: Operand) -> None:
        """Some rows at once: the sums of all are in registers."""
        check_product(target[0], a[0], b[0])
        element = self._context.get_data_type(self.stored(target[0]))
        depth = a[0].columns
        sums = [cgutils.alloca_once(builder, element) for _ in range(AT_ONCE)]
        rows = self._rows(builder, target[0])
        with cgutils.for_range_slice(builder, I64(0), rows, I64(AT_ONCE), I64) as (first, _):
            places = [builder.add(first, I64(row)) for row in range(AT_ONCE)]
            for place, total in zip(places, sums, strict=True):
                builder.store(self._load(builder, c, place, element), total)
            with cgutils.for_range(builder, I64(depth), intp=I64) as loop:
                right = self._load(builder, b, loop.index, element)
                for place, total in zip(places, sums, strict=True):
                    left = self._load(builder, a, builder.add(builder.mul(place, I64(depth)), loop.index), element)
                    builder.store(_add_product(builder, builder.load(total, typ=element), left, right), total)
            for place, total in zip(places, sums, strict=True):
                builder.store(builder.load(total, typ=element), self._place(builder, target, place, element))

    def _rows(self, builder: ir.IRBuilder, kind: Fragment) -> ir.Value:
        """The rows of an accumulator that a lane has, an i64."""
        lanes = builder.zext(self._context.wave_size(builder), I64)
        return builder.udiv(I64(kind.dims[0] * kind.dims[1]), lanes)

    def _place(self, builder: ir.IRBuilder, operand: Operand, index: ir.Value, element: ir.Type) -> ir.Value:
        data = builder.bitcast(operand[1], element.as_pointer())
        return builder.gep(data, [index], inbounds=True, source_etype=element)

    def _load(self, builder: ir.IRBuilder, operand: Operand, index: ir.Value, element: ir.Type) -> ir.Value:
        return builder.load(self._place(builder, operand, index, element), typ=element)


def _add_product(builder: ir.IRBuilder, total: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
    if isinstance(total.type, ir.IntType):
        return builder.add(total, builder.mul(left, right))
    return builder.fadd(total, builder.fmul(left, right, flags=("contract",)), flags=("contract",))
