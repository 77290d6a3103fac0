"""Ways that all lanes of a group take together, written apart from the same ways under a mask.

The first and the last lane tell whether all are within bounds: nearly always they are. So what stands behind a branch
on bounds is there twice: for groups that go there as a whole, which load and store whole vectors without a mask, and
for others. A loop through an array in steps of the size of the grid goes round without masks until the first lane
leaves it; the others go on under a mask. Loads under masks that were only just computed take several times as long.
"""

from __future__ import annotations

from collections.abc import Iterable

from hip_runtime.drivers.cpu.analyses.effects import needs_a_lane
from hip_runtime.drivers.cpu.analyses.end_lanes import is_told_by_ends
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.clone import Copies, copy_blocks
from hip_runtime.drivers.cpu.ir.model import AGREE, Block, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1

_MOST_INSTRUCTIONS = 200
"""Instructions that are written twice, of one way and of all together."""


class CoherentBranches:
    """Changes *function*: each time `separate` is called one more way is written twice.

    *guards* are branches that all lanes are known to take.
    """

    def __init__(self, function: Function, guards: dict[Block, Block]) -> None:
        self._function = function
        self._guards = guards
        self._done: set[Block] = set()
        self._left = _MOST_INSTRUCTIONS
        self.copied: dict[Instruction, Instruction] = {}
        """Instructions that are there once more, each with the one that it is a copy of."""

    def separate(self, shapes: VectorShapes) -> bool:
        """Write one more way twice, where there is one; *shapes* are those of the function as it is."""
        for block in shapes.order.blocks:
            if block not in shapes.parting or block in self._done or block.terminator.opcode != "br":
                continue
            self._done.add(block)
            loops = shapes.order.loops[block]
            if (
                self._separate_loop(block, loops[-1], shapes)
                if loops and loops[-1] <= shapes.masked
                else (block not in shapes.masked and self._separate_way(block, shapes))
            ):
                return True
        return False

    def _afford(self, blocks: Iterable[Block]) -> bool:
        values = [value for block in blocks for value in block.instructions]
        count = len(values)
        if count > self._left or any(value.opcode == "alloca" for value in values):
            return False
        self._left -= count
        return True

    def _copy(self, blocks: Iterable[Block]) -> Copies:
        copies = copy_blocks(list(blocks))
        self._function.blocks += copies.blocks.values()
        for original, copy in copies.values.items():
            self.copied[copy] = original
        return copies

    # a loop

    def _separate_loop(self, latch: Block, loop: frozenset[Block], shapes: VectorShapes) -> bool:
        """A loop that lanes leave behind *latch* only, where they are out of bounds."""
        end = latch.terminator
        header = next(block for block in shapes.order.blocks if block in loop)
        leaving = [(block, target) for block in loop for target in shapes.successors(block) if target not in loop]
        entering = [block for block in shapes.order.blocks if block not in loop and header in shapes.successors(block)]
        if len(leaving) != 1 or leaving[0][0] is not latch or header not in end.targets:
            return False
        if not all(self._come_together(block, shapes) for block in entering):
            return False
        stays = end.targets[0] is header
        if not is_told_by_ends(shapes, end.operands[0], latch, stays) or not self._afford(loop):
            return False
        copies = self._copy(loop)
        behind = leaving[0][1]
        parts = self._write_parting(end, copies.of(end.operands[0]), f"{latch.name}.parting")
        _decide(copies.blocks[latch], copies.blocks[header], parts, stays)
        for block in entering:
            block.terminator.targets = [copies.blocks.get(target, target) for target in block.terminator.targets]
            if block in self._guards:
                self._guards[block] = copies.blocks[header]
        for phi in header.phis:
            given = dict(zip(phi.targets, phi.operands, strict=True))
            copy = copies.values[phi]
            pairs = [(value, source) for source, value in given.items() if source in loop]
            _set_ways(phi, [*pairs, (copies.of(given[latch]), parts)])
            outside = [(value, source) for source, value in given.items() if source not in loop]
            _set_ways(copy, [*outside, *((copies.of(value), copies.blocks[source]) for value, source in pairs)])
        for phi in behind.phis:
            given = dict(zip(phi.targets, phi.operands, strict=True))
            _add_way(phi, copies.of(given[latch]), parts)
        self._join(loop, latch, behind, parts, copies)
        return True

    def _come_together(self, block: Block, shapes: VectorShapes) -> bool:
        return block not in shapes.masked and (block not in shapes.parting or block in self._guards)

    def _join(self, loop: frozenset[Block], latch: Block, behind: Block, parts: Block, copies: Copies) -> None:
        """What is used behind *loop* is what one loop or the other computed."""
        joined: dict[Instruction, Instruction] = {}
        new = set(copies.values.values())
        for block in self._function.blocks:
            if block in loop:
                continue
            for user in block.instructions:
                if user in new:
                    continue
                for number, value in enumerate(user.operands):
                    if not isinstance(value, Instruction) or value not in copies.values:
                        continue
                    if user.opcode == "phi" and user.targets[number] in loop:
                        continue
                    phi = joined.get(value)
                    if phi is None:
                        phi = joined[value] = Instruction(value.type, "phi", [], f"{value.name}.joined")
                    user.operands[number] = phi
        for value, phi in joined.items():
            _set_ways(phi, [(value, latch), (copies.of(value), parts)])
            behind.instructions.insert(0, phi)

    def _write_parting(self, end: Instruction, condition: Value, name: str) -> Block:
        """A block at whose end lanes part as *end* does."""
        branch = Instruction(end.type, "br", [condition], targets=list(end.targets), location=end.location)
        parts = Block(name, [branch])
        self._function.blocks.append(parts)
        self._done.add(parts)
        return parts

    # a way without a loop around it

    def _separate_way(self, block: Block, shapes: VectorShapes) -> bool:
        """What lanes run behind *block* that are within bounds, up to where all go on."""
        end = block.terminator
        meeting = shapes.meeting(block)
        if meeting is None:
            return False
        for target in shapes.successors(block):
            way = _find_way(target, meeting, shapes)
            wanted = target is end.targets[0]
            if (
                target is not meeting
                and block not in way
                and any(_gains(part, shapes) for part in way)
                and _is_entered_from(way, target, block, shapes)
                and is_told_by_ends(shapes, end.operands[0], block, wanted)
                and self._afford(way)
            ):
                self._write_way(block, target, way, meeting, wanted)
                return True
        return False

    def _write_way(self, block: Block, target: Block, way: list[Block], meeting: Block, wanted: bool) -> None:
        end = block.terminator
        copies = self._copy(way)
        parts = self._write_parting(end, end.operands[0], f"{block.name}.parting")
        for following in end.targets:
            for phi in following.phis:
                phi.targets = [parts if source is block else source for source in phi.targets]
        for phi in meeting.phis:
            for value, source in list(zip(phi.operands, phi.targets, strict=True)):
                if source in copies.blocks:
                    _add_way(phi, copies.of(value), copies.blocks[source])
        _decide(block, copies.blocks[target], parts, wanted)


