"""Accesses to shared memory by the first threads of a block, as whole vector registers.

In the last steps of a tree fewer threads add than a register has elements. What one step stores, the next one loads in
two halves, from other places and with another size. LLVM keeps a vector in a register between a store and a load of the
same place and size, and not otherwise; then the processor has to forward what it has not written yet, or waits until it
has, where a load reaches over two stores. So shared arrays are taken here as *cells* of the size of a register: a load
loads the cells that it reaches into, and picks its elements from them; a store replaces its elements in them, and
stores the cells. Places and sizes are the same then, and LLVM makes a shuffle between two registers of it.

The other elements of a cell are those of threads that do nothing meanwhile, as one CPU thread runs the block, so
writing them back changes nothing. Nor does it where a lane is inactive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi.work_item import AXES
from hip_runtime.drivers.cpu.analyses.address_terms import take_apart
from hip_runtime.drivers.cpu.ir.model import Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1, I32
from hip_runtime.drivers.cpu.object_code.host_machine import vector_bytes
from hip_runtime.drivers.cpu.vectorize.vector_builder import size_in_memory
from hip_runtime.drivers.cpu.vectorize.widen import Widener


@dataclass(frozen=True)
class Cells:
    """*count* cells of *size* elements each, from the byte *first* of the shared array at *base* on, which is aligned
    to *align*. The first lane's element is number *lead* of the first cell, the others follow it."""

    base: Value
    align: int
    first: int
    count: int
    size: int
    lead: int


class CellWidener(Widener):
    """Writes the instructions of a block for a gang that begins with thread 0, in blocks of one row."""

    def needs(self, instruction: Instruction) -> tuple[Value, ...]:
        """What *instruction* is written with, besides its operands."""
        cells = self._find_accessed(instruction)
        return super().needs(instruction) if cells is None else (cells.base,)

    def needs_active_lane(self, instruction: Instruction) -> bool:
        """Whether *instruction* may only be executed for active lanes. Cells are within their array."""
        return super().needs_active_lane(instruction) and self._find_accessed(instruction) is None

    def load_contiguous(self, kind: ir.Type, pointer: Value, align: int) -> ir.Value:
        """A load of *kind* from neighbours."""
        cells = self._find_cells(kind, pointer)
        if cells is None:
            return super().load_contiguous(kind, pointer, align)
        return self._pick(self._load_cells(cells, kind), cells.lead, self.lanes.width)

    def store_contiguous(self, values: ir.Value, pointer: Value, align: int) -> None:
        """Store to neighbours."""
        cells = self._find_cells(values.type.element, pointer)
        if cells is None:
            super().store_contiguous(values, pointer, align)
            return
        width, before = self.lanes.width, self._load_cells(cells, values.type.element)
        if self.mask is not None:
            values = self.lanes.blend(self.mask, values, self._pick(before, cells.lead, width))
        elements = range(cells.count * cells.size)
        order = [
            element - cells.lead if 0 <= element - cells.lead < width else len(elements) + element
            for element in elements
        ]
        after = self.lanes.merge(self._resize(values, len(elements)), before, self._order(order))
        for number, place in enumerate(self._places(cells)):
            self.builder.store(self._pick(after, number * cells.size, cells.size), place, align=cells.align)

    def _find_accessed(self, instruction: Instruction) -> Cells | None:
        """The cells that *instruction* accesses, if it is written so."""
        if instruction.opcode not in ("load", "store") or instruction.volatile or instruction.atomic:
            return None
        kind = instruction.type if instruction.opcode == "load" else instruction.operands[0].type
        if self.only_lane(self.shapes.homes[instruction]) is not None or isinstance(
            kind, ir.LiteralStructType | ir.ArrayType
        ):
            return None
        return self._find_cells(kind, instruction.operands[-1])

    def _find_cells(self, kind: ir.Type, pointer: Value) -> Cells | None:
        """The cells with elements of *kind* from *pointer* on, one for each lane, if that is a constant place in a
        shared array, which has all of these cells."""
        if kind == I1:
            return None
        nbytes, cell = size_in_memory(kind), vector_bytes()
        address = take_apart(pointer, self.shapes.size_of)
        terms = {value: scale for value, scale in address.terms if not self._is_index(value)}
        steps = [scale for value, scale in address.terms if self._is_index(value)]
        base = next(iter(terms), None)
        array = self.item.measure_shared(base.callee) if isinstance(base, Instruction) else None
        if base is None or array is None or list(terms.values()) != [1] or steps != [nbytes]:
            return None
        size, align = array
        first = address.offset // cell * cell
        lead, rest = divmod(address.offset - first, nbytes)
        count = -(-(address.offset - first + self.lanes.width * nbytes) // cell)
        if rest or first < 0 or first + count * cell > size:
            return None
        return Cells(base, min(align, cell), first, count, cell // nbytes, lead)

    def _is_index(self, value: Value) -> bool:
        """Whether *value* is the index of a thread along the lanes, which is 0 in the first one."""
        while isinstance(value, Instruction) and value.opcode in ("zext", "sext"):
            value = value.operands[0]
        return isinstance(value, Instruction) and value.callee == spmd.thread_idx(AXES[self.item.axes[0]])

    def _load_cells(self, cells: Cells, kind: ir.Type) -> ir.Value:
        """All elements of *cells*."""
        vector = ir.VectorType(kind, cells.size)
        whole, *rest = [self.builder.load(place, typ=vector, align=cells.align) for place in self._places(cells)]
        for part in rest:
            count = whole.type.count
            whole = self.lanes.merge(whole, self._resize(part, count), self._order(range(count + cells.size)))
        return whole

    def _places(self, cells: Cells) -> Iterator[ir.Value]:
        """The address of each cell."""
        base = self.scalar(cells.base)
        for number in range(cells.count):
            yield self.lanes.step(base, cells.first + number * vector_bytes())

    def _pick(self, whole: ir.Value, first: int, count: int) -> ir.Value:
        """*count* elements of *whole*, from number *first* on."""
        return self.lanes.shuffle(whole, self._order(range(first, first + count)))

    def _resize(self, values: ir.Value, count: int) -> ir.Value:
        """*values* with *count* elements, of which those behind *values* are undefined."""
        return self.lanes.shuffle(values, self._order([min(number, values.type.count) for number in range(count)]))

    def _order(self, numbers: Sequence[int]) -> ir.Value:
        return self.lanes.vector_of(I32, numbers)
