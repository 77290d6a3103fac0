"""An atomic operation of one lane as a function, for those that are not in a table yet, see `update_tables`.

It is called from several places, as lanes are looked at one by one in front of each access that may meet the table:
sixteen operations in a row took two seconds to compile where each place had code of its own, nine on five arrays 55.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.ir.debug_locations import keep_lines, stand_at
from hip_runtime.drivers.cpu.ir.model import Instruction
from hip_runtime.drivers.cpu.llvmir import I64, PTR, declare
from hip_runtime.drivers.cpu.passes.checked_atomics import write_checked
from hip_runtime.drivers.cpu.passes.demote_atomics import combine
from hip_runtime.drivers.cpu.vectorize.table_growth import SPARING, TABLE, TableGrowth
from hip_runtime.drivers.cpu.vectorize.uniform_atomics import COLLECTED
from hip_runtime.drivers.cpu.vectorize.vector_builder import mangle

Meet = Callable[[ir.IRBuilder, ir.Value, Sequence[ir.Value], ir.Value], None]
"""Does what is in tables of a work item for some arrays, if they have what is at an address."""


@dataclass(frozen=True)
class TableUpdate:
    """Writes a function that does *update* in a table that grows by *growth*, or in memory."""

    update: Instruction
    growth: TableGrowth
    name: str
    has_lines: bool
    """Whether faults name the line of the source."""

    def define(self, module: ir.Module, met: int = 0, meet: Meet | None = None) -> ir.Function:
        """``i64 (table, elements, array, address, value, item, arrays...)``: do the operation with *value* on what is
        at *address*; how many elements the *table* of *array* has now, of which there were *elements*. Before it is
        done in memory, *meet* looks at the tables of the work item for *met* other *arrays*."""
        if self.name in module.globals:
            return module.globals[self.name]
        kind = ir.FunctionType(I64, [PTR, I64, PTR, PTR, self.update.type, *[PTR] * (1 + met)])
        function = ir.Function(module, kind, self.name)
        function.linkage, function.calling_convention = "internal", SPARING
        for attribute in ("noinline", "nounwind"):
            function.attributes.add(attribute)
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        if self.has_lines:
            keep_lines(builder)
        stand_at(builder, self.update.location)
        table, elements, array, address, value, item, *arrays = function.args
        index = find_element(builder, self.growth.size, address, array)
        known = self.growth.grow(builder, table, elements, index)
        with builder.if_else(builder.icmp_unsigned("<", index, known)) as (in_table, in_memory):
            with in_table:
                update_element(builder, self.update, TABLE.load(builder, table, "memory"), index, value)
            with in_memory:
                if meet is not None:
                    meet(builder, item, arrays, address)
                write_checked(builder, self.update, [address, value])
        builder.ret(known)
        return function


def update_element(
    builder: ir.IRBuilder, update: Instruction, memory: ir.Value, index: ir.Value, value: ir.Value
) -> None:  # fmt: skip
    """Do *update* with *value* on the element with the number *index* in *memory* of a table."""
    number = index if index.type == I64 else builder.zext(index, I64)
    element = builder.gep(memory, [number], inbounds=True, source_etype=update.type)
    old = builder.load(element, typ=update.type)
    operation = COLLECTED.get(update.operation, update.operation)
    builder.store(combine(builder, operation, old, value), element)


def find_element(builder: ir.IRBuilder, size: int, address: ir.Value, array: ir.Value) -> ir.Value:
    """The number of the element of *size* bytes at *address*; a very large one if it is before the *array* or between
    two elements: the remainder of the distance is rotated to the high bits."""
    distance = builder.sub(builder.ptrtoint(address, I64), builder.ptrtoint(array, I64))
    return count_elements(builder, size, distance)


def count_elements(builder: ir.IRBuilder, size: int, distance: ir.Value) -> ir.Value:
    """A distance in bytes, or a vector of such, in elements of *size* bytes, with the remainder in the high bits."""
    if size == 1:
        return distance
    kind = distance.type
    by = I64(size.bit_length() - 1)
    if isinstance(kind, ir.VectorType):
        by = ir.Constant(kind, [by] * kind.count)
    return builder.call(declare(builder, f"llvm.fshr.{mangle(kind)}", kind, kind, kind, kind), [distance, distance, by])