def _decide(block: Block, together: Block, parts: Block, wanted: bool) -> None:
    """Let *block* end with the question whether the condition that it ends with is *wanted* in all lanes."""
    end = block.instructions.pop()
    agreed = Instruction(I1, AGREE, [end.operands[0]], f"{block.name}.agreed", predicate="true" if wanted else "false")
    block.instructions += [agreed, Instruction(end.type, "br", [agreed], targets=[together, parts])]


def _gains(block: Block, shapes: VectorShapes) -> bool:
    """Whether *block* is better run without a mask: it touches memory, or is run again and again."""
    return bool(shapes.order.loops[block]) or any(map(needs_a_lane, block.instructions))


def _find_way(start: Block, meeting: Block, shapes: VectorShapes) -> list[Block]:
    """The blocks that lanes can come to from *start* before all meet."""
    found = {start: None}
    waiting = [start]
    while waiting:
        for target in shapes.successors(waiting.pop()):
            if target is not meeting and target not in found:
                found[target] = None
                waiting.append(target)
    return list(found)


def _is_entered_from(way: list[Block], start: Block, block: Block, shapes: VectorShapes) -> bool:
    """Whether *block* is the only way into *way*, which begins at *start*, and nothing in it ends the kernel."""
    inside = set(way)
    for source in shapes.order.blocks:
        for target in shapes.successors(source):
            if target in inside and source not in inside and (source is not block or target is not start):
                return False
    return all(shapes.successors(part) for part in way)


def _set_ways(phi: Instruction, ways: list[tuple[Value, Block]]) -> None:
    phi.operands, phi.targets = [value for value, _ in ways], [source for _, source in ways]


def _add_way(phi: Instruction, value: Value, source: Block) -> None:
    phi.operands, phi.targets = [*phi.operands, value], [*phi.targets, source]
