"""Fragments on the CPU device: each lane has all the elements that its part of a product needs.

A lane of a wave of *w* lanes has ``m * n / w`` elements of an accumulator: neighbours in one row. Of *a* it has that
row, and of *b* their columns, as other lanes have too. So no lane waits for another, every form of the CPU device can
run it, and the products are loops over private arrays. A lane loads rows of arrays, or parts of them, which lie
together, and adds up neighbours, for which LLVM has vectors where threads run one after another.
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
        share = m * n // FEWEST_LANES
        return {A: k, B: share * k, ACCUMULATOR: share}[kind.role]

    def count(self, builder: ir.IRBuilder, kind: Fragment) -> ir.Value:
        """As the size of a wave makes it."""
        if kind.role == A:
            return I64(kind.columns)
        return builder.mul(self._share(builder, kind), I64(kind.dims[2] if kind.role == B else 1))

    def origin(self, builder: ir.IRBuilder, kind: Fragment) -> tuple[ir.Value, ir.Value]:
        """From the number of the lane."""
        share = self._share(builder, kind)
        lane = builder.zext(self._context.lane(builder), I64)
        first = builder.mul(lane, share)  # of all elements of the product, row by row
        row, column = builder.udiv(first, I64(kind.dims[1])), builder.urem(first, I64(kind.dims[1]))
        return {A: (row, I64(0)), B: (I64(0), column), ACCUMULATOR: (row, column)}[kind.role]

    def offset(self, builder: ir.IRBuilder, kind: Fragment, index: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Row by row of *b*."""
        if kind.role != B:
            return I64(0), index
        share = self._share(builder, kind)
        return builder.udiv(index, share), builder.urem(index, share)

    def each(self, builder: ir.IRBuilder, kind: Fragment, visit: Visit) -> None:
        """Loops."""
        if kind.role != B:
            with cgutils.for_range(builder, self.count(builder, kind), intp=I64) as loop:
                visit(loop.index, I64(0), loop.index)
            return
        share = self._share(builder, kind)
        with cgutils.loop_nest(builder, [I64(kind.rows), share], I64) as (row, column):
            visit(builder.add(builder.mul(row, share), column), row, column)

    def multiply(self, builder: ir.IRBuilder, target: Operand, a: Operand, b: Operand, c: Operand) -> None:
        """Some sums at once: they are in registers."""
        check_product(target[0], a[0], b[0])
        element = self._context.get_data_type(self.stored(target[0]))
        depth = a[0].columns
        sums = [cgutils.alloca_once(builder, element) for _ in range(AT_ONCE)]
        share = self._share(builder, target[0])
        with cgutils.for_range_slice(builder, I64(0), share, I64(AT_ONCE), I64) as (first, _):
            places = [builder.add(first, I64(column)) for column in range(AT_ONCE)]
            for place, total in zip(places, sums, strict=True):
                builder.store(self._load(builder, c, place, element), total)
            with cgutils.for_range(builder, I64(depth), intp=I64) as loop:
                left = self._load(builder, a, loop.index, element)
                for place, total in zip(places, sums, strict=True):
                    right = self._load(builder, b, builder.add(builder.mul(loop.index, share), place), element)
                    builder.store(_add_product(builder, builder.load(total, typ=element), left, right), total)
            for place, total in zip(places, sums, strict=True):
                builder.store(builder.load(total, typ=element), self._place(builder, target, place, element))

    def _share(self, builder: ir.IRBuilder, kind: Fragment) -> ir.Value:
        """The elements of an accumulator that a lane has, an i64."""
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
