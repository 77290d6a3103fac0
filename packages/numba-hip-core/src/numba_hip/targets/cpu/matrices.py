"""Fragments on the CPU device: the first lane of a wave has all of a matrix, and the others have nothing.

So no lane waits for another, every form of the CPU device can run it, and a product is a function that one thread calls
for the whole of it, with rows of the matrices in vectors (`matrix_functions`). Accumulators and *a* lie row by row.
What *b* has lies so that a vector has one row, or the `together` neighbours along *k* that processors multiply in one
instruction, for all columns: for types of 16 bits two rows in turns, for those of 8 bits four.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from numba_hip.bfloat import bfloat16
from numba_hip.language.matrix.kinds import Fragment, check_product, together
from numba_hip.language.matrix.unit import I64, Operand, Tile, Visit
from numba_hip.targets.cpu.matrix_functions import BYTES, fill_function, multiply_function
from numba_hip.targets.cpu.matrix_transfers import can_move, move_function

I32 = ir.IntType(32)

LINE = 64
"""Bytes of a cache line, over whose end no vector reaches."""

PAGE = 4096
"""Addresses that differ by it have their place in the same part of the cache."""


class CpuMatrixUnit:
    """The fragments of all GPUs, for lowering in *context*."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def check(self, kind: Fragment) -> None:
        """The CPU device has what any GPU has."""

    def stored(self, kind: Fragment) -> types.Type:
        """The own type, or float32 where processors multiply nothing shorter: factors are converted once."""
        if kind.dtype in (types.int8, types.int32, types.float32, types.float64, bfloat16):
            return kind.dtype
        return types.float32

    def most(self, kind: Fragment) -> int:
        """All elements: every lane has room for them."""
        return kind.rows * kind.columns

    def reserve(self, builder: ir.IRBuilder, kind: Fragment) -> ir.Value:
        """Other cache lines for each fragment.

        Between regions a fragment of all threads of a block is an array, and those of the first lanes would begin at
        multiples of a page, and so be in each other's way in the cache. What lies before costs addresses only."""
        element = self._context.get_data_type(self.stored(kind))
        nbytes = self.most(kind) * self._context.get_abi_sizeof(element)
        entry = builder.function.entry_basic_block.instructions
        before = sum(one.opname == "alloca" and one.align == LINE for one in entry) * nbytes % PAGE
        with builder.goto_entry_block():
            data = builder.alloca(ir.ArrayType(BYTES.pointee, before + nbytes))
            data.align = LINE
            return builder.gep(builder.bitcast(data, BYTES), [I64(before)], inbounds=True, source_etype=BYTES.pointee)

    def count(self, builder: ir.IRBuilder, kind: Fragment) -> ir.Value:
        """All or none."""
        return builder.select(self._is_first(builder), I64(self.most(kind)), I64(0))

    def origin(self, builder: ir.IRBuilder, kind: Fragment) -> tuple[ir.Value, ir.Value]:
        """That of the matrix."""
        return I64(0), I64(0)

    def offset(self, builder: ir.IRBuilder, kind: Fragment, index: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Row by row, in turns of `together` rows."""
        turn, columns = I64(together(kind)), I64(kind.columns)
        within, place = builder.urem(index, turn), builder.udiv(index, turn)
        row = builder.add(builder.mul(builder.udiv(place, columns), turn), within)
        return row, builder.urem(place, columns)

    def each(self, builder: ir.IRBuilder, kind: Fragment, visit: Visit) -> None:
        """Loops of the first lane."""
        turn = I64(together(kind))
        with (
            builder.if_then(self._is_first(builder)),
            cgutils.loop_nest(builder, [I64(kind.rows), I64(kind.columns)], I64) as (row, column),
        ):
            turns = builder.add(builder.mul(builder.udiv(row, turn), I64(kind.columns)), column)
            visit(builder.add(builder.mul(turns, turn), builder.urem(row, turn)), row, column)

    def fill(self, builder: ir.IRBuilder, operand: Operand, value: ir.Value) -> None:
        """By the first lane."""
        kind, data = operand
        stored = self._context.cast(builder, value, kind.dtype, self.stored(kind))
        with builder.if_then(self._is_first(builder)):
            builder.call(fill_function(builder.module, stored.type, self.most(kind)), [data, stored])

    def move(self, builder: ir.IRBuilder, operand: Operand, tile: Tile, *, is_load: bool) -> bool:
        """Rows or columns that lie together, as vectors; not where the accesses of threads are observed."""
        kind, data = operand
        if self._context.codegen().observes or not can_move(kind, tile, is_load=is_load):
            return False
        function = move_function(builder.module, kind, together(kind), tile, is_load=is_load)
        with builder.if_then(self._is_first(builder)):
            builder.call(function, [data, tile.address, tile.steps[1 if tile.contiguous == 0 else 0]])
        return True

    def multiply(self, builder: ir.IRBuilder, target: Operand, a: Operand, b: Operand, c: Operand) -> None:
        """By the first lane."""
        check_product(target[0], a[0], b[0])
        sums = self._context.get_data_type(self.stored(target[0]))
        function = multiply_function(builder.module, sums, target[0].dims, together(b[0]))
        with builder.if_then(self._is_first(builder)):
            builder.call(function, [operand[1] for operand in (target, a, b, c)])

    def _is_first(self, builder: ir.IRBuilder) -> ir.Value:
        return builder.icmp_unsigned("==", self._context.lane(builder), I32(0))
