"""Code behind coherent divisions and clamps is versioned: for gangs whose lanes all have the same quotient, or of which
no lane is at a limit, and for the others.

Where the quotient is uniform and the remainders are consecutive, so is what is computed from them: addresses in a row
of an array are contiguous, and branches on the row are uniform. One division of the first lane's dividend tells. Where
no index is clamped, as by ``max(x - 1, 0)``, those of neighbours are consecutive; the first and the last lane tell. The
version for these gangs is a copy, in which quotients, remainders and clamped indices are replaced, and what follows
from their ranges is decided (`coherent_guard`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from hip_runtime.drivers.cpu.analyses.clamps import Clamp, addresses, find_clamps, is_compared
from hip_runtime.drivers.cpu.analyses.coherent_divisions import (
    REPEATED,
    CoherentDivision,
    expected_conditions,
    find_coherent_divisions,
)
from hip_runtime.drivers.cpu.analyses.known_ranges import constant
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.analyses.uniformity import is_arithmetic
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.clone import Copies, copy_blocks
from hip_runtime.drivers.cpu.ir.model import AGREE, FIRST, Block, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1, VOID
from hip_runtime.drivers.cpu.vectorize.coherent_guard import CoherentGuard
from hip_runtime.drivers.cpu.vectorize.row_crossing import write_crossing
from hip_runtime.drivers.cpu.vectorize.row_split import RowGuard
from hip_runtime.drivers.cpu.vectorize.versioned_paths import (
    Version,
    change_source,
    enter_by,
    find_branches,
    is_entered_from,
    join_versions,
    order_following,
)

_MAX_INSTRUCTIONS = 300
"""The most instructions that are duplicated in a function."""

_MAX_CROSSING = 60
"""The most that are written twice more for gangs that reach over the end of a row."""


_ACCESSES = frozenset({"load", "store"})

CoherentValue = CoherentDivision | Clamp


class CoherentValues:
    """Versions the code of *function* behind coherent divisions and clamps, those of one block for each call of
    `version_next`.

    *early_exits* are branches that all lanes are known to take; they are updated.
    """

    def __init__(self, function: Function, early_exits: dict[Block, Block], width: int) -> None:
        self._function = function
        self._early_exits = early_exits
        self._width = width
        self._budget = _MAX_INSTRUCTIONS
        self._done: set[Instruction] = set()
        self.copied: dict[Instruction, Instruction] = {}
        """Maps each copied instruction to its original."""
        self.apart: set[Block] = set()
        """The blocks of gangs whose lanes do not have the same quotient."""
        self.guards: list[RowGuard] = []
        """The first branch outside of loops on whether divisions of consecutive numbers are coherent, and those that
        follow where they are."""
        self._inside: Collection[Block] = ()
        """The blocks behind the last of them."""

    def version_next(self, shapes: VectorShapes) -> bool:
        """Version the code behind the next divisions, if there are any; *shapes* are those of the function as it is
        now."""
        for block in shapes.order.blocks:
            if block in shapes.masked:
                continue
            coherent = [found for found in self._find(block, shapes) if found.value not in self._done]
            self._done.update(found.value for found in coherent)
            version = self._version_in_loop if shapes.order.loops[block] else self._version
            if coherent and version(block, coherent, shapes):
                return True
        return False

    def _find(self, block: Block, shapes: VectorShapes) -> list[CoherentValue]:
        """The coherent divisions and clamps of *block*, in order."""
        divisions = find_coherent_divisions(block, shapes, self._width)
        found: dict[Instruction, CoherentValue] = {found.value: found for found in divisions}
        found |= {clamp.value: clamp for clamp in find_clamps(block, shapes)}
        return [found[value] for value in block.instructions if value in found]

    def _version_in_loop(self, block: Block, coherent: list[CoherentValue], shapes: VectorShapes) -> bool:
        """Version the rest of *block*, and what stands between that and the block in which its branches meet, if there
        is room for so much. Other blocks of the loop follow."""
        parts = find_branches(block, shapes)
        return (parts is not None and self._version_part(block, coherent, shapes, *parts)) or self._version_part(
            block, coherent, shapes, [], None
        )

    def _version_part(
        self, block: Block, coherent: list[CoherentValue], shapes: VectorShapes, following: list[Block],
        joined: Block | None,
    ) -> bool:  # fmt: skip
        """Version the rest of *block* and the blocks *following*, all of which lead to *joined*; but for how *block*
        ends, if that is ``None``."""
        start = _gather_dependent(block, coherent)
        behind = block.instructions[start:]
        if joined is None:
            asked = 1 if len(behind) > 1 and behind[-2].opcode == AGREE else 0  # of all lanes together
            joined = Block(f"{block.name}.joined", behind[-1 - asked :])
            del behind[-1 - asked :]
        written = [*behind, *(value for other in following for value in other.instructions)]
        guard = self._make_guard(block, start, written, coherent, shapes) if _has_accesses(written) else None
        if guard is None:
            return False
        apart = Block(f"{block.name}.apart", behind)
        block.instructions = block.instructions[:start]
        if following:
            change_source(apart.successors, block, apart)
        else:
            change_source(joined.successors, block, joined)
            behind.append(Instruction(VOID, "br", [], targets=[joined]))
            self._function.blocks.append(joined)
        inside = [apart, *following]
        self._function.blocks.append(apart)
        copies = self._copy(inside)
        versions = [(copies, guard.simplify(copies))]
        otherwise, crossing = self._write_crossing(block.name, inside, guard, shapes)
        self.apart.update(inside)
        block.instructions = guard.finish(copies.blocks[apart], otherwise)
        join_versions(self._function, inside, joined, [*versions, *crossing])
        return True

    def _write_crossing(
        self, name: str, inside: list[Block], guard: CoherentGuard, shapes: VectorShapes
    ) -> tuple[Block, list[Version]]:
        """Versions of the blocks *inside* for the lanes before and behind the end of a row, and where these branch; if
        there are none, that is the first of *inside*."""
        values = [value for block in inside for value in block.instructions]
        count = len(values)
        row = guard.crossed_row()
        if row is None or count > _MAX_CROSSING or 2 * count > self._budget:
            return inside[0], []
        if any(map(_is_of_all, values)) or not self._early_exits.keys().isdisjoint(inside):
            return inside[0], []
        used = {operand for block in self._function.blocks if block not in inside for operand in _operands(block)}
        if any(value in used and shapes.at_definition(value) is not VARYING for value in values):
            return inside[0], []  # what lanes have selected is not known to be strided
        self._budget -= 2 * count
        before, behind = self._copy(inside), self._copy(inside)
        for copies in (before, behind):
            _take_no_agreement(copies)
        apart = inside[0]
        blocks, instead = write_crossing(
            row, name, before.blocks[apart], behind.blocks[apart], apart, self._width
        )  # fmt: skip
        self._function.blocks += blocks
        self.apart.update([*before.blocks.values(), *behind.blocks.values()])
        return blocks[0], [(before, guard.simplify(before)), (behind, guard.simplify(behind, instead))]

    def _make_guard(
        self, block: Block, start: int, behind: list[Instruction], coherent: list[CoherentValue], shapes: VectorShapes
    ) -> CoherentGuard | None:
        """The guard of *coherent* values in *block*, if it can be computed at *start*, before what is *behind* it and
        then is written twice; ``None`` if that is too much."""
        if len(behind) > self._budget or any(value.opcode == "alloca" for value in behind):
            return None
        clamped = [found.value for found in coherent if isinstance(found, Clamp)]
        compared = {value for value in clamped if is_compared(value, behind)}
        addressing = {value for value in clamped if addresses(value, behind)}
        if not addressing and len(clamped) == len(coherent):
            return None
        coherent = [
            found for found in coherent if isinstance(found, CoherentDivision) or found.value in compared | addressing
        ]
        guard = CoherentGuard(block.instructions[:start], set(behind), self._width)
        coherent = [found for found in coherent if guard.add(found, found.value in compared)]
        if not coherent:
            return None
        divisions = [found for found in coherent if isinstance(found, CoherentDivision)]
        for condition, expected in expected_conditions(block, shapes, divisions).items():
            guard.add_condition(condition, expected)
        self._budget -= len(behind)
        return guard

    def _version(self, block: Block, coherent: list[CoherentValue], shapes: VectorShapes) -> bool:
        following = order_following(block, shapes)
        start = block.instructions.index(coherent[0].value)
        behind = [*block.instructions[start:], *(value for other in following for value in other.instructions)]
        has_divisions = any(isinstance(found, CoherentDivision) for found in coherent)
        if has_divisions and not is_entered_from(block, following, shapes):
            return False
        guard = self._make_guard(block, start, behind, coherent, shapes)
        if guard is None:
            return False
        apart = Block(f"{block.name}.apart", block.instructions[start:])
        self._function.blocks.append(apart)
        change_source(apart.successors, block, apart)
        if block in self._early_exits:
            self._early_exits[apart] = self._early_exits.pop(block)
        copies = self._copy([apart, *following])
        enter_by(copies, {apart, *following})
        self.apart.update([apart, *following])
        block.instructions = guard.finish(copies.blocks[apart], apart)
        guard.simplify(copies)
        divisions = [found for found in coherent if isinstance(found, CoherentDivision)]
        is_next = not self.guards or block in self._inside
        if is_next and divisions and all(found.stride == 1 for found in divisions):
            self.guards.append(guard.describe(block, copies.blocks[apart], apart))
            self._inside = set(copies.blocks.values())
        return True

    def _copy(self, blocks: list[Block]) -> Copies:
        copies = copy_blocks(blocks)
        self._function.blocks += copies.blocks.values()
        for original, copy in copies.values.items():
            self.copied[copy] = original
            if original in self._done:
                self._done.add(copy)
        for block in blocks:
            if block in self._early_exits:
                target = self._early_exits[block]
                self._early_exits[copies.blocks[block]] = copies.blocks.get(target, target)
        return copies


def _gather_dependent(block: Block, coherent: list[CoherentValue]) -> int:
    """Move what depends on *coherent* values or does more than to compute a number behind the rest of *block*. Returns
    where it begins."""
    start = block.instructions.index(coherent[0].value)
    dependent: dict[Value, None] = {found.value: None for found in coherent}
    for value in block.instructions[start:]:
        is_number = value.opcode in REPEATED or value.opcode == "getelementptr" or is_arithmetic(value.callee)
        if not is_number or not dependent.keys().isdisjoint(value.operands):
            dependent[value] = None
    rest = [value for value in block.instructions if value not in dependent]
    behind = [value for value in block.instructions if value in dependent]
    block.instructions = [*rest, *behind]
    return len(rest)


def _operands(block: Block) -> Iterator[Value]:
    for value in block.instructions:
        yield from value.operands


def _is_of_all(value: Instruction) -> bool:
    """Whether what *value* is may depend on which lanes run together."""
    return value.opcode == FIRST or (value.opcode == "call" and not is_arithmetic(value.callee))


def _take_no_agreement(copies: Copies) -> None:
    """Have the blocks of *copies* take no branch that is there for lanes which agree: a part of them cannot tell."""
    for block in copies.blocks.values():
        asked: dict[Value, Value] = {
            value: constant(I1, 0) for value in block.instructions if value.opcode == AGREE
        }  # fmt: skip
        block.instructions = [value for value in block.instructions if value not in asked]
        for value in block.instructions if asked else ():
            value.operands = [asked.get(operand, operand) for operand in value.operands]


def _has_accesses(values: list[Instruction]) -> bool:
    return any(value.opcode in _ACCESSES for value in values)
