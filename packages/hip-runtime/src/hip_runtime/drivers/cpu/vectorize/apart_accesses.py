"""Which loads and stores are of places that lanes have apart from each other, and those of neighbours at once."""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.cost_model import MAX_STRIDE
from hip_runtime.drivers.cpu.analyses.neighbours import Neighbours, accessed_type, find_neighbours
from hip_runtime.drivers.cpu.analyses.private_arrays import is_private_address
from hip_runtime.drivers.cpu.analyses.shape_rules import Shape
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value
from hip_runtime.drivers.cpu.object_code.host_machine import spreads_masks
from hip_runtime.drivers.cpu.vectorize.neighbours import (
    load_neighbours,
    most_neighbours,
    shifted,
    store_neighbours,
)
from hip_runtime.drivers.cpu.vectorize.single_lane import SingleLane
from hip_runtime.drivers.cpu.vectorize.vector_builder import size_in_memory


class ApartAccesses(SingleLane):
    """Values of a gang, what a single lane has of them, and accesses to places that lanes have apart."""

    _neighbours: dict[Instruction, Neighbours] | None
    """Those of accesses in this block, once they were looked for."""
    _loaded: dict[Instruction, ir.Value]
    """What was loaded in this block together with a neighbour."""

    def begin(self, block: Block, mask: ir.Value | None) -> None:
        """Start another block."""
        super().begin(block, mask)
        self._neighbours, self._loaded = None, {}

    def is_contiguous(self, kind: ir.Type, pointer: Value) -> bool:
        """Whether lanes access neighbouring elements of *kind* at *pointer*."""
        nbytes = size_in_memory(kind)
        return nbytes > 0 and self.shapes.of(pointer, self.block) == nbytes

    def element_stride(self, kind: ir.Type, pointer: Value) -> int:
        """The stride in elements, if contiguous vectors and a shuffle are better than a gather or scatter; else 0."""
        stride = self.count_elements(kind, self.shapes.of(pointer, self.block))
        return stride if stride > 1 else 0

    def speculated_stride(self, kind: ir.Type, pointer: Value) -> int:
        """The same if no index is negative, or 1 if the access is contiguous then."""
        return self.count_elements(kind, self._speculated.stride(pointer))

    def count_elements(self, kind: ir.Type, shape: Shape) -> int:
        """How many elements of *kind* the lanes of an address with *shape* are apart; 0 if too many, or no number."""
        nbytes = size_in_memory(kind)
        if not shape or not nbytes or shape % nbytes:
            return 0
        most = MAX_STRIDE if self.mask is None or spreads_masks() else 1
        return shape // nbytes if 1 <= shape // nbytes <= most else 0

    def load_apart(self, load: Instruction) -> ir.Value:
        """What *load*, whose lanes are apart, loads."""
        group = self._find_group(load)
        if group is None:
            return self.lanes.gather(load.type, self.vector(load.operands[0]), self.mask, load.align or 1)
        if load not in self._loaded:
            first, *_ = group.members
            places = shifted(self.lanes, self.vector(load.operands[0]), group.distance(self.shapes.size_of, load))
            whole = load_neighbours(
                self.lanes, load.type, len(group.members), places, self.mask, first.align or 1
            )  # fmt: skip
            self._loaded.update(zip(group.members, whole, strict=True))
        return self._loaded[load]

    def store_apart(self, store: Instruction) -> None:
        """Store what *store*, whose lanes are apart, stores; or leave it to a later one of a neighbour."""
        value, pointer = store.operands
        group = self._find_group(store)
        if group is None:
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
            self._neighbours = find_neighbours(self.block, self._is_apart, self._most_at_once, self.shapes.size_of)
        return self._neighbours.get(access)

    def _most_at_once(self, access: Instruction) -> int:
        is_load = access.opcode == "load"
        return most_neighbours(accessed_type(access), self.lanes.width, self.mask is not None, is_load)

    def _is_apart(self, access: Instruction) -> bool:
        """Whether *access* loads or stores numbers at places that lanes have apart, and does nothing else."""
        if access.opcode not in ("load", "store") or access.volatile or access.atomic or access.meets_tables:
            return False
        kind, pointer = accessed_type(access), access.operands[-1]
        if not _is_number(kind) or is_private_address(pointer) or self.accessing_lane(kind, pointer) is not None:
            return False
        if access.opcode == "store" and self._gives_places:
            return False
        shape = self.shapes.of(pointer, self.block)
        if shape == 0 or self.is_contiguous(kind, pointer) or self.element_stride(kind, pointer):
            return False
        return self.speculated_stride(kind, pointer) == 0

    @property
    def _gives_places(self) -> bool:
        """Whether an atomic operation of this block may give lanes places that are neighbours of each other."""
        return any(value.opcode == "atomicrmw" for value in self.block.instructions)


def _is_number(kind: ir.Type) -> bool:
    if isinstance(kind, ir.IntType):
        return kind.width in (8, 16, 32, 64)
    return isinstance(kind, ir.HalfType | ir.FloatType | ir.DoubleType)
