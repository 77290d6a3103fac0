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

    *early_exits* are branches that all lanes are known to take.
    """

    def __init__(self, function: Function, early_exits: dict[Block, Block]) -> None:
        self._function = function
        self._guards = early_exits
        self._done: set[Block] = set()
        self._left = _MOST_INSTRUCTIONS
        self.copied: dict[Instruction, Instruction] = {}
        """Instructions that are there once more, each with the one that it is a copy of."""

    def version_next(self, shapes: VectorShapes) -> bool:
        """Write one more way twice, where there is one; *shapes* are those of the function as it is."""
        for block in shapes.order.blocks:
            if block not in shapes.divergent or block in self._done or block.terminator.opcode != "br":
                continue
            self._done.add(block)
            loops = shapes.order.loops[block]
            if (
                self._version_loop(block, loops[-1], shapes)
                if loops and loops[-1] <= shapes.masked
                else (block not in shapes.masked and self._version_path(block, shapes))
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

    def _version_loop(self, latch: Block, loop: frozenset[Block], shapes: VectorShapes) -> bool:
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
        diverging = self._write_divergence(end, copies.of(end.operands[0]), f"{latch.name}.parting")
        _decide(copies.blocks[latch], copies.blocks[header], diverging, stays)
        for block in entering:
            block.terminator.targets = [copies.blocks.get(target, target) for target in block.terminator.targets]
            if block in self._guards:
                self._guards[block] = copies.blocks[header]
        for phi in header.phis:
            given = dict(zip(phi.targets, phi.operands, strict=True))
            copy = copies.values[phi]
            pairs = [(value, source) for source, value in given.items() if source in loop]
            _set_incoming(phi, [*pairs, (copies.of(given[latch]), diverging)])
            outside = [(value, source) for source, value in given.items() if source not in loop]
            _set_incoming(copy, [*outside, *((copies.of(value), copies.blocks[source]) for value, source in pairs)])
        for phi in behind.phis:
            given = dict(zip(phi.targets, phi.operands, strict=True))
            _add_incoming(phi, copies.of(given[latch]), diverging)
        self._join(loop, latch, behind, diverging, copies)
        return True

    def _come_together(self, block: Block, shapes: VectorShapes) -> bool:
        return block not in shapes.masked and (block not in shapes.divergent or block in self._guards)

    def _join(self, loop: frozenset[Block], latch: Block, behind: Block, diverging: Block, copies: Copies) -> None:
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
            _set_incoming(phi, [(value, latch), (copies.of(value), diverging)])
            behind.instructions.insert(0, phi)

    def _write_divergence(self, end: Instruction, condition: Value, name: str) -> Block:
        """A block at whose end lanes part as *end* does."""
        branch = Instruction(end.type, "br", [condition], targets=list(end.targets), location=end.location)
        diverging = Block(name, [branch])
        self._function.blocks.append(diverging)
        self._done.add(diverging)
        return diverging

    # a way without a loop around it

    def _version_path(self, block: Block, shapes: VectorShapes) -> bool:
        """What lanes run behind *block* that are within bounds, up to where all go on."""
        end = block.terminator
        reconvergence = shapes.reconvergence(block)
        if reconvergence is None:
            return False
        for target in shapes.successors(block):
            path = _find_path(target, reconvergence, shapes)
            wanted = target is end.targets[0]
            if (
                target is not reconvergence
                and block not in path
                and any(_gains(part, shapes) for part in path)
                and _is_entered_from(path, target, block, shapes)
                and is_told_by_ends(shapes, end.operands[0], block, wanted)
                and self._afford(path)
            ):
                self._write_path(block, target, path, reconvergence, wanted)
                return True
        return False

    def _write_path(self, block: Block, target: Block, path: list[Block], reconvergence: Block, wanted: bool) -> None:
        end = block.terminator
        copies = self._copy(path)
        diverging = self._write_divergence(end, end.operands[0], f"{block.name}.parting")
        for following in end.targets:
            for phi in following.phis:
                phi.targets = [diverging if source is block else source for source in phi.targets]
        for phi in reconvergence.phis:
            for value, source in list(zip(phi.operands, phi.targets, strict=True)):
                if source in copies.blocks:
                    _add_incoming(phi, copies.of(value), copies.blocks[source])
        _decide(block, copies.blocks[target], diverging, wanted)


def _decide(block: Block, coherent: Block, diverging: Block, wanted: bool) -> None:
    """Let *block* end with the question whether the condition that it ends with is *wanted* in all lanes."""
    end = block.instructions.pop()
    agreed = Instruction(I1, AGREE, [end.operands[0]], f"{block.name}.agreed", predicate="true" if wanted else "false")
    block.instructions += [agreed, Instruction(end.type, "br", [agreed], targets=[coherent, diverging])]


def _gains(block: Block, shapes: VectorShapes) -> bool:
    """Whether *block* is better run without a mask: it touches memory, or is run again and again."""
    return bool(shapes.order.loops[block]) or any(map(needs_a_lane, block.instructions))


def _find_path(start: Block, reconvergence: Block, shapes: VectorShapes) -> list[Block]:
    """The blocks that lanes can come to from *start* before all meet."""
    found = {start: None}
    waiting = [start]
    while waiting:
        for target in shapes.successors(waiting.pop()):
            if target is not reconvergence and target not in found:
                found[target] = None
                waiting.append(target)
    return list(found)


def _is_entered_from(path: list[Block], start: Block, block: Block, shapes: VectorShapes) -> bool:
    """Whether *block* is the only way into *path*, which begins at *start*, and nothing in it ends the kernel."""
    inside = set(path)
    for source in shapes.order.blocks:
        for target in shapes.successors(source):
            if target in inside and source not in inside and (source is not block or target is not start):
                return False
    return all(shapes.successors(part) for part in path)


def _set_incoming(phi: Instruction, paths: list[tuple[Value, Block]]) -> None:
    phi.operands, phi.targets = [value for value, _ in paths], [source for _, source in paths]


def _add_incoming(phi: Instruction, value: Value, source: Block) -> None:
    phi.operands, phi.targets = [*phi.operands, value], [*phi.targets, source]
