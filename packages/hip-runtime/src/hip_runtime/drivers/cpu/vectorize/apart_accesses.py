"""Which loads and stores are of places that lanes have apart from each other, and those of neighbours at once."""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.address_terms import take_apart
from hip_runtime.drivers.cpu.analyses.effects import has_effect
from hip_runtime.drivers.cpu.analyses.indirect_addresses import find_indirect_address
from hip_runtime.drivers.cpu.analyses.neighbours import (
    Neighbours,
    addresses_behind,
    find_neighbours,
    guess_index,
)
from hip_runtime.drivers.cpu.analyses.private_arrays import is_private_address
from hip_runtime.drivers.cpu.analyses.shape_rules import MAX_STRIDE, VARYING, Shape
from hip_runtime.drivers.cpu.analyses.type_sizes import number_bytes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I64
from hip_runtime.drivers.cpu.object_code.host_machine import spreads_masks
from hip_runtime.drivers.cpu.vectorize.indirect_loads import load_indirectly
from hip_runtime.drivers.cpu.vectorize.linear_accesses import load_linear, store_linear
from hip_runtime.drivers.cpu.vectorize.neighbours import (
    load_neighbours,
    most_neighbours,
    shifted,
    store_neighbours,
)
from hip_runtime.drivers.cpu.vectorize.single_lane import SingleLane
from hip_runtime.drivers.cpu.vectorize.strided_accesses import REVERSED
from hip_runtime.drivers.cpu.vectorize.vector_builder import size_in_memory


