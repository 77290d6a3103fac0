"""Loads and stores of a gang: contiguous vectors where lanes access neighbours, else gathers, scatters and the like."""

from __future__ import annotations

from llvmlite import ir

from hip_devicelib.cached_property import cached_property
from hip_runtime.drivers.cpu.abi.worker_memory import KeepsTables
from hip_runtime.drivers.cpu.analyses.clamped_addresses import ClampedAddress, find_clamped_address
from hip_runtime.drivers.cpu.analyses.data_masks import find_data_masked
from hip_runtime.drivers.cpu.analyses.divided_addresses import DividedAddress, find_divided_address
from hip_runtime.drivers.cpu.analyses.effects import needs_active_lane
from hip_runtime.drivers.cpu.analyses.joint_updates import find_joint_updates
from hip_runtime.drivers.cpu.analyses.linear_addresses import find_leaves
from hip_runtime.drivers.cpu.analyses.neighbours import Neighbours
from hip_runtime.drivers.cpu.analyses.private_arrays import is_private_address
from hip_runtime.drivers.cpu.analyses.shape_rules import MAX_STRIDE, VARYING
from hip_runtime.drivers.cpu.analyses.small_tables import SmallTable, find_small_table
from hip_runtime.drivers.cpu.analyses.strided_groups import StridedGroups
from hip_runtime.drivers.cpu.ir import remarks
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value
from hip_runtime.drivers.cpu.ir.writer import write_instruction
from hip_runtime.drivers.cpu.llvmir import I1
from hip_runtime.drivers.cpu.object_code.host_machine import has_mask_registers, masks_neighbours, spreads_masks
from hip_runtime.drivers.cpu.vectorize.apart_accesses import ApartAccesses
from hip_runtime.drivers.cpu.vectorize.appended_stores import is_appended, write_appended
from hip_runtime.drivers.cpu.vectorize.clamped_loads import ClampedLoads
from hip_runtime.drivers.cpu.vectorize.divided_loads import load_divided
from hip_runtime.drivers.cpu.vectorize.filled_rows import find_filled_rows, store_row
from hip_runtime.drivers.cpu.vectorize.page_loads import load_in_page
from hip_runtime.drivers.cpu.vectorize.row_loads import load_rows
from hip_runtime.drivers.cpu.vectorize.scalarize import Scalarizer
from hip_runtime.drivers.cpu.vectorize.strided_accesses import (
    REVERSED,
    load_reversed,
    load_strided,
    store_reversed,
    store_strided,
)
from hip_runtime.drivers.cpu.vectorize.table_loads import load_from_table
from hip_runtime.drivers.cpu.vectorize.tabled_updates import TabledUpdates
from hip_runtime.drivers.cpu.vectorize.vector_builder import size_in_memory

_ACCESSES = frozenset({"load", "store", "atomicrmw", "cmpxchg"})


