"""Loops of which a gang makes another iteration while any lane does, under the mask of these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.ir.model import Block
from hip_runtime.drivers.cpu.llvmir import allocate
from hip_runtime.drivers.cpu.vectorize.linearize import LinearizedRegion
from hip_runtime.drivers.cpu.vectorize.mask_places import MaskPlace
from hip_runtime.drivers.cpu.vectorize.widen import Widener


@dataclass(frozen=True)
class FewRemain:
    """Where up to *count* lanes remain in the loop at *header*: *start* runs these, whose bits are in *bits*, and goes
    to *rest* then. What they begin the next iteration with is in place."""

    header: Block
    count: int
    start: ir.Block
    bits: ir.Value
    rest: ir.Block


class MaskedLoops:
    """Writes the ends of the masked loops of one version. *blocks* are where each block begins, *masks* are those of
    its lanes. *left_late* are headers, with how many lanes that remain in each loop are few."""

    def __init__(
        self, widener: Widener, blocks: Mapping[Block, ir.Block], masks: Mapping[Block, MaskPlace],
        left_late: Mapping[Block, int],
    ) -> None:  # fmt: skip
        self._widener = widener
        self._builder = widener.builder
        self._shapes = widener.shapes
        self._lanes = widener.lanes
        self._blocks = blocks
        self._masks = masks
        self._left_late = left_late
        self._runs: dict[Block, tuple[ir.Block, ir.PhiInstr]] = {}
        self._position = {block: number for number, block in enumerate(self._shapes.order.blocks)}
        self.few_remain: list[FewRemain] = []
        """What is still to be written, once all loops were: what runs the lanes that remain in some."""

    def is_left(self, block: Block, target: Block) -> bool:
        """Whether lanes that go from *block* to *target* leave such a loop."""
        return any(target not in loop and loop <= self._shapes.masked for loop in self._shapes.order.loops[block])

    def is_only_latch(self, block: Block, target: Block) -> bool:
        """Whether the edge from *block* to *target* is the only back edge of such a loop. All lanes that are still in
        the loop take it together, and the values of the others are not used, so the phis need no blend."""
        order = self._shapes.order
        for loop in order.loops[target]:
            if block in loop and loop <= self._shapes.masked and target is order.header_of(loop):
                return sum(target in self._shapes.successors(member) for member in loop) == 1
        return False

    def leave_apart(self, header: Block) -> bool:
        """Whether lanes leave the loop at *header* in different iterations."""
        order = self._shapes.order
        loop = next(loop for loop in reversed(order.loops[header]) if order.header_of(loop) is header)
        leaving = (block for block in loop if not loop.issuperset(self._shapes.successors(block)))
        return any(block in self._shapes.divergent for block in leaving)

    def latches(self, region: LinearizedRegion) -> dict[Block, list[tuple[ir.Block, Block]]]:
        """The last block of each loop of *region*, with a block to test for another iteration, and the header;
        innermost loops first."""
        order = self._shapes.order
        loops = dict.fromkeys(
            loop for block in region.blocks for loop in order.loops[block] if loop <= self._shapes.masked
        )
        latches: dict[Block, list[tuple[ir.Block, Block]]] = {}
        for loop in sorted(loops, key=len):
            last = max(loop, key=self._position.__getitem__)
            latches.setdefault(last, []).append((self._builder.append_basic_block("iterate"), order.header_of(loop)))
        return latches

    def begin_running(self, header: Block, start: ir.Block, mask: ir.Value, source: ir.Block) -> ir.Value:
        """The mask of the lanes that run *header*, where it is known that some do: at *start*, where the builder is.
        From *source*, these are those of *mask*."""
        running = self._builder.phi(mask.type)
        running.add_incoming(mask, source)
        self._runs[header] = start, running
        return running

    def write_iteration(self, header: Block, rest: ir.Block) -> None:
        """Go back to *header* if any lane does, else to *rest*. That lanes run it need not be tested there again: what
        it computes would be live in the loop for the case that none does."""
        builder, place = self._builder, self._masks[header]
        mask = place.load(builder)
        again = self._blocks[header]
        if header in self._left_late:
            self._write_few_remain(header, mask, rest)
        if header in self._runs:
            again, running = self._runs[header]
            place.store(builder, self._lanes.no_lanes())
            running.add_incoming(mask, builder.block)
        if header in self._left_late:
            builder.branch(again)
        else:
            builder.cbranch(self._lanes.any(mask), again, rest)

    def _write_few_remain(self, header: Block, mask: ir.Value, rest: ir.Block) -> None:
        """Leave the loop at *header* for *rest* if few lanes are in *mask*, the mask of another iteration."""
        builder = self._builder
        bits, count = self._lanes.count(mask)
        few, some, many = map(builder.append_basic_block, ("few.remain", "some.remain", "many.remain"))
        most = self._left_late[header]
        builder.cbranch(builder.icmp_unsigned("<=", count, count.type(most)), few, many)
        builder.position_at_end(few)
        builder.cbranch(builder.icmp_unsigned("==", bits, bits.type(0)), rest, some)
        builder.position_at_end(some)
        place = allocate(self._widener.entry, bits.type, "remaining.bits")
        builder.store(bits, place)
        self._masks[header].store(builder, self._lanes.no_lanes())
        start = builder.append_basic_block("remaining")
        builder.branch(start)
        self.few_remain.append(FewRemain(header, most, start, place, rest))
        builder.position_at_end(many)
