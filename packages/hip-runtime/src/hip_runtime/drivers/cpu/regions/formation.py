"""Region formation: cuts a graph at its sync points. A region is what a thread runs from one sync point to the next.

A region begins at the kernel's entry or after a sync point, and ends at the sync points that are reached next, or where
the thread returns. Threads run a region one after another, so what they need in later regions has to be saved for each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.abi.thread_states import SPINS, WAITS_FOR_BLOCK, WAITS_FOR_WAVE
from hip_runtime.drivers.cpu.analyses.cfg import (
    Order,
    immediate_postdominators,
    live_values,
    order_blocks,
    order_function,
)
from hip_runtime.drivers.cpu.analyses.segments import Segments
from hip_runtime.drivers.cpu.analyses.uniformity import Uniformity
from hip_runtime.drivers.cpu.ir.model import Block, Function, Instruction
from hip_runtime.drivers.cpu.llvmir import VOID
from hip_runtime.drivers.cpu.regions import reconvergence_keys


@dataclass(eq=False)
class SyncPoint:
    """A call of a synchronising operation, at which threads wait.

    Wave operations and yields are numbered first, in block order, then block-wide operations.
    """

    number: int
    call: Instruction
    waiting: Block
    resume: Block

    @property
    def operation(self) -> str:
        """The name of the operation."""
        return self.call.callee

    @property
    def end(self) -> Instruction:
        """The terminator of the block that waits here."""
        return self.waiting.terminator

    @property
    def is_block_wide(self) -> bool:
        """Whether all threads of the block have to reach it together."""
        return _is_block_wide(self.operation)

    @property
    def yields(self) -> bool:
        """Whether it is a yield, at which a thread only lets the others run."""
        return self.operation == intrinsics.YIELD

    @property
    def kind(self) -> int:
        """The kind of the sync point, see `thread_states`."""
        return SPINS if self.yields else WAITS_FOR_BLOCK if self.is_block_wide else WAITS_FOR_WAVE


@dataclass(eq=False)
class Region:
    """What threads run from *start*: the sync point that they waited at, or ``None`` for the kernel's entry."""

    start: SyncPoint | None
    entry: Block
    blocks: list[Block]
    exits: list[SyncPoint]
    returns: bool
    diverges: bool
    """Whether threads can leave it at different sync points."""
    masked: bool = False
    """Whether some threads may have returned before it."""
    live: frozenset[Instruction] = frozenset()
    """The values that are live in."""
    ordered: bool = False
    """Whether a thread, or a gang, relies on those before it having run it: see `needless_barriers`."""

    @property
    def live_in_order(self) -> list[Instruction]:
        """The values that are live in, in an order that is the same in each process: that of their names."""
        return sorted(self.live, key=lambda value: value.name)

    @property
    def is_spin_scheduled(self) -> bool:
        """Whether it begins or may end at a yield."""
        return _touches_yield(self.start, self.exits)


@dataclass(frozen=True)
class InterleavedArray:
    """The memory of a private array of all threads, the same element of each next to one another: *count* places of
    type *kind*."""

    kind: ir.Type
    count: int


@dataclass(eq=False)
class RegionGraph:
    """A kernel that was cut into regions."""

    function: Function
    order: Order
    uniformity: Uniformity
    homes: dict[Instruction, Block]
    crossing: frozenset[Instruction]
    """Values that are used outside of the block that defines them."""
    points: list[SyncPoint]
    regions: list[Region]
    interleaved: Mapping[Instruction, InterleavedArray] = field(default_factory=dict)
    """The private arrays whose elements are interleaved by thread, see `private_layout`."""
    joined: frozenset[Block] = frozenset()
    """The blocks that follow barriers which were dropped."""

    @property
    def wave_scheduled(self) -> bool:
        """Whether waves have to run one at a time, as their lanes can wait at different wave operations."""
        return any(
            region.diverges and (len(region.exits) > 1 or region.is_spin_scheduled or self._in_free_running_loop(point))
            for region in self.regions
            for point in region.exits
            if not (point.is_block_wide or point.yields)
        )

    @property
    def yields(self) -> list[SyncPoint]:
        """The sync points that are yields."""
        return [point for point in self.points if point.yields]

    def _in_free_running_loop(self, point: SyncPoint) -> bool:
        return any(loop in self.uniformity.free_running for loop in self.order.loops[point.waiting])


