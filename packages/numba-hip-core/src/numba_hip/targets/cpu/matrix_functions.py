"""Functions that multiply and fill whole fragments on the CPU device.

They are not inlined: a thread calls them, whatever form its kernel takes, and inside are vectors over the columns. A
product keeps `ROWS` by `COLUMNS` sums in registers, and adds to them, for each *k*, a row of *b* times an element of
*a* that is the same in all lanes. For bfloat16 and int8 the elements are two and four neighbours along *k*, which the
device multiplies and adds up at once (``spmd.dot.*``).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from hip_devicelib import spmd
from numba_hip.named_calls import call_named

I8, I32, I64 = (ir.IntType(bits) for bits in (8, 32, 64))
BYTES = I8.as_pointer()

COLUMNS = 16
"""Columns at once: a register of 512 bits of float32."""

ROWS = 8
"""Rows at once: as many sums as processors with two units for products of four cycles can work on."""

SIGN = 0x80808080
"""The signs of four bytes."""

Sums = list[ir.Value]


def own_function(module: ir.Module, name: str, parameters: list[ir.Type]) -> tuple[ir.Function, bool]:
    """The function *name*, which returns nothing and is not inlined, and whether it has yet to be written."""
    found = module.globals.get(name)
    if found is not None:
        return found, False
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), parameters), name)
    function.linkage = "linkonce_odr"
    for attribute in ("noinline", "nounwind"):
        function.attributes.add(attribute)
    return function, True


def fill_function(module: ir.Module, element: ir.Type, count: int) -> ir.Function:
    """``(data, value)``: make *count* elements *value*."""
    function, is_new = own_function(module, f"hip.matrix.fill.{element}.{count}", [BYTES, element])
    if is_new:
        builder = ir.IRBuilder(function.append_basic_block())
        data, value = function.args
        row = splat(builder, value, COLUMNS)
        with cgutils.for_range(builder, I64(count // COLUMNS), intp=I64) as loop:
            store(builder, row, data, builder.mul(loop.index, I64(COLUMNS * _size(element))))
        builder.ret_void()
    return function


def multiply_function(module: ir.Module, element: ir.Type, shape: tuple[int, int, int], together: int) -> ir.Function:
    """``(d, a, b, c)``: ``d = a @ b + c`` of *shape*, added up in *element*, in the layout of `CpuMatrixUnit`."""
    name = f"hip.matrix.multiply.{element}.{together}.{'x'.join(map(str, shape))}"
    function, is_new = own_function(module, name, [BYTES] * 4)
    if is_new:
        builder = ir.IRBuilder(function.append_basic_block())
        _Product(builder, function, element, shape, together).write()
    return function


class _Product:
    """Writes one product."""

    def __init__(
        self, builder: ir.IRBuilder, function: ir.Function, element: ir.Type, shape: tuple[int, int, int], together: int
    ) -> None:
        self._builder, self._element, self._together = builder, element, together
        self._d, self._a, self._b, self._c = function.args
        self._rows, self._columns, depth = shape
        self._steps = depth // together
        self._factor = element if together == 1 else I32
        self._row = ir.VectorType(element, COLUMNS)

    def write(self) -> None:
        """The whole function."""
        if self._together == 4:
            self._make_unsigned()
        blocks = [I64(self._rows // ROWS), I64(self._columns // COLUMNS)]
        with cgutils.loop_nest(self._builder, blocks, I64) as (row, column):
            self._write_block(self._builder.mul(row, I64(ROWS)), self._builder.mul(column, I64(COLUMNS)))
        self._builder.ret_void()

    def _make_unsigned(self) -> None:
        """Take a copy of *a* with 128 added to each element: processors multiply unsigned bytes by signed ones."""
        builder = self._builder
        count = self._rows * self._steps
        with builder.goto_entry_block():
            copy = builder.bitcast(builder.alloca(ir.ArrayType(I32, count)), BYTES)
        sign = splat(builder, I32(SIGN), COLUMNS)
        with cgutils.for_range(builder, I64(count // COLUMNS), intp=I64) as loop:
            place = builder.mul(loop.index, I64(COLUMNS * 4))
            store(builder, builder.xor(load(builder, sign.type, self._a, place), sign), copy, place)
        self._a = copy

    def _write_block(self, row: ir.Value, column: ir.Value) -> None:
        builder = self._builder
        places = []
        for i in range(ROWS):
            first = builder.mul(builder.add(row, I64(i)), I64(self._columns))
            places.append(builder.mul(builder.add(first, column), I64(_size(self._element))))
        sums = [load(builder, self._row, self._c, place) for place in places]
        if self._together == 4:
            sums.append(ir.Constant(self._row, None))  # of the columns of b, 128 times
        sums = self._add_up(row, column, sums)
        for place, total in zip(places, sums[:ROWS], strict=True):
            if self._together == 4:
                total = builder.sub(total, sums[ROWS])
            store(builder, total, self._d, place)

    def _add_up(self, row: ir.Value, column: ir.Value, sums: Sums) -> Sums:
        """A loop along *k*."""
        builder = self._builder
        before = builder.block
        body, behind = builder.append_basic_block("along_k"), builder.append_basic_block("added_up")
        builder.branch(body)
        builder.position_at_end(body)
        step = builder.phi(I64)
        totals = [builder.phi(self._row) for _ in sums]
        after = self._take_step(row, column, step, totals)
        following = builder.add(step, I64(1))
        for phi, first, last in zip([step, *totals], [I64(0), *sums], [following, *after], strict=True):
            phi.add_incoming(first, before)
            phi.add_incoming(last, body)
        builder.cbranch(builder.icmp_unsigned("<", following, I64(self._steps)), body, behind)
        builder.position_at_end(behind)
        return after

    def _take_step(self, row: ir.Value, column: ir.Value, step: ir.Value, totals: Sums) -> Sums:
        """Products with one row of *b*, or with the `together` rows that lie together."""
        builder, size = self._builder, _size(self._factor)
        vector = ir.VectorType(self._factor, COLUMNS)
        place = builder.add(builder.mul(step, I64(self._columns)), column)
        right = load(builder, vector, self._b, builder.mul(place, I64(size)))
        sums = []
        for i, total in enumerate(totals[:ROWS]):
            place = builder.add(builder.mul(builder.add(row, I64(i)), I64(self._steps)), step)
            left = splat(builder, load(builder, self._factor, self._a, builder.mul(place, I64(size))), COLUMNS)
            sums.append(self._add_product(total, left, right))
        if self._together == 4:
            sums.append(self._add_product(totals[ROWS], splat(builder, I32(SIGN), COLUMNS), right))
        return sums

    def _add_product(self, total: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
        builder = self._builder
        if self._together > 1:
            name = spmd.DOT_BF16 if self._together == 2 else spmd.DOT_U8_I8
            return call_named(builder, name, total.type, total, left, right)
        if isinstance(self._element, ir.IntType):
            return builder.add(total, builder.mul(left, right))
        return builder.fadd(total, builder.fmul(left, right, flags=("contract",)), flags=("contract",))


def load(builder: ir.IRBuilder, kind: ir.Type, data: ir.Value, offset: ir.Value) -> ir.Value:
    """What lies *offset* bytes behind *data*, aligned or not."""
    return builder.load(_place(builder, kind, data, offset), align=1)


def store(builder: ir.IRBuilder, value: ir.Value, data: ir.Value, offset: ir.Value) -> None:
    """The opposite of `load`."""
    builder.store(value, _place(builder, value.type, data, offset), align=1)


def splat(builder: ir.IRBuilder, value: ir.Value, count: int) -> ir.Value:
    """*count* times *value*."""
    undefined = ir.Constant(ir.VectorType(value.type, count), ir.Undefined)
    first = builder.insert_element(undefined, value, I32(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(I32, count), None))


def _place(builder: ir.IRBuilder, kind: ir.Type, data: ir.Value, offset: ir.Value) -> ir.Value:
    return builder.bitcast(builder.gep(data, [offset], source_etype=I8), kind.as_pointer())


def _size(element: Any) -> int:
    """Its bytes."""
    sizes = {"half": 2, "float": 4, "double": 8}
    return element.width // 8 if isinstance(element, ir.IntType) else sizes[str(element)]
