"""Gangs that stop before each iteration of a loop, so that all gangs of some blocks make it before any makes the next.

In a grid-stride loop a gang reads a few cache lines and goes on to another page, and so do all gangs after it: memory
is neither read in a row nor fetched ahead. With the loop over gangs inside of the grid-stride loop, it is: what a gang
goes on with stays in its record meanwhile. See `turns` for the loops.

Gangs of a kernel with barriers *pause* behind the loop, too: what follows uses memory that only one block has at a
time, so the gangs of a block go on from there together, once those of all blocks are behind their loops. Meanwhile a
gang runs nothing else: one that leaves what leads to the loop on another way begins anew when its block's turn comes.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.block_memory import is_kernel_memory
from hip_runtime.drivers.cpu.analyses.cfg import live_values
from hip_runtime.drivers.cpu.analyses.effects import has_effect
from hip_runtime.drivers.cpu.analyses.grid_stride_loops import is_grid_stride_loop, iterations_of_turn
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import AGREE, Block, Instruction
from hip_runtime.drivers.cpu.llvmir import I1, I8, I64, PTR, allocate

_ALIGN = 64
"""Of records, and the most of a field."""


IN_LOOP = 1
BEHIND_LOOP = 2
"""The first byte of the record of a gang that stopped, in the loop or behind it; zero for others."""


NOT_SUSPENDED = PTR(None), I1(0), I1(0)
"""What follows the other arguments of a gang function that may suspend, where none of its gangs is suspended."""


class Stop:
    """A place where gangs stop: *block* runs next. The values that are live there are fields of a gang's record, behind
    a byte that says at which place it is."""

    def __init__(self, place: int, block: Block, shapes: VectorShapes, size_of: SizeOf) -> None:
        self._place = place
        self.block = block
        self._size_of = size_of
        self._live = _find_live(block, shapes)
        self._fields: list[tuple[ir.Value, ir.Type, int]] = []
        self.nbytes = 1
        """Size of a record, once the function was written."""

    def is_live(self, value: Instruction) -> bool:
        """Whether *value* has to be kept while the gang is here."""
        return value in self._live

    def keep(self, slot: ir.Value, kind: ir.Type) -> None:
        """Keep what *slot*, of type *kind*, holds."""
        nbytes = self._bytes(kind)
        align = min(1 << max(nbytes - 1, 0).bit_length(), _ALIGN)
        offset = -(-self.nbytes // align) * align
        self.nbytes = offset + nbytes
        self._fields.append((slot, kind, offset))

    def save(self, builder: ir.IRBuilder, record: ir.Value) -> None:
        """Stop here: save what is kept, once all of the function was written."""
        builder.store(I8(self._place), record)
        for slot, kind, offset in self._fields:
            builder.store(builder.load(slot, typ=kind), _field(builder, record, offset), align=1)

    def restore(self, builder: ir.IRBuilder, record: ir.Value) -> None:
        """Restore what was kept."""
        for slot, kind, offset in self._fields:
            builder.store(builder.load(_field(builder, record, offset), typ=kind, align=1), slot)

    def _bytes(self, kind: ir.Type) -> int:
        if isinstance(kind, ir.LiteralStructType):
            return sum(-(-self._bytes(element) // _ALIGN) * _ALIGN for element in kind.elements)
        if isinstance(kind, ir.VectorType):
            return self._size_of(kind.element) * int(kind.count)
        return self._size_of(kind)


class Suspension:
    """The suspension of gangs between *latch* and *header*, the end and the beginning of a coherent loop; *shapes* are
    those of the function. If gangs pause, *behind* is the block behind the loop, and *before* are those that lead to
    it."""

    def __init__(
        self, header: Block, latch: Block, iterations: int, shapes: VectorShapes, size_of: SizeOf,
        behind: Block | None = None, before: frozenset[Block] = frozenset(),
    ) -> None:  # fmt: skip
        self.latch = latch
        self.iterations = iterations
        """How many a gang makes in its turn."""
        self.in_loop = Stop(IN_LOOP, header, shapes, size_of)
        self.behind_loop = None if behind is None else Stop(BEHIND_LOOP, behind, shapes, size_of)
        self._before = before
        self.record: ir.Value
        """The address of the record, for the function that is being written."""
        self.resumes: ir.Value
        """Whether the gang was suspended, for that function."""
        self.pauses: ir.Value
        """Whether the gang pauses behind the loop, for that function. One that does not and was suspended goes on
        there."""

    @property
    def stops(self) -> list[Stop]:
        """Where gangs stop."""
        return [self.in_loop] if self.behind_loop is None else [self.in_loop, self.behind_loop]

    @property
    def nbytes(self) -> int:
        """Size of a record, once the function was written."""
        return -(-max(stop.nbytes for stop in self.stops) // _ALIGN) * _ALIGN

    def leaves(self, block: Block, target: Block) -> bool:
        """Whether the branch from *block* to *target* leaves what leads to the loop on another way."""
        return block in self._before and target is not self.in_loop.block and target not in self._before

    def place(self, entry: ir.IRBuilder, value: Instruction, kind: ir.Type, name: str) -> ir.Value:
        """Memory for something of *kind* that belongs to *value*, which *entry* allocates. It is kept where *value* is
        live."""
        slot = allocate(entry, kind, name)
        for stop in self.stops:
            if stop.is_live(value):
                stop.keep(slot, kind)
        return slot

    def place_incoming(self, entry: ir.IRBuilder, block: Block, kind: ir.Type, name: str) -> ir.Value:
        """Memory for what a phi of *block* is going to be. It is kept where that block runs next."""
        slot = allocate(entry, kind, name)
        for stop in self.stops:
            if stop.block is block:
                stop.keep(slot, kind)
        return slot


def _field(builder: ir.IRBuilder, record: ir.Value, offset: int) -> ir.Value:
    return builder.gep(record, [I64(offset)], inbounds=True, source_etype=I8)


def find_suspension(
    shapes: VectorShapes, size_of: SizeOf, width: int, kernel_arguments: int | None = None
) -> Suspension | None:
    """Where gangs of *width* lanes should be suspended: at the one coherent loop that walks through memory with the
    grid; ``None`` if there is none, or something depends on which gang runs when, or is kept on the stack.

    If they pause, *kernel_arguments* are how many of the arguments are those of the kernel: the others point to memory
    of the block."""
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
        if not is_grid_stride_loop(loops[0], shapes, size_of, width):
            continue
        iterations = iterations_of_turn(loops[0], shapes, size_of)
        if kernel_arguments is None:
            return Suspension(header, block, iterations, shapes, size_of)
        behind = next(target for target in end.targets if target is not header)
        before = _find_before(header, loops[0], shapes)
        if _may_pause(loops[0], before, behind, shapes, kernel_arguments):
            return Suspension(header, block, iterations, shapes, size_of, behind, before)
    return None


def _find_before(header: Block, loop: frozenset[Block], shapes: VectorShapes) -> frozenset[Block]:
    """The blocks outside of *loop* from which control may get to its *header*."""
    found: set[Block] = set()
    targets = {header}
    while targets:
        targets = {
            block
            for block in shapes.order.blocks
            if block not in loop and block not in found and not targets.isdisjoint(shapes.successors(block))
        }
        found |= targets
    return frozenset(found)


def _may_pause(
    loop: frozenset[Block], before: frozenset[Block], behind: Block, shapes: VectorShapes, kernel_arguments: int
) -> bool:
    """Whether gangs may pause behind *loop*: till then they use no memory of their block, and what leads to the loop,
    *before*, may run twice."""
    if behind in shapes.masked or behind in loop or not before.isdisjoint(shapes.masked):
        return False
    for block in loop | before:
        for value in block.instructions:
            if value.opcode in ("load", "store"):
                stores = value.opcode == "store"
                if (stores and block in before) or value.volatile or value.atomic is not None:
                    return False
                if not is_kernel_memory(value.address, kernel_arguments):
                    return False
            elif value.elementwise is None and has_effect(value):
                return False
    return True


def _first(loop: frozenset[Block], shapes: VectorShapes) -> int:
    return shapes.order.blocks.index(shapes.order.header_of(loop))


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
