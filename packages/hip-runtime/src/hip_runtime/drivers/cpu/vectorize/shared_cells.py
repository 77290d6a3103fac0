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

from hip_runtime.drivers.cpu.analyses.shared_places import find_shared_place
from hip_runtime.drivers.cpu.ir.model import Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1, I8, I32, I64
from hip_runtime.drivers.cpu.object_code.host_machine import vector_bytes
from hip_runtime.drivers.cpu.vectorize.vector_builder import size_in_memory
from hip_runtime.drivers.cpu.vectorize.widen import Widener


@dataclass(frozen=True)
class CellGangs:
    """Gangs that begin with thread 0, or with a multiple of their width below *reach*, in blocks of one row. Every
    *step*-th lane may be active, from number *phase* of the block on, and every gang has one of these."""

    reach: int
    step: int = 1
    phase: int = 0

    def active(self, width: int) -> range:
        """The lanes of a gang of *width* that may be active."""
        return range(self.phase % min(self.step, width), width, self.step)


@dataclass(frozen=True)
class Cells:
    """*count* cells of *size* elements each, in the shared array at *base*, which has *nbytes* and is aligned to
    *align*. The first one begins *first* bytes behind *base*, and *step* bytes more for each thread before the gang,
    the number of which is *index*. The first lane's element would be number *lead* of the first cell, the others follow
    it. In some gangs cells are *before* the array, or *behind* it."""

    base: Value
    index: Value
    nbytes: int
    align: int
    first: int
    step: int
    count: int
    size: int
    lead: int
    before: bool
    behind: bool

    @property
    def inside(self) -> bool:
        """Whether they are in the array for any gang."""
        return not (self.before or self.behind)

    @property
    def values(self) -> tuple[Value, Value]:
        """What the addresses of cells are computed from."""
        return self.base, self.index