def cut_at_sync_points(function: Function, at: frozenset[str] = spmd.SYNCHRONISING) -> RegionGraph:
    """Cut *function*, which is modified so that a block ends at each call of an operation of *at*."""
    calls = _cut_blocks(function, at)
    graph = _analyse(function, calls)
    if graph.wave_scheduled and reconvergence_keys.insert_reconvergence_keys(
        graph.order, graph.uniformity.divergent_branches
    ):
        graph = _analyse(function, calls)
    return graph


def analyse_again(graph: RegionGraph) -> RegionGraph:
    """The regions of *graph* after blocks were inserted into its function."""
    return _analyse(graph.function, {point.call: point.resume for point in graph.points}, graph.joined)


def drop_points(graph: RegionGraph, points: Collection[SyncPoint]) -> RegionGraph:
    """The regions of *graph* without *points*, at which nobody has to wait if threads, or gangs, run in order. Its
    function is modified."""
    for point in points:
        point.waiting.instructions[-1] = Instruction(VOID, "br", [], targets=[point.resume])
    kept = {point.call: point.resume for point in graph.points if point not in points}
    return _analyse(graph.function, kept, graph.joined | {point.resume for point in points})


def insert_points(graph: RegionGraph, calls: Mapping[Block, Instruction]) -> RegionGraph:
    """The regions of *graph* with a sync point at the start of each block of *calls*. Its function is modified."""
    resumes = {point.call: point.resume for point in graph.points}
    for block, call in calls.items():
        place = sum(1 for _ in block.phis)
        resume = resumes[call] = Block(f"{block.name}.cut", block.instructions[place:])
        block.instructions[place:] = [Instruction(VOID, "synchronise", [call], targets=[resume])]
        for successor in resume.successors:
            for phi in successor.phis:
                phi.targets = [resume if source is block else source for source in phi.targets]
        graph.function.blocks.insert(graph.function.blocks.index(block) + 1, resume)
    return _analyse(graph.function, resumes, graph.joined)


def _analyse(
    function: Function, calls: dict[Instruction, Block], joined: frozenset[Block] = frozenset()
) -> RegionGraph:  # fmt: skip
    order = order_function(function)
    homes = {instruction: block for block in order.blocks for instruction in block.instructions}
    for call, resume in calls.items():
        homes[call] = resume
    points = _number_points(order, calls)
    crossing, live = _liveness(order, homes)
    uniformity = Uniformity(order, homes, Segments(order.blocks).is_settled)
    regions = _form_regions(order, points, uniformity, live)
    _mark_masked(regions)
    for region in regions:
        region.ordered = not joined.isdisjoint(region.blocks)
    return RegionGraph(function, order, uniformity, homes, crossing, points, regions, joined=joined)


def _cut_blocks(function: Function, at: frozenset[str]) -> dict[Instruction, Block]:
    """End blocks at operations of *at*; maps each call to the block that follows it."""
    calls: dict[Instruction, Block] = {}
    blocks: list[Block] = []
    moved: dict[Block, Block] = {}
    for original in function.blocks:
        block, rest = original, original.instructions
        block.instructions = []
        for instruction in rest:
            if instruction.opcode == "call" and instruction.callee in at:
                blocks.append(block)
                resume = Block(f"{original.name}.{len(calls)}")
                calls[instruction] = resume
                end = Instruction(ir.VoidType(), "synchronise", [instruction], targets=[resume])
                block.instructions.append(end)
                block = resume
            else:
                block.instructions.append(instruction)
        blocks.append(block)
        moved[original] = block
    function.blocks[:] = blocks
    for block in blocks:
        for phi in block.phis:
            phi.targets = [moved[source] for source in phi.targets]
    return calls


def _number_points(order: Order, calls: dict[Instruction, Block]) -> list[SyncPoint]:
    waiting = [block for block in order.blocks if _waits(block)]
    waiting.sort(key=lambda block: _is_block_wide(block.synchronising.callee))
    return [
        SyncPoint(number, block.synchronising, block, calls[block.synchronising])
        for number, block in enumerate(waiting)
    ]