class ApartAccesses(SingleLane):
    """Values of a gang, what a single lane has of them, and accesses to places that lanes have apart."""

    _neighbours: dict[Instruction, Neighbours] | None
    """Those of accesses in this block, once they were looked for."""
    _loaded: dict[Instruction, ir.Value]
    """What was loaded in this block together with a neighbour."""
    written_ahead: set[Instruction]
    """What was written in this block before its turn."""
    _gives_places: bool
    """Whether an atomic operation of this block may give lanes places that are neighbours of each other."""

    def begin(self, block: Block, mask: ir.Value | None) -> None:
        """Start another block."""
        super().begin(block, mask)
        self._neighbours, self._loaded, self.written_ahead = None, {}, set()
        self._gives_places = any(value.opcode == "atomicrmw" for value in block.instructions)

    def write(self, instruction: Instruction) -> None:
        """Write *instruction*, and remember its value."""
        raise NotImplementedError

    def is_contiguous(self, kind: ir.Type, pointer: Value) -> bool:
        """Whether lanes access neighbouring elements of *kind* at *pointer*."""
        nbytes = size_in_memory(kind)
        return nbytes > 0 and self.shapes.of(pointer, self.block) == nbytes

    def element_stride(self, kind: ir.Type, pointer: Value) -> int:
        """The stride in elements, if contiguous vectors and a shuffle are better than a gather or scatter; else 0."""
        stride = self.count_elements(kind, self.shapes.of(pointer, self.block))
        return 0 if stride == 1 else stride

    def speculated_stride(self, kind: ir.Type, pointer: Value) -> int:
        """The same if no index is negative, or 1 if the access is contiguous then."""
        return self.count_elements(kind, self._speculated.stride(pointer))

    def count_elements(self, kind: ir.Type, shape: Shape) -> int:
        """How many elements of *kind* the lanes of an address with *shape* are apart; 0 if too many, or no number.
        Fewer than none are one, in the opposite order."""
        nbytes = size_in_memory(kind)
        if not shape or not nbytes or shape % nbytes:
            return 0
        if shape == REVERSED * nbytes:
            return REVERSED
        most = MAX_STRIDE if self.mask is None or spreads_masks() else 1
        return shape // nbytes if 1 <= shape // nbytes <= most else 0

    def load_apart(self, load: Instruction) -> ir.Value:
        """What *load*, whose lanes are apart, loads."""
        group = self._find_group(load)
        if group is None:
            return self._gather(load)
        if load not in self._loaded:
            whole = self._load_guessed(group) if group.is_guessed else self._load_group(group, load)
            self._loaded.update(zip(group.members, whole, strict=True))
        return self._loaded[load]

    def _gather(self, load: Instruction) -> ir.Value:
        """The same without neighbours."""
        if self.mask is None and not self.lockstep and number_bytes(load.type) and not has_effect(load):
            address = find_indirect_address(load, self.block, self.shapes)
            if address is not None:
                return load_indirectly(self, load, address)
        if self.is_line(load.operands[0]):
            return load_linear(self, load)
        return self.lanes.gather(load.type, self.vector(load.operands[0]), self.mask, load.align or 1)

    def _load_group(self, group: Neighbours, load: Instruction) -> list[ir.Value]:
        """What the members of *group*, one of which is *load*, load."""
        places = shifted(self.lanes, self.vector(load.operands[0]), group.distance(self.shapes.size_of, load))
        align = group.members[0].align or 1
        return load_neighbours(self.lanes, load.type, len(group.members), places, self.mask, align)

    def _load_guessed(self, group: Neighbours) -> list[ir.Value]:
        """The same if they are neighbours in all active lanes, else what each member gathers."""
        for value in addresses_behind(self.block, group):
            self.write(value)
            self.written_ahead.add(value)
        first, *others = group.members
        holds = self._are_neighbours(first, others)
        places = [self.vector(member.operands[0]) for member in group.members]  # which both ways take
        with self.builder.if_else(holds) as (guessed, otherwise):
            with guessed:
                near = self._load_group(group, first)
                near_block = self.builder.block
            with otherwise:
                far = [
                    self.lanes.gather(member.type, place, self.mask, member.align or 1)
                    for member, place in zip(group.members, places, strict=True)
                ]
                far_block = self.builder.block
        found = []
        for both in zip(near, far, strict=True):
            phi = self.builder.phi(both[0].type)
            phi.add_incoming(both[0], near_block)
            phi.add_incoming(both[1], far_block)
            found.append(phi)
        return found

    def _are_neighbours(self, first: Instruction, others: list[Instruction]) -> ir.Value:
        """Whether what *others* load follows what *first* loads, in all active lanes."""
        builder, lanes = self.builder, self.lanes
        number = self._find_number(first.operands[0])
        apart = lanes.no_lanes()
        for place, other in enumerate(others, 1):
            expected = builder.add(number, lanes.splat(I64(place * self.shapes.size_of(first.type))))
            differs = builder.icmp_unsigned("!=", self._find_number(other.operands[0]), expected)
            apart = builder.or_(apart, differs)
        if self.mask is not None:
            apart = builder.select(self.mask, apart, lanes.no_lanes())
        return builder.not_(lanes.any(lanes.freeze(apart)))

    def _find_number(self, pointer: Value) -> ir.Value:
        """The address *pointer* of each lane, which `_has_number`, as a number.

        Not by converting the vector of addresses: LLVM compares two of these by what each is beyond an address that
        both are computed from. If that is two steps away, and the first step, which is the same for all lanes, is used
        elsewhere, it replaces the scalar there by a vector, and aborts (LLVM 22, ``EmitGEPOffsets`` of
        ``InstCombine``)."""
        builder, lanes = self.builder, self.lanes
        shape = self.shapes.of(pointer, self.block)
        if shape is not VARYING:
            return lanes.spread(builder.ptrtoint(self.scalar(pointer), I64), shape)
        assert isinstance(pointer, Instruction)
        base, *indices = pointer.operands
        known = self._constant_step(pointer)
        if known is not None:
            return builder.add(self._find_number(base), lanes.splat(I64(known)))
        size = lanes.splat(I64(self.shapes.size_of(pointer.source_type)))
        return builder.add(self._find_number(base), builder.mul(self.vector(indices[0]), size))

    def _has_number(self, pointer: Value) -> bool:
        """Whether *pointer* is computed in this block from an address that lanes have in common, or in steps, by adding
        to it."""
        if self.shapes.of(pointer, self.block) is not VARYING:
            return True
        if not isinstance(pointer, Instruction) or pointer.opcode != "getelementptr":
            return False
        if self.shapes.homes[pointer] is not self.block or not self._has_number(pointer.operands[0]):
            return False
        is_step = len(pointer.operands) == 2 and pointer.operands[1].type == I64
        return is_step or self._constant_step(pointer) is not None

    def _constant_step(self, pointer: Instruction) -> int | None:
        """How many bytes *pointer* is behind what it is computed from, if that is a constant."""
        size_of = self.shapes.size_of
        return take_apart(pointer, size_of).minus(take_apart(pointer.operands[0], size_of)).number

    def store_apart(self, store: Instruction) -> None:
        """Store what *store*, whose lanes are apart, stores; or leave it to a later one of a neighbour."""
        value, pointer = store.operands
        group = self._find_group(store)
        if group is None and self.is_line(pointer):
            store_linear(self, store)
        elif group is None:
            self.lanes.scatter(self.vector(value), self.vector(pointer), self.mask, store.align or 1)
        elif store is group.latest:
            first, *_ = group.members
            places = shifted(self.lanes, self.vector(pointer), group.distance(self.shapes.size_of, store))
            values = [self.vector(member.operands[0]) for member in group.members]
            store_neighbours(self.lanes, values, places, self.mask, first.align or 1)

    def _find_group(self, access: Instruction) -> Neighbours | None:
        """The neighbours that are accessed together with *access*."""
        if self.lockstep:
            return None
        if self._neighbours is None:
            self._neighbours = find_neighbours(
                self.block, self.is_apart, self._most_at_once, self.shapes.size_of, self._guess
            )
        found = self._neighbours.get(access)
        return None if found is not None and found.is_guessed and not self._can_compare(found) else found

    def _can_compare(self, group: Neighbours) -> bool:
        """Whether it can be asked where the members of *group* are."""
        return all(self._has_number(member.operands[0]) for member in group.members)

    def _guess(self, value: Instruction) -> Value | None:
        return guess_index(value, lambda operand: self.shapes.of(operand, self.block) is VARYING)

    def _most_at_once(self, access: Instruction) -> int:
        is_load = access.opcode == "load"
        return most_neighbours(access.accessed, self.lanes.width, self.mask is not None, is_load)

    def is_apart(self, access: Instruction) -> bool:
        """Whether *access* loads or stores numbers at places that lanes have apart, and does nothing else."""
        if access.opcode not in ("load", "store") or access.volatile or access.atomic or access.meets_tables:
            return False
        kind, pointer = access.accessed, access.operands[-1]
        if not number_bytes(kind) or is_private_address(pointer) or self.accessing_lane(kind, pointer) is not None:
            return False
        shape = self.shapes.of(pointer, self.block)
        if shape == 0 or self.is_contiguous(kind, pointer) or self.element_stride(kind, pointer):
            return False
        if self.speculated_stride(kind, pointer):
            return False
        return access.opcode == "load" or not self._gives_places