class CellWidener(Widener):
    """Writes the instructions of a block for such gangs."""

    gangs = CellGangs(0)

    def needs(self, instruction: Instruction) -> tuple[Value, ...]:
        """What *instruction* is written with, besides its operands."""
        cells = self._find_accessed(instruction)
        return super().needs(instruction) if cells is None else cells.values

    def needs_active_lane(self, instruction: Instruction) -> bool:
        """Whether *instruction* may only be executed for active lanes. Cells are within their array."""
        return super().needs_active_lane(instruction) and self._find_accessed(instruction) is None

    def load_contiguous(self, kind: ir.Type, pointer: Value, align: int) -> ir.Value:
        """A load of *kind* from neighbours."""
        cells = self._find_cells(kind, pointer)
        if cells is None:
            return super().load_contiguous(kind, pointer, align)
        return self._pick(self._load_cells(cells, kind), cells)

    def store_contiguous(self, values: ir.Value, pointer: Value, align: int) -> None:
        """Store to neighbours."""
        cells = self._find_cells(values.type.element, pointer)
        if cells is None or not (cells.inside or self.mask is not None):
            super().store_contiguous(values, pointer, align)
            return
        before = self._load_cells(cells, values.type.element)
        places = list(enumerate(self._places(cells)))
        if self.mask is not None:
            # Without `freeze`, LLVM makes a masked store of this, which the processor does not pass on to later loads.
            old = self.lanes.freeze(self._pick(before, cells))
            values = self.lanes.blend(self.mask, values, old)
        active = self.gangs.active(self.lanes.width)
        for number, place in reversed(places) if cells.behind else places:
            lanes = [number * cells.size + element - cells.lead for element in range(cells.size)]
            after = self.lanes.shuffle(values, self._order([lane % self.lanes.width for lane in lanes]))
            order = [i if lane in active else cells.size + i for i, lane in enumerate(lanes)]
            self.builder.store(self.lanes.merge(after, before[number], self._order(order)), place, align=cells.align)

    def _find_accessed(self, instruction: Instruction) -> Cells | None:
        """The cells that *instruction* accesses, if it is written so."""
        if instruction.opcode not in ("load", "store") or instruction.volatile or instruction.atomic:
            return None
        kind = instruction.accessed
        if self.only_lane(self.shapes.homes[instruction]) is not None or isinstance(
            kind, ir.LiteralStructType | ir.ArrayType
        ):
            return None
        return self._find_cells(kind, instruction.address)

    def _find_cells(self, kind: ir.Type, pointer: Value) -> Cells | None:
        """The cells with elements of *kind* from *pointer* on, one for each lane, if that is a constant place in a
        shared array, but for the index of the gang's first thread."""
        if kind == I1:
            return None
        nbytes, cell = size_in_memory(kind), vector_bytes()
        found = find_shared_place(pointer, self.item, self.shapes.size_of)
        if found is None or found.stride != nbytes:
            return None
        width, size = self.lanes.width, cell // nbytes
        number, rest = divmod(found.offset, nbytes)
        active = self.gangs.active(width)
        first, end = (number + active[0]) // size, (number + active[-1]) // size + 1
        last = (self.gangs.reach - 1) // width * width * nbytes
        before, behind = first < 0, last + end * cell > found.nbytes
        if rest or (last and width * nbytes % cell) or (before and behind):
            return None
        if (before or behind) and found.nbytes % cell != 0:
            return None
        return Cells(
            found.base, found.index, found.nbytes, min(found.align, cell), first * cell, nbytes if last else 0,
            end - first, size, number - first * size, before, behind,
        )  # fmt: skip

    def _load_cells(self, cells: Cells, kind: ir.Type) -> list[ir.Value]:
        """The elements of each of *cells*."""
        vector = ir.VectorType(kind, cells.size)
        return [self.builder.load(place, typ=vector, align=cells.align) for place in self._places(cells)]

    def _places(self, cells: Cells) -> Iterator[ir.Value]:
        """The address of each cell; that of the first or the last one for a cell beyond the array, where no active lane
        has its element. What is stored there, before what is in the array, is what was there."""
        builder, base = self.builder, self.scalar(cells.base)
        before: ir.Value = I64(0)
        if cells.step:
            before = builder.mul(builder.zext(self.scalar(cells.index), I64), I64(cells.step), flags=("nuw", "nsw"))
        for number in range(cells.count):
            place = builder.add(before, I64(cells.first + number * vector_bytes()))
            if not cells.inside:
                for name, limit in (("smin", cells.nbytes - vector_bytes()), ("smax", 0)):
                    place = self.lanes.call(f"llvm.{name}.i64", I64, [place, I64(limit)])
            yield builder.gep(base, [place], source_etype=I8)

    def _pick(self, parts: Sequence[ir.Value], cells: Cells) -> ir.Value:
        """The lanes' elements of cells with the elements *parts*."""
        width = self.lanes.width
        together = min(cells.size, width)
        pieces = [self._pick_some(parts, cells, range(lane, lane + together)) for lane in range(0, width, together)]
        while len(pieces) > 1:
            order = self._order(range(2 * pieces[0].type.count))
            pieces = [self.lanes.merge(*pair, order) for pair in zip(pieces[::2], pieces[1::2], strict=True)]
        return pieces[0]

    def _pick_some(self, parts: Sequence[ir.Value], cells: Cells, lanes: range) -> ir.Value:
        """The elements of *lanes*, at most as many as a cell has: of two cells, or of one."""
        places = [cells.lead + lane for lane in lanes]
        active = self.gangs.active(self.lanes.width)
        used = sorted({place // cells.size for lane, place in zip(lanes, places, strict=True) if lane in active})
        first, last = (used[0], used[-1]) if used else (0, 0)
        order = [place % cells.size + (cells.size if place // cells.size == last > first else 0) for place in places]
        return self.lanes.merge(parts[first], parts[last], self._order(order))

    def _order(self, numbers: Sequence[int]) -> ir.Value:
        return self.lanes.vector_of(I32, numbers)
