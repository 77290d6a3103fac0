"""Tables of a worker, in which it combines operands of the operations that `analyses.scattered_updates` found.

Atomic operations of a processor take some twenty cycles, and a trip of a cache line if another core has updated it. An
element of a table takes a load, an addition and a store. Each array that such operations update has a table for its
first elements, as many as fit; those behind are updated in memory. The table's elements are done when the worker ends,
or once a thread is about to access memory that has some: from then on that array is updated in memory, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.launch_frame import FRAME
from hip_runtime.drivers.cpu.abi.work_item import LINE, WorkItem
from hip_runtime.drivers.cpu.abi.worker import counted
from hip_runtime.drivers.cpu.analyses.scattered_updates import ScatteredUpdates, UpdatedArray
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.analyses.vector_shapes import LaneShapes
from hip_runtime.drivers.cpu.ir.model import Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1, I8, I32, I64, allocate
from hip_runtime.drivers.cpu.passes.checked_atomics import write_checked
from hip_runtime.drivers.cpu.passes.demote_atomics import combine
from hip_runtime.drivers.cpu.vectorize.gang_values import GangValues, IsPending
from hip_runtime.drivers.cpu.vectorize.linear_accesses import find_line
from hip_runtime.drivers.cpu.vectorize.table_contents import TableContents
from hip_runtime.drivers.cpu.vectorize.uniform_atomics import COLLECTED, identity_of
from hip_runtime.drivers.cpu.vectorize.vector_builder import mangle, size_in_memory

_BYTES = 262144
"""Of all tables of a worker together, which stay in a second-level cache."""

_THREADS_PER_ELEMENT = 4
"""Of a worker, at least: otherwise filling the tables, and doing what is in them, would take longer than it saves."""

_FEWEST_THREADS = 1024
"""Of workers that use tables."""


@dataclass(frozen=True)
class _Table:
    """The table of one array, which is *number* of the work item's."""

    array: UpdatedArray
    number: int
    elements: int
    """The most that it has; how many it has now is in the work item, 0 until there is a table and once it is done."""

    @property
    def kind(self) -> ir.Type:
        """Type of an element."""
        return self.array.update.type

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return size_in_memory(self.kind)

    @property
    def bits(self) -> ir.IntType:
        """The integer type of an element's bits."""
        return ir.IntType(8 * self.size)

    @property
    def identity(self) -> ir.Constant:
        """The bits of an element that nothing was done to."""
        return identity_of(self.array.update).bitcast(self.bits)