def block_uses(block: Block) -> Iterable[Instruction]:
    """The values that *block* uses, including the incoming values of its successors' phis."""
    for instruction in block.instructions:
        if instruction.opcode == "phi":
            continue
        operands = instruction.operands
        if instruction.opcode == "synchronise":
            operands = [*block.synchronising.operands, *operands[1:]]
        for operand in operands:
            if isinstance(operand, Instruction):
                yield operand
    for successor in block.successors:
        for phi in successor.phis:
            for operand, source in zip(phi.operands, phi.targets, strict=True):
                if source is block and isinstance(operand, Instruction):
                    yield operand


def _liveness(
    order: Order, homes: dict[Instruction, Block]
) -> tuple[frozenset[Instruction], dict[Block, frozenset[Instruction]]]:
    uses: dict[Block, list[Instruction]] = {}
    definitions: dict[Block, list[Instruction]] = {block: [] for block in order.blocks}
    for block in order.blocks:
        # The address of an alloca is available everywhere; its contents are not values of this graph.
        uses[block] = [value for value in block_uses(block) if homes[value] is not block and value.opcode != "alloca"]
    for value, home in homes.items():
        if home in definitions:
            definitions[home].append(value)
    crossing = frozenset(value for used in uses.values() for value in used)
    return crossing, live_values(order.blocks, lambda block: block.successors, uses, definitions)


def region_successors(block: Block) -> list[Block]:
    """The successors of *block* in the same region."""
    return [] if block.terminator.opcode == "synchronise" else block.successors


def _form_regions(
    order: Order, points: list[SyncPoint], uniformity: Uniformity, live: dict[Block, frozenset[Instruction]]
) -> list[Region]:
    by_call = {point.call: point for point in points}
    starts: list[SyncPoint | None] = [None, *points]
    regions = []
    for start in starts:
        entry = order.blocks[0] if start is None else start.resume
        blocks = order_blocks(entry, region_successors).blocks
        exits = {block: by_call[block.synchronising] for block in blocks if _waits(block)}
        returns = any(block.terminator.opcode == "ret" for block in blocks)
        kept = live[entry] - {start.call} if start is not None else frozenset()
        reached = sorted(set(exits.values()), key=lambda point: point.number)
        diverges = _touches_yield(start, reached) or _can_diverge(blocks, exits, uniformity)
        regions.append(Region(start, entry, blocks, reached, returns, diverges, live=kept))
    return regions


def _is_block_wide(operation: str) -> bool:
    return operation not in spmd.WAVE_WIDE and operation != intrinsics.YIELD


def _waits(block: Block) -> bool:
    return block.terminator.opcode == "synchronise"


def _touches_yield(start: SyncPoint | None, exits: list[SyncPoint]) -> bool:
    """Whether threads start a region, or continue after it, one by one."""
    return (start is not None and start.yields) or any(point.yields for point in exits)


def _can_diverge(blocks: list[Block], exits: dict[Block, SyncPoint], uniformity: Uniformity) -> bool:
    """Whether a divergent branch decides at which sync point a thread leaves the region."""
    branches = [block for block in blocks if block in uniformity.divergent_branches]
    if not branches:
        return False
    reconvergence = immediate_postdominators(blocks, region_successors)
    ends: dict[Block, set[SyncPoint | None]] = {block: set() for block in blocks}
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            size = len(ends[block])
            if block in exits:
                ends[block].add(exits[block])
            elif block.terminator.opcode == "ret":
                ends[block].add(None)
            for target in region_successors(block):
                ends[block] |= ends[target]
            changed |= len(ends[block]) != size
    return any(reconvergence[branch] is None and len(ends[branch]) > 1 for branch in branches)


def _mark_masked(regions: list[Region]) -> None:
    """Mark the regions that some threads may not run because they have returned."""
    by_start = {region.start: region for region in regions}
    changed = True
    while changed:
        changed = False
        for region in regions:
            if region.masked or (region.diverges and region.returns):
                for point in region.exits:
                    changed |= not by_start[point].masked
                    by_start[point].masked = True
