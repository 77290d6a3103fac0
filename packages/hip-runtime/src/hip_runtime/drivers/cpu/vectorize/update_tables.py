"""Tables of a worker, in which it combines operands of the operations that `analyses.scattered_updates` found.

Atomic operations of a processor take some twenty cycles, and a trip of a cache line if another core has updated it. An
element of a table takes a load, an addition and a store. Each array that such operations update has a table for its
first elements, as many as fit; those behind are updated in memory. The table grows with the number of operations
(`table_growth`), in memory that the CPU thread keeps. Its elements are done when the worker ends, or once a thread is
about to access memory that has some: from then on that array is updated in memory, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.kept_memory import KEPT_BYTES, keep_memory, take_memory
from hip_runtime.drivers.cpu.abi.launch_frame import CHUNKS_PER_THREAD, CHUNKS_WITH_TABLES, FRAME, PROGRAM
from hip_runtime.drivers.cpu.abi.work_item import LINE, WorkItem
from hip_runtime.drivers.cpu.analyses.scattered_updates import ScatteredUpdates, UpdatedArray
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.analyses.vector_shapes import LaneShapes
from hip_runtime.drivers.cpu.ir.model import Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1, I8, I32, I64, PTR, allocate_at_entry, store_atomic
from hip_runtime.drivers.cpu.vectorize.gang_values import GangValues, IsPending
from hip_runtime.drivers.cpu.vectorize.linear_accesses import find_line
from hip_runtime.drivers.cpu.vectorize.table_contents import WHOLE, TableContents
from hip_runtime.drivers.cpu.vectorize.table_growth import SPARING, TABLE, TableGrowth
from hip_runtime.drivers.cpu.vectorize.table_update import TableUpdate, count_elements, find_element, update_element
from hip_runtime.drivers.cpu.vectorize.uniform_atomics import identity_of
from hip_runtime.drivers.cpu.vectorize.vector_builder import size_in_memory

_SMALL = 4096
"""Bytes of tables that are done in the end without a noticeable delay."""


@dataclass(frozen=True)
class _Table:
    """The table of one array, which is *number* of the work item's."""

    array: UpdatedArray
    number: int
    elements: int
    """The most that it has; how many it has now is in the work item, 0 until it grows and once it is done."""
    begin: int
    """Where it is in the worker's memory, in bytes."""

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
        self._names: dict[tuple[object, ...], int] = {}
        """Numbers of the functions for updates, by what these have in common."""
        share = KEPT_BYTES // len(updates.arrays) & -LINE
        self._tables = [
            _Table(array, number, share // size_in_memory(array.update.type), number * share)
            for number, array in enumerate(updates.arrays)
        ]
        for update in updates.updates:
            update.table = next(table.number for table in self._tables if table.array.updates(update))
        for access, numbers in updates.accesses.items():
            access.meets_tables = frozenset(numbers)

    # in a kernel

    def serves(self, code: GangValues, update: Instruction) -> bool:
        """Whether lanes do *update* by `update`: it may be done in a table, and their addresses are anywhere."""
        is_alone = isinstance(code.shapes, LaneShapes)
        return update.table is not None and (is_alone or code.shapes.of(update.operands[0], code.block) is VARYING)

    def update(self, code: GangValues, update: Instruction, operands: Sequence[ir.Value]) -> None:
        """Do *update* with the *operands* of one lane: in the table, if that has the element. A thread that goes on
        alone finds most of them there; for a gang, lanes are looked at one by one where that has not all."""
        builder, (address, value), table = code.builder, operands, self._table_of(update)
        if code.lanes.width > 1 or any(self._others(update)):
            self._update_anywhere(code, update, operands)
            return
        index = find_element(builder, table.size, address, code.arguments[table.array.argument.index])
        limit = self._load(builder, code.arguments[0], "table_limits", table)
        with builder.if_else(builder.icmp_unsigned("<", index, limit), likely=True) as (in_table, anywhere):
            with in_table:
                self.update_element(code, update, self.find_memory(code, update), index, value)
            with anywhere:
                self._update_anywhere(code, update, operands)

    def _update_anywhere(self, code: GangValues, update: Instruction, operands: Sequence[ir.Value]) -> None:
        """The same, wherever the element is: by a function, unless other tables may have what is in memory."""
        builder, table, item = code.builder, self._table_of(update), code.arguments[0]
        limit, own = (self._load(builder, item, name, table) for name in ("table_limits", "tables"))
        others = list(self._others(update))
        alike = update.table, update.operation, update.align, update.atomic, update.location, *others
        name = f"spmd.update.{self._names.setdefault(alike, len(self._names))}"
        growth = TableGrowth(table.identity, f"spmd.grow.table.{table.number}")
        made = TableUpdate(update, growth, name, self._item.has_lines)

        def meet(builder: ir.IRBuilder, item: ir.Value, arrays: Sequence[ir.Value], address: ir.Value) -> None:
            for other, array in zip(others, arrays, strict=True):
                with builder.if_then(self._hits(builder, item, other, array, address, table.size), likely=False):
                    self._end(builder, item, other, array)

        arrays = [code.arguments[known.array.argument.index] for known in (table, *others)]
        function = made.define(builder.module, len(others), meet if others else None)
        known = builder.call(function, [own, limit, arrays[0], *operands, item, *arrays[1:]], cconv=SPARING)
        self._item.layout.store(builder, known, item, "table_limits", table.number)

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

    def find_memory(self, code: GangValues, update: Instruction) -> ir.Value:
        """Where the elements of the table for *update* are. It is read again for each gang: what needs to be in a
        register for all of them is spilled, or what is used more often is."""
        table = self._load(code.builder, code.arguments[0], "tables", self._table_of(update))
        return TABLE.load_atomic(code.builder, table, "memory")

    def update_element(
        self, code: GangValues, update: Instruction, memory: ir.Value, index: ir.Value, value: ir.Value
    ) -> None:  # fmt: skip
        """Do *update* with *value* on the element with the number *index* in *memory*, which its table has."""
        update_element(code.builder, update, memory, index, value)

    def _find_all(self, code: GangValues, table: _Table, addresses: ir.Value) -> ir.Value:
        """The same as `find_element` for each lane."""
        builder, lanes = code.builder, code.lanes
        base = lanes.splat(builder.ptrtoint(code.arguments[table.array.argument.index], I64))
        distances = builder.sub(builder.ptrtoint(addresses, lanes.type_of(I64)), base)
        return count_elements(builder, table.size, distances)

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
        return total if unit == table.size else count_elements(builder, table.size, total)

    def _table_of(self, update: Instruction) -> _Table:
        assert update.table is not None
        return self._tables[update.table]

    def meet(self, code: GangValues, access: Instruction) -> None:
        """Before lanes do *access*: do what is in tables for its memory. `update` looks at that itself."""
        if self.serves(code, access):
            return
        address = access.address
        value = access.operands[0] if access.opcode == "store" else access
        kind = access.operands[1].type if access.opcode == "atomicrmw" else value.type
        shape, nbytes = code.shapes.of(address, code.block), size_in_memory(kind)

        def find(table: _Table) -> ir.Value:
            if shape is VARYING and code.is_line(address):
                return self._line_hits(code, table, address, nbytes)
            if shape is VARYING:
                return self._any_hits(code, table, code.vector(address), nbytes)
            span = (code.lanes.width - 1) * shape
            first = code.builder.gep(code.scalar(address), [I64(min(span, 0))], source_etype=I8)
            array = code.arguments[table.array.argument.index]
            return self._hits(code.builder, code.arguments[0], table, array, first, abs(span) + nbytes)

        self._meet(code, list(self._others(access)), find, code.pending)

    def _others(self, access: Instruction) -> Iterator[_Table]:
        """The tables whose elements *access* may not precede."""
        for table in self._tables:
            does = access.opcode == "atomicrmw" and table.array.does(access)
            if table.number in access.meets_tables and not does:
                yield table

    def _meet(
        self, code: GangValues, tables: Sequence[_Table], find: Callable[[_Table], ir.Value],
        pending: IsPending | None = None,
    ) -> None:  # fmt: skip
        """Do what is in those of *tables* whose memory an access hits, which *find* tells, after what is *pending*;
        this, too, if tables have no elements for it: in memory, or in tables that grow and may be hit then."""
        builder, hits = code.builder, {table: find(table) for table in tables}
        reasons = list(hits.values())
        if pending is not None and (is_open := pending.settle()) is not None:
            reasons.append(is_open)
        if not reasons:
            return
        with builder.if_then(reduce(builder.or_, reasons), likely=False), code.in_branch():
            if pending is not None:
                pending.catch_up()
            for table, found in hits.items():
                with builder.if_then(found if pending is None else find(table)):
                    self._end(builder, code.arguments[0], table, code.arguments[table.array.argument.index])

    def _end(self, builder: ir.IRBuilder, item: ir.Value, table: _Table, array: ir.Value) -> None:
        """Do what is in *table* of *array*, which has no elements from then on."""
        self._do(builder, table, item, array)
        self._item.layout.store(builder, I64(0), item, "table_limits", table.number)
        TABLE.store(builder, I64(0), self._load(builder, item, "tables", table), "most")

    def _hits(
        self, builder: ir.IRBuilder, item: ir.Value, table: _Table, array: ir.Value, address: ir.Value, nbytes: int
    ) -> ir.Value:  # fmt: skip
        """Whether any of *nbytes* from *address* on is in memory that *table* of *array* has elements for. The distance
        to the last of these bytes is compared, so that what begins before the array counts, too."""
        base = builder.ptrtoint(array, I64)
        end = builder.add(builder.sub(builder.ptrtoint(address, I64), base), I64(nbytes - 1))
        limit = builder.add(self._limit_in_bytes(builder, item, table), I64(nbytes - 1))
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
        limit = builder.add(self._limit_in_bytes(builder, code.arguments[0], table), span)
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
        limit = lanes.splat(builder.add(self._limit_in_bytes(builder, code.arguments[0], table), I64(nbytes - 1)))
        hits = builder.icmp_unsigned("<", ends, limit)
        return lanes.any(hits if code.mask is None else builder.and_(hits, code.mask))

    def _limit_in_bytes(self, builder: ir.IRBuilder, item: ir.Value, table: _Table) -> ir.Value:
        limit = self._load(builder, item, "table_limits", table)
        return builder.mul(limit, I64(table.size), flags=("nuw", "nsw"))

    def _load(self, builder: ir.IRBuilder, item: ir.Value, name: str, table: _Table) -> ir.Value:
        return self._item.layout.load(builder, item, name, table.number)

    # in the worker

    def write_start(
        self, builder: ir.IRBuilder, place: ir.Value, arguments: Sequence[ir.Value], notes: ir.Value
    ) -> None:  # fmt: skip
        """Write what a worker with a record *notes* does before its blocks: it takes memory for the tables, which have
        no elements yet. *place* is the work item, *arguments* are those of the kernel."""
        memory = take_memory(builder, notes)
        is_none = builder.icmp_unsigned("==", memory, PTR(None))
        for table in self._tables:
            own = allocate_at_entry(builder, TABLE.type, "table")
            TABLE.store(builder, builder.gep(memory, [I64(table.begin)], source_etype=I8), own, "memory")
            most = builder.select(is_none, I64(0), self._find_most(builder, table, arguments))
            TABLE.store(builder, most, own, "most")
            TABLE.store(builder, I64(0), own, "misses")
            for name, value in (("tables", own), ("table_limits", I64(0))):
                self._item.layout.store(builder, value, place, name, table.number)

    def _find_most(self, builder: ir.IRBuilder, table: _Table, arguments: Sequence[ir.Value]) -> ir.Value:
        """The most elements that *table* may have: it ends where another array begins. If two tables are of the same
        array, that has none."""
        own = table.array.argument.index - 1
        tabled = [other.array.argument.index - 1 for other in self._tables if other is not table]
        base = builder.ptrtoint(arguments[own], I64)
        most: ir.Value = I64(table.elements)
        for number, argument in enumerate(arguments):
            if not isinstance(argument.type, ir.PointerType) or (number == own and number not in tabled):
                continue
            distance = builder.sub(builder.ptrtoint(argument, I64), base)
            room = builder.udiv(distance, I64(table.size))
            is_less = builder.icmp_unsigned("<", room, most)
            if number not in tabled:  # what is read and updated by the same kernel
                is_less = builder.and_(is_less, builder.icmp_unsigned("!=", distance, I64(0)))
            most = builder.select(is_less, room, most)
        return most

    def write_end(
        self, builder: ir.IRBuilder, place: ir.Value, arguments: Sequence[ir.Value], notes: ir.Value
    ) -> None:  # fmt: skip
        """Write what it does behind them: all that is in the tables."""
        for table in self._tables:
            self._do(builder, table, place, arguments[table.array.argument.index - 1])
        keep_memory(builder, notes)
        if not self._item.order.takes_turns:
            self._learn_chunks(builder, place)

    def _learn_chunks(self, builder: ir.IRBuilder, place: ir.Value) -> None:
        """Write what tells into how many chunks the blocks of the next launch are divided: by how much is in the tables
        of the first chunk. The last one may be a small rest."""
        total: ir.Value = I64(0)
        for table in self._tables:
            limit = self._load(builder, place, "table_limits", table)
            total = builder.add(total, builder.mul(limit, I64(table.size)))
        is_small = builder.icmp_unsigned("<=", total, I64(_SMALL))
        parts = builder.select(is_small, I32(CHUNKS_PER_THREAD), I32(CHUNKS_WITH_TABLES))
        frame = self._item.layout.load(builder, place, "frame")
        is_first = builder.icmp_unsigned("==", FRAME.load(builder, frame, "next_block"), I64(0))
        with builder.if_then(is_first):
            program = FRAME.load(builder, frame, "program")
            store_atomic(builder, parts, PROGRAM.field(builder, program, "parts"))

    def _do(self, builder: ir.IRBuilder, table: _Table, item: ir.Value, base: ir.Value) -> None:
        limit, own = (self._load(builder, item, name, table) for name in ("table_limits", "tables"))
        memory = TABLE.load(builder, own, "memory")
        contents = TableContents(table.array.update, table.identity, f"spmd.do.table.{table.number}")
        builder.call(contents.define(builder.module), [memory, limit, base, self._find_start(builder, item)])

    def _find_start(self, builder: ir.IRBuilder, item: ir.Value) -> ir.Value:
        """What part of a table this worker does at last: as many as there are blocks before its own."""
        frame = self._item.layout.load(builder, item, "frame")
        count = FRAME.load(builder, FRAME.load(builder, frame, "launch"), "block_count")
        before = FRAME.load(builder, frame, "next_block")
        return builder.udiv(builder.mul(before, I64(WHOLE)), count)


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