class UpdateTables:
    """The tables of the worker of *item*, whose kernel does the *updates*."""

    def __init__(self, item: WorkItem, updates: ScatteredUpdates) -> None:
        self._item = item
        share = _BYTES // len(updates.arrays)
        self._tables = [
            _Table(array, number, max(LINE, share // size_in_memory(array.update.type) & -LINE))
            for number, array in enumerate(updates.arrays)
        ]
        for update in updates.updates:
            update.is_tabled = True
        for access, numbers in updates.accesses.items():
            access.meets_tables = frozenset(numbers)

    # in a kernel

    def serves(self, code: GangValues, update: Instruction) -> bool:
        """Whether lanes do *update* by `update`: it may be done in a table, and their addresses are anywhere."""
        is_alone = isinstance(code.shapes, LaneShapes)
        return update.is_tabled and (is_alone or code.shapes.of(update.operands[0], code.block) is VARYING)

    def update(self, code: GangValues, update: Instruction, operands: Sequence[ir.Value]) -> None:
        """Do *update* with the *operands* of one lane: in the table, if that has the element."""
        builder, (address, value), table = code.builder, operands, self._table_of(update)
        limit = self._load(builder, code.arguments[0], "table_limits", table)
        index = self._find_element(builder, table, address, code.arguments[table.array.argument.index])
        with builder.if_else(builder.icmp_unsigned("<", index, limit)) as (in_table, in_memory):
            with in_table:
                self.update_element(code, update, index, value)
            with in_memory:
                for other in self._others(update):
                    self._meet(code, other, self._hits(code, other, address, table.size))
                write_checked(builder, update, operands)

    def needs(self, update: Instruction) -> tuple[Value, ...]:
        """What `find_elements` takes of *update* besides its operands."""
        return tuple(index for index, _ in _find_steps(update.operands[0]) or ())

    def find_elements(
        self, code: GangValues, update: Instruction, addresses: ir.Value
    ) -> tuple[ir.Value, ir.Value]:  # fmt: skip
        """The numbers of the elements at *addresses*, one for each lane, and whether the table has those of all active
        lanes."""
        builder, lanes, table = code.builder, code.lanes, self._table_of(update)
        steps = _find_steps(update.operands[0])
        elements = self._find_all(code, table, addresses) if steps is None else self._count(code, table, steps)
        limit = lanes.splat(self._load(builder, code.arguments[0], "table_limits", table))
        beyond = builder.icmp_unsigned(">=", elements, limit)
        if code.mask is not None:
            beyond = builder.select(code.mask, beyond, lanes.no_lanes())
        return elements, builder.not_(lanes.any(beyond))

    def update_element(self, code: GangValues, update: Instruction, index: ir.Value, value: ir.Value) -> None:
        """Do *update* with *value* on the element with the number *index*, which its table has."""
        builder, table = code.builder, self._table_of(update)
        place = self._load(builder, code.arguments[0], "tables", table)
        number = index if index.type == I64 else builder.zext(index, I64)
        element = builder.gep(place, [number], inbounds=True, source_etype=table.kind)
        old = builder.load(element, typ=table.kind)
        operation = COLLECTED.get(update.operation, update.operation)
        builder.store(combine(builder, operation, old, value), element)

    def _find_all(self, code: GangValues, table: _Table, addresses: ir.Value) -> ir.Value:
        """The same as `_find_element` for each lane."""
        builder, lanes = code.builder, code.lanes
        base = lanes.splat(builder.ptrtoint(code.arguments[table.array.argument.index], I64))
        distances = builder.sub(builder.ptrtoint(addresses, lanes.type_of(I64)), base)
        return distances if table.size == 1 else self._divide(builder, table, distances)

    def _count(self, code: GangValues, table: _Table, steps: Sequence[tuple[Value, ir.Type]]) -> ir.Value:
        """The same for an address that is *steps* beyond the table's array: LLVM does not see that addresses less their
        base are these. Steps of whole elements need no division."""
        builder, kind = code.builder, code.lanes.type_of(I64)
        sizes = [code.shapes.size_of(stepped) for _, stepped in steps]
        unit = table.size if all(size == table.size for size in sizes) else 1
        total: ir.Value = code.lanes.splat(I64(0))
        for (index, _), size in zip(steps, sizes, strict=True):
            number = code.vector(index)
            if index.type != I64:
                number = builder.sext(number, kind)
            if size != unit:
                number = builder.mul(number, code.lanes.splat(I64(size)))
            total = builder.add(total, number)
        return total if unit == table.size else self._divide(builder, table, total)

    def _table_of(self, update: Instruction) -> _Table:
        return next(table for table in self._tables if table.array.updates(update))

    def meet(self, code: GangValues, access: Instruction) -> None:
        """Before lanes do *access*: do what is in tables for its memory. `update` looks at that itself."""
        if self.serves(code, access):
            return
        address = access.operands[1 if access.opcode == "store" else 0]
        value = access.operands[0] if access.opcode == "store" else access
        kind = access.operands[1].type if access.opcode == "atomicrmw" else value.type
        shape, pending = code.shapes.of(address, code.block), code.pending
        if pending is not None:
            pending.settle()
        for table in self._others(access):
            if shape is VARYING and code.is_line(address):
                found = self._line_hits(code, table, address, size_in_memory(kind))
            elif shape is VARYING:
                found = self._any_hits(code, table, code.vector(address), size_in_memory(kind))
            else:
                span = (code.lanes.width - 1) * shape
                first = code.builder.gep(code.scalar(address), [I64(min(span, 0))], source_etype=I8)
                found = self._hits(code, table, first, abs(span) + size_in_memory(kind))
            self._meet(code, table, found, pending)

    def _others(self, access: Instruction) -> Iterator[_Table]:
        """The tables whose elements *access* may not precede."""
        for table in self._tables:
            does = access.opcode == "atomicrmw" and table.array.does(access)
            if table.number in access.meets_tables and not does:
                yield table

    def _meet(
        self, code: GangValues, table: _Table, hits: ir.Value, pending: IsPending | None = None
    ) -> None:  # fmt: skip
        """Do what is in *table*, after what is *pending*, if an access *hits* its memory."""
        builder, item = code.builder, code.arguments[0]
        with builder.if_then(hits, likely=False):
            if pending is not None:
                pending.catch_up()
            self._do(builder, table, item, code.arguments[table.array.argument.index])
            self._item.layout.store(builder, I64(0), item, "table_limits", table.number)

    def _hits(self, code: GangValues, table: _Table, address: ir.Value, nbytes: int) -> ir.Value:
        """Whether any of *nbytes* from *address* on is in memory that *table* has elements for. The distance to the
        last of these bytes is compared, so that what begins before the array counts, too."""
        builder = code.builder
        base = builder.ptrtoint(code.arguments[table.array.argument.index], I64)
        end = builder.add(builder.sub(builder.ptrtoint(address, I64), base), I64(nbytes - 1))
        limit = builder.add(self._limit_in_bytes(code, table), I64(nbytes - 1))
        return builder.icmp_unsigned("<", end, limit)

    def _line_hits(self, code: GangValues, table: _Table, address: Value, nbytes: int) -> ir.Value:
        """Whether lanes hit whose addresses grow by the same number from lane to lane: these are only compared if the
        table has memory between the first and the last one."""
        builder = code.builder
        base = builder.ptrtoint(code.arguments[table.array.argument.index], I64)
        line = find_line(code, address)
        ends = [builder.ptrtoint(line.of_lane(builder, I32(lane)), I64) for lane in (0, code.lanes.width - 1)]
        ahead = builder.icmp_unsigned("<", *ends)
        low, high = builder.select(ahead, *ends), builder.select(ahead, *reversed(ends))
        span = builder.add(builder.sub(high, low), I64(nbytes - 1))
        limit = builder.add(self._limit_in_bytes(code, table), span)
        between = builder.icmp_unsigned("<", builder.sub(builder.add(low, span), base), limit)
        before = builder.block
        with builder.if_then(between, likely=False), code.in_branch():
            exact, behind = self._any_hits(code, table, code.vector(address), nbytes), builder.block
        found = builder.phi(exact.type, "hits")
        found.add_incoming(I1(0), before)
        found.add_incoming(exact, behind)
        return found

    def _any_hits(self, code: GangValues, table: _Table, addresses: ir.Value, nbytes: int) -> ir.Value:
        """The same for each active lane, with an address each."""
        builder, lanes = code.builder, code.lanes
        base = builder.ptrtoint(code.arguments[table.array.argument.index], I64)
        start = lanes.splat(builder.sub(base, I64(nbytes - 1)))
        ends = builder.sub(builder.ptrtoint(addresses, lanes.type_of(I64)), start)
        limit = lanes.splat(builder.add(self._limit_in_bytes(code, table), I64(nbytes - 1)))
        hits = builder.icmp_unsigned("<", ends, limit)
        return lanes.any(hits if code.mask is None else builder.and_(hits, code.mask))

    def _limit_in_bytes(self, code: GangValues, table: _Table) -> ir.Value:
        limit = self._load(code.builder, code.arguments[0], "table_limits", table)
        return code.builder.mul(limit, I64(table.size), flags=("nuw", "nsw"))

    def _find_element(self, builder: ir.IRBuilder, table: _Table, address: ir.Value, base: ir.Value) -> ir.Value:
        """The number of the element at *address*; a very large one if it is before the array or between two elements:
        the remainder of the distance is rotated to the high bits."""
        distance = builder.sub(builder.ptrtoint(address, I64), builder.ptrtoint(base, I64))
        return distance if table.size == 1 else self._divide(builder, table, distance)

    def _divide(self, builder: ir.IRBuilder, table: _Table, distance: ir.Value) -> ir.Value:
        """A distance in bytes, or a vector of such, in elements, with the remainder in the high bits."""
        kind = distance.type
        by = I64(table.size.bit_length() - 1)
        if isinstance(kind, ir.VectorType):
            by = ir.Constant(kind, [by] * kind.count)
        signature = ir.FunctionType(kind, [kind] * 3)
        name = f"llvm.fshr.{mangle(kind)}"
        rotate = builder.module.globals.get(name) or ir.Function(builder.module, signature, name)
        return builder.call(rotate, [distance, distance, by])

    def _load(self, builder: ir.IRBuilder, item: ir.Value, name: str, table: _Table) -> ir.Value:
        return self._item.layout.load(builder, item, name, table.number)

    # in the worker

    def write_start(
        self, builder: ir.IRBuilder, place: ir.Value, arguments: Sequence[ir.Value], first: ir.Value
    ) -> None:  # fmt: skip
        """Write what a worker does before its first chunk of blocks, which begins with *first*: it fills the tables, if
        there are enough blocks. *place* is the work item, *arguments* are those of the kernel."""
        frame = self._item.layout.load(builder, place, "frame")
        blocks = builder.sub(FRAME.load(builder, frame, "block_count"), first)
        threads = builder.mul(blocks, I64(self._item.threads), flags=("nuw",))
        bases = [builder.ptrtoint(arguments[table.array.argument.index - 1], I64) for table in self._tables]
        with builder.if_then(builder.icmp_unsigned(">=", threads, I64(_FEWEST_THREADS))):
            worthwhile = builder.and_(builder.udiv(threads, I64(_THREADS_PER_ELEMENT)), I64(-LINE))
            for table, base in zip(self._tables, bases, strict=True):
                limit: ir.Value = I64(table.elements)
                limit = builder.select(builder.icmp_unsigned("<", worthwhile, limit), worthwhile, limit)
                self._fill(builder, table, self._load(builder, place, "tables", table), limit)
                for other, start in zip(self._tables, bases, strict=True):
                    if other is not table:
                        room = builder.udiv(builder.sub(start, base), I64(table.size))
                        limit = builder.select(builder.icmp_unsigned("<", room, limit), room, limit)
                self._item.layout.store(builder, limit, place, "table_limits", table.number)

    def allocate(self, builder: ir.IRBuilder, place: ir.Value) -> None:
        """Write the allocation of the tables, which have no elements yet, at the worker's entry."""
        for table in self._tables:
            memory = allocate(builder, ir.ArrayType(I8, table.elements * table.size), "table")
            memory.align = LINE
            self._item.layout.store(builder, memory, place, "tables", table.number)
            self._item.layout.store(builder, I64(0), place, "table_limits", table.number)

    def write_end(self, builder: ir.IRBuilder, place: ir.Value, arguments: Sequence[ir.Value]) -> None:
        """Write what a worker does behind its last chunk: all that is in the tables."""
        for table in self._tables:
            self._do(builder, table, place, arguments[table.array.argument.index - 1])

    def _fill(self, builder: ir.IRBuilder, table: _Table, memory: ir.Value, elements: ir.Value) -> None:
        lanes = LINE // table.size
        nothing = ir.Constant(ir.VectorType(table.bits, lanes), [table.identity] * lanes)
        with counted(builder, "fill", I64(0), builder.udiv(elements, I64(lanes))) as line:
            place = builder.gep(memory, [line], inbounds=True, source_etype=nothing.type)
            builder.store(nothing, place, align=LINE)

    def _do(self, builder: ir.IRBuilder, table: _Table, item: ir.Value, base: ir.Value) -> None:
        memory, limit = (self._load(builder, item, name, table) for name in ("tables", "table_limits"))
        contents = TableContents(table.array.update, table.identity, f"spmd.do.table.{table.number}")
        builder.call(contents.define(builder.module), [memory, limit, base])


def _find_steps(pointer: Value) -> list[tuple[Value, ir.Type]] | None:
    """The indices that *pointer* is beyond an argument, each of elements of a type, if it is made of such steps."""
    steps = []
    while isinstance(pointer, Instruction):
        if pointer.opcode != "getelementptr" or len(pointer.operands) != 2:
            return None
        assert pointer.source_type is not None
        steps.append((pointer.operands[1], pointer.source_type))
        pointer = pointer.operands[0]
    return steps
