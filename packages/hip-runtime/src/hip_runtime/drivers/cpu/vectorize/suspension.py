"""Gangs that stop before each iteration of a loop, so that all gangs of some blocks make it before any makes the next.

In a grid-stride loop a gang reads a few cache lines and goes on to another page, and so do all gangs after it: memory
is neither read in a row nor fetched ahead. With the loop over gangs inside of the grid-stride loop, it is: what a gang
goes on with stays in its record meanwhile. See `turns` for the loops.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.cfg import live_values
from hip_runtime.drivers.cpu.analyses.grid_stride_loops import is_grid_stride_loop
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import AGREE, Block, Instruction
from hip_runtime.drivers.cpu.llvmir import I8, I64, allocate

_ALIGN = 64
"""Of records, and the most of a field."""


ROUNDS = 4
"""Iterations that a gang makes in its turn. With four, a saxpy of 4M float32 takes 0.8 ms of CPU time and a dot product
0.7; with one these are 1.2 and 1.2, with eight 1.2 and 0.85."""


class Suspension:
    """The suspension of gangs between *latch* and *header*, the end and the beginning of a coherent loop; *shapes* are
    those of the function.

    A record begins with a byte that says whether the gang is suspended. What was computed before and is used from the
    header on is a field.
    """

    def __init__(self, header: Block, latch: Block, shapes: VectorShapes, size_of: SizeOf) -> None:
        self.header = header
        self.latch = latch
        self._size_of = size_of
        self._kept = _find_live(header, shapes)
        self._end = 1
        self._fields: list[tuple[ir.Value, ir.Type, int]] = []
        self.record: ir.Value
        """The address of the record, for the function that is being written."""
        self.resumes: ir.Value
        """Whether the gang was suspended, for that function."""

    @property
    def nbytes(self) -> int:
        """Size of a record, once the function was written."""
        return -(-self._end // _ALIGN) * _ALIGN

    def keeps(self, value: Instruction) -> bool:
        """Whether *value* has to be kept while the gang is suspended."""
        return value in self._kept

    def place(self, entry: ir.IRBuilder, kind: ir.Type, name: str) -> ir.Value:
        """Memory for a value of *kind* that is kept, which is what *entry* allocates while the gang runs."""
        place = allocate(entry, kind, name)
        nbytes = self._bytes(kind)
        align = min(1 << max(nbytes - 1, 0).bit_length(), _ALIGN)
        offset = -(-self._end // align) * align
        self._end = offset + nbytes
        self._fields.append((place, kind, offset))
        return place

    def save(self, builder: ir.IRBuilder) -> None:
        """Suspend the gang: save what is kept, once all of the function was written."""
        builder.store(I8(1), self.record)
        for place, kind, offset in self._fields:
            builder.store(builder.load(place, typ=kind), self._field(builder, offset), align=1)

    def restore(self, builder: ir.IRBuilder) -> None:
        """Restore what was kept."""
        for place, kind, offset in self._fields:
            builder.store(builder.load(self._field(builder, offset), typ=kind, align=1), place)

    def _field(self, builder: ir.IRBuilder, offset: int) -> ir.Value:
        return builder.gep(self.record, [I64(offset)], inbounds=True, source_etype=I8)

    def _bytes(self, kind: ir.Type) -> int:
        if isinstance(kind, ir.LiteralStructType):
            return sum(-(-self._bytes(element) // _ALIGN) * _ALIGN for element in kind.elements)
        if isinstance(kind, ir.VectorType):
            return self._size_of(kind.element) * int(kind.count)
        return self._size_of(kind)


def find_suspension(shapes: VectorShapes, size_of: SizeOf, width: int) -> Suspension | None:
    """Where gangs of *width* lanes should be suspended: at the one coherent loop that walks through memory with the
    grid; ``None`` if there is none, or something depends on which gang runs when, or is kept on the stack."""
    if any(value.opcode == "alloca" for value in shapes.homes):
        return None
    for block in shapes.order.blocks:
        loops = shapes.order.loops[block]
        end = block.terminator
        if len(loops) != 1 or block in shapes.masked or end.opcode != "br" or len(end.targets) != 2:
            continue
        condition, header = end.operands[0], shapes.order.blocks[_first(loops[0], shapes)]
        if not (isinstance(condition, Instruction) and condition.opcode == AGREE and header in end.targets):
            continue
        if is_grid_stride_loop(loops[0], shapes, size_of, width):
            return Suspension(header, block, shapes, size_of)
    return None


def _first(loop: frozenset[Block], shapes: VectorShapes) -> int:
    return min(number for number, block in enumerate(shapes.order.blocks) if block in loop)


def _find_live(header: Block, shapes: VectorShapes) -> frozenset[Instruction]:
    """The values that are defined before *header* and used from there on."""
    blocks = shapes.order.blocks
    definitions = {block: list(block.instructions) for block in blocks}
    uses: dict[Block, set[Instruction]] = {block: set() for block in blocks}
    for block in blocks:
        for user in block.instructions:
            for number, value in enumerate(user.operands):
                if isinstance(value, Instruction):
                    place = user.targets[number] if user.opcode == "phi" else block
                    if place in uses and shapes.homes.get(value) is not place:
                        uses[place].add(value)
    return live_values(blocks, shapes.successors, uses, definitions)[header]