class MemoryAccesses(ApartAccesses):
    """Writes the loads and stores of a block for a gang."""

    form, stride = remarks.COMPUTED, 0
    """How the last instruction was written, and the stride of its accesses in elements; for remarks."""
    _groups: StridedGroups | None = None
    """The loads of this block that take the elements between each other's, once that was asked."""
    _clamped_loads: ClampedLoads | None = None
    """Writes loads of this block at clamped indices, once there is one."""
    _rows: dict[Instruction, Neighbours] | None = None
    """The stores of this block that fill rows of memory together, once they were looked for."""
    _updates: TabledUpdates | None = None
    """The last updates of tables of this block, once there are any."""

    def begin(self, block: Block, mask: ir.Value | None) -> None:
        """Start another block."""
        super().begin(block, mask)
        self.lanes.has_steady_masks = not has_mask_registers() and block not in self._data_masked
        self._groups = self._clamped_loads = self._rows = self._updates = None

    @cached_property
    def _clamped(self) -> dict[Instruction, ClampedAddress | None]:
        """The loads that were looked at."""
        return {}

    @cached_property
    def _tables(self) -> dict[Instruction, SmallTable | None]:
        """Those of the loads that were looked at."""
        return {}

    def _clamped_address(self, load: Instruction) -> ClampedAddress | None:
        """The address of *load*, if it is that of neighbours but for those at a limit, and vectors that are loaded
        under a mask are better than a gather."""
        if self.suspension is not None:
            return None  # which would have to keep what is needed
        if load not in self._clamped:
            home, nbytes = self.shapes.homes[load], size_in_memory(load.type)
            found = find_clamped_address(load.operands[0], home, self.shapes) if nbytes else None
            if found is not None:
                steps, rest = divmod(found.stride, nbytes)
                found = None if rest or not 1 <= steps <= (MAX_STRIDE if spreads_masks() else 1) else found
            self._clamped[load] = found
        return self._clamped[load]

    def _small_table(self, load: Instruction) -> SmallTable | None:
        """The table that lanes look up what *load* loads in, if it is small."""
        if self.suspension is not None or self.lockstep:
            return None
        if load not in self._tables:
            self._tables[load] = find_small_table(load, self.shapes.homes[load], self.shapes)
        return self._tables[load]

    @cached_property
    def _divided_addresses(self) -> dict[Instruction, DividedAddress | None]:
        """Those of the loads that were looked at."""
        return {}

    def _divided_address(self, load: Instruction) -> DividedAddress | None:
        """The address of *load*, if neighbours share elements, and get them out of registers."""
        if self.suspension is not None or self.lockstep:
            return None
        if load not in self._divided_addresses:
            self._divided_addresses[load] = find_divided_address(load, self.shapes.homes[load], self.shapes)
        return self._divided_addresses[load]

    def needs(self, instruction: Instruction) -> tuple[Value, ...]:
        """What *instruction* is written with, besides its operands."""
        if instruction.table is not None and self.item.memory.tables is not None:
            return self.item.memory.tables.needs(instruction)
        if instruction.opcode not in _ACCESSES or self.suspension is not None:
            return ()  # a gang that stops would have to keep it
        pointer, home = instruction.operands[instruction.opcode == "store"], self.shapes.homes[instruction]
        if self.shapes.of(pointer, home) is not VARYING:
            return ()
        is_plain = instruction.opcode == "load" and not (instruction.volatile or instruction.atomic)
        if is_plain and (address := self._clamped_address(instruction)) is not None:
            return address.values
        if is_plain and (table := self._small_table(instruction)) is not None:
            return table.values
        if is_plain and (divided := self._divided_address(instruction)) is not None:
            return divided.values
        return find_leaves(pointer, home, self.shapes) or ()

    def needs_active_lane(self, instruction: Instruction) -> bool:
        """Whether *instruction* may only be executed for active lanes."""
        return needs_active_lane(instruction)

    def _align_of_base(self, align: int, stride: int) -> int:
        """The alignment of the first lane's address, if those of active lanes, *stride* bytes apart, have *align*."""
        return align if self.mask is None else min(align, stride & -stride)

    def write_load(self, instruction: Instruction) -> ir.Value:
        """Write a load from addresses that differ between lanes; returns what each lane loads."""
        (pointer,) = instruction.operands
        if instruction.type == I1:
            return self.scalarize(instruction)
        align = instruction.align or 1
        if (lane := self.accessing_lane(instruction.type, pointer)) is not None:
            self.form = remarks.ONE_LANE
            return self.load_alone(instruction, lane)
        if self.is_contiguous(instruction.type, pointer):
            self.form = remarks.CONTIGUOUS
            return self.load_contiguous(instruction.type, pointer, align)
        stride = self.element_stride(instruction.type, pointer)
        if stride:
            self.form, self.stride = _form_of(stride)
            if stride == REVERSED:
                return self._load_strided(instruction.type, self.scalar(pointer), stride, align)
            return self._load_member(instruction, stride, align)
        if (address := self._clamped_address(instruction)) is not None:
            self.form = remarks.CLAMPED
            if self._clamped_loads is None:
                self._clamped_loads = ClampedLoads(self)
            return self._clamped_loads.write(instruction, address)
        if (table := self._small_table(instruction)) is not None:
            self.form = remarks.LOOKED_UP
            return load_from_table(self, instruction, table)
        if (divided := self._divided_address(instruction)) is not None:
            self.form = remarks.SHARED
            return load_divided(self, instruction, divided)
        if not (stride := self.speculated_stride(instruction.type, pointer)):
            self.form = remarks.GATHERED
            return self.load_apart(instruction)
        pointers = self.vector(pointer)
        self.form, self.stride = (remarks.SPECULATED, 0) if stride == 1 else _form_of(stride)
        base, holds = self._speculated.base(pointer)
        with self.builder.if_else(holds) as (speculated, otherwise):
            with speculated:
                near = self._load_strided(instruction.type, base, stride, align)
                near_block = self.builder.block
            with otherwise:
                far, far_block = self.lanes.gather(instruction.type, pointers, self.mask, align), self.builder.block
        result = self.builder.phi(near.type)
        result.add_incoming(near, near_block)
        result.add_incoming(far, far_block)
        return result

    def load_rows(self, instruction: Instruction) -> ir.Value:
        """The elements that each lane loads at once: a vector of the first ones, one of the second ones and so on."""
        assert self.mask is None
        self.form = remarks.ROWS
        kinds = instruction.type.elements
        places = self.vector(instruction.operands[0])
        result = self.lanes.undefined(self.lanes.type_of(instruction.type))
        for number, part in enumerate(load_rows(self.lanes, kinds[0], len(kinds), places, instruction.align or 1)):
            result = self.builder.insert_value(result, part, number)
        return result

    def is_apart(self, access: Instruction) -> bool:
        """Whether *access* loads or stores numbers at places that lanes have apart, and does nothing else."""
        if not super().is_apart(access):
            return False
        finders = self._clamped_address, self._small_table, self._divided_address
        return access.opcode != "load" or all(find(access) is None for find in finders)

    def _load_member(self, load: Instruction, stride: int, align: int) -> ir.Value:
        """A load of elements that are *stride* of them apart, with what other loads of the block access in between."""
        nbytes = size_in_memory(load.type)
        if self._groups is None:
            self._groups = StridedGroups(self.block, self.shapes.size_of)
        group = self._groups.find(load, nbytes, stride)
        first = self.lanes.step(self.scalar(group.leader.operands[0]), -group.ahead * nbytes)
        align = min(self._align_of_base(align, stride * nbytes), nbytes & -nbytes)
        return load_strided(self.lanes, load.type, first, stride, self.mask, align, group.members, group.member)

    def _load_strided(self, kind: ir.Type, base: ir.Value, stride: int, align: int) -> ir.Value:
        """A load of elements that are *stride* of them apart: 1 if they are neighbours, -1 in the opposite order."""
        align = self._align_of_base(align, stride * size_in_memory(kind))
        if stride == 1:
            return self._load_neighbours(kind, base, align)
        if stride == REVERSED:
            return load_reversed(self.lanes, kind, base, self.mask, align)
        return load_strided(self.lanes, kind, base, stride, self.mask, align)

    def write_store(self, instruction: Instruction) -> None:
        """Write a store."""
        value, pointer = instruction.operands
        align = instruction.align or 1
        shape = self.shapes.of(pointer, self.block)
        if shape == 0 and self.shapes.of(value, self.block) == 0:
            self.form = remarks.UNIFORM
            write_instruction(self.builder, instruction, [self.scalar(value), self.scalar(pointer)])
        elif value.type == I1 or isinstance(value.type, ir.LiteralStructType | ir.ArrayType):
            self.scalarize(instruction)
        elif (lane := self.accessing_lane(value.type, pointer)) is not None:
            self.form = remarks.ONE_LANE
            self.store_alone(instruction, lane)
        elif self.is_contiguous(value.type, pointer):
            self.form = remarks.CONTIGUOUS
            self.store_contiguous(self.vector(value), pointer, align)
        elif stride := self.element_stride(value.type, pointer):
            self.form, self.stride = _form_of(stride)
            if not self._store_in_row(instruction):
                self._store_strided(self.vector(value), self.scalar(pointer), stride, align)
        elif is_appended(self, pointer, value.type):
            self.form = remarks.SPECULATED
            write_appended(self, self.vector(value), pointer, align)
        else:
            self._store_scattered(instruction, align)

    def load_contiguous(self, kind: ir.Type, pointer: Value, align: int) -> ir.Value:
        """A load of *kind* from neighbours."""
        align = self._align_of_base(align, size_in_memory(kind))
        if is_private_address(pointer):
            return self.lanes.load(kind, self.scalar(pointer), None, align)
        return self._load_neighbours(kind, self.scalar(pointer), align)

    def _load_neighbours(self, kind: ir.Type, base: ir.Value, align: int) -> ir.Value:
        if self.mask is not None and (self.block in self._data_masked or not masks_neighbours(size_in_memory(kind))):
            return load_in_page(self.lanes, kind, base, self.mask, align)
        return self.lanes.load(kind, base, self.mask, align)

    def store_contiguous(self, values: ir.Value, pointer: Value, align: int) -> None:
        """Store to neighbours. In a private array the elements of inactive lanes are written, too, but not changed:
        without a mask, LLVM can keep it in registers."""
        place = self.scalar(pointer)
        align = self._align_of_base(align, size_in_memory(values.type.element))
        if not is_private_address(pointer):
            self._store_neighbours(values, place, align)
            return
        if self.mask is not None:
            values = self.lanes.blend(self.mask, values, self.lanes.load(values.type.element, place, None, align))
        self.lanes.store(values, place, None, align)

    def _store_neighbours(self, values: ir.Value, base: ir.Value, align: int) -> None:
        kind = values.type.element
        if self._is_branched_for(kind):
            self.lanes.scatter(values, self.lanes.spread(base, size_in_memory(kind)), self.mask, align)
        else:
            self.lanes.store(values, base, self.mask, align)

    def _is_branched_for(self, kind: ir.Type) -> bool:
        """Whether LLVM would access neighbours of *kind* behind a branch for each lane, which is often mispredicted."""
        if self.mask is None or has_mask_registers() or self.lanes.has_steady_masks:
            return False
        return not masks_neighbours(size_in_memory(kind))

    @cached_property
    def _data_masked(self) -> frozenset[Block]:
        return find_data_masked(self.shapes)

    def _store_scattered(self, instruction: Instruction, align: int) -> None:
        """Store to addresses that need not be contiguous."""
        value, pointer = instruction.operands
        if not (stride := self.speculated_stride(value.type, pointer)):
            self.form = remarks.GATHERED
            self.store_apart(instruction)
            return
        self.form, self.stride = (remarks.SPECULATED, 0) if stride == 1 else _form_of(stride)
        if stride > 1 and self._store_in_row(instruction):
            return
        values, pointers = self.vector(value), self.vector(pointer)
        base, holds = self._speculated.base(pointer)
        with self.builder.if_else(holds) as (speculated, otherwise):
            with speculated:
                self._store_strided(values, base, stride, align)
            with otherwise:
                self.lanes.scatter(values, pointers, self.mask, align)

    def _store_in_row(self, store: Instruction) -> bool:
        """Store elements in steps together with those of the block that store all in between, or leave *store* to the
        last one of these; ``False`` if there are none."""
        if self.mask is not None or self.lockstep:
            return False
        if self._rows is None:
            self._rows = find_filled_rows(self)
        row = self._rows.get(store)
        if row is not None and store is row.latest:
            store_row(self, row)
        return row is not None

    def step_of(self, store: Instruction) -> int:
        """How many elements lanes of *store* are apart, certainly or unless an index is negative."""
        value, pointer = store.operands
        return self.element_stride(value.type, pointer) or self.speculated_stride(value.type, pointer)

    def base_of(self, pointer: Value) -> tuple[ir.Value, ir.Value]:
        """The first lane's address of an access in steps, and whether lanes are in steps."""
        return self._speculated.base(pointer)

    def _store_strided(self, values: ir.Value, base: ir.Value, stride: int, align: int) -> None:
        """The reverse of `_load_strided`."""
        align = self._align_of_base(align, stride * size_in_memory(values.type.element))
        if stride == 1:
            self._store_neighbours(values, base, align)
        elif stride == REVERSED:
            store_reversed(self.lanes, values, base, self.mask, align)
        else:
            store_strided(self.lanes, values, base, stride, self.mask, align)

    def scalarize(self, instruction: Instruction) -> ir.Value | None:
        """Write *instruction* for one active lane after another; returns the results, if it has any."""
        self.form = remarks.SCALARIZED
        if (tables := self.item.memory.tables) is not None and tables.serves(self, instruction):
            self.form = remarks.TABLED
            self._update_tables(instruction, tables)
            return None
        return Scalarizer(self, instruction).write()

    def _update_tables(self, update: Instruction, tables: KeepsTables) -> None:
        """Write *update*, which has a table among *tables*, or leave it to another one that follows."""
        if self._updates is None or update not in self._updates.updates:
            together: tuple[Instruction, ...] = (update,)
            if not self.lockstep:
                together = find_joint_updates(self.block, update, lambda value: tables.serves(self, value))
            self._updates = TabledUpdates(self, together, tables)
        self._updates.take(update)

    @property
    def pending(self) -> TabledUpdates | None:
        """Updates of this block that were left to another one."""
        return self._updates if self._updates is not None and self._updates.is_pending else None


def _form_of(stride: int) -> tuple[str, int]:
    """The form of an access to elements that are *stride* apart, and that number if they are in steps; for remarks."""
    if stride > 1:
        return remarks.STRIDED, stride
    return remarks.REVERSED if stride == REVERSED else remarks.CONTIGUOUS, 0
