"""Code behind coherent divisions is versioned: for gangs whose lanes all have the same quotient, and for the others.

Where the quotient is uniform and the remainders are consecutive, so is what is computed from them: addresses in a row
of an array are contiguous, and branches on the row are uniform. One division of the first lane's dividend tells. The
version for these gangs is a copy, in which the quotient and the remainder are replaced, and what follows from their
ranges is decided.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.coherent_divisions import (
    REPEATED,
    CoherentDivision,
    expected_conditions,
    find_coherent_divisions,
)
from hip_runtime.drivers.cpu.analyses.known_ranges import KnownRanges, constant
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.clone import Copies, copy_blocks
from hip_runtime.drivers.cpu.ir.model import FIRST, RAMP, Block, Constant, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1, VOID
from hip_runtime.drivers.cpu.vectorize.row_split import RowGuard

_MAX_INSTRUCTIONS = 300
"""The most instructions that are duplicated in a function."""


_ACCESSES = frozenset({"load", "store"})


class CoherentDivisions:
    """Versions the code of *function* behind coherent divisions, those of one block for each call of `version_next`.

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
        self.guard: RowGuard | None = None
        """The first branch outside of loops on whether divisions of consecutive numbers are coherent."""

    def version_next(self, shapes: VectorShapes) -> bool:
        """Version the code behind the next divisions, if there are any; *shapes* are those of the function as it is
        now."""
        for block in shapes.order.blocks:
            if block in shapes.masked:
                continue
            divisions = [
                found for found in find_coherent_divisions(block, shapes, self._width)
                if found.division not in self._done
            ]  # fmt: skip
            self._done.update(found.division for found in divisions)
            version = self._version_in_loop if shapes.order.loops[block] else self._version
            if divisions and version(block, divisions, shapes):
                return True
        return False

    def _version_in_loop(self, block: Block, divisions: list[CoherentDivision], shapes: VectorShapes) -> bool:
        """Version the rest of *block* only, which other blocks of the loop follow."""
        *behind, end = block.instructions[block.instructions.index(divisions[0].division) :]
        if not any(value.opcode in _ACCESSES for value in behind):
            return False
        guard = self._make_guard(block, behind, divisions, shapes)
        if guard is None:
            return False
        joined = Block(f"{block.name}.joined", [end])
        apart = Block(f"{block.name}.apart", [*behind, Instruction(VOID, "br", [], targets=[joined])])
        for target in joined.successors:
            for phi in target.phis:
                phi.targets = [joined if source is block else source for source in phi.targets]
        copies = self._copy([apart])
        self.apart.add(apart)
        block.instructions = guard.finish(copies.blocks[apart], apart)
        self._join(apart, joined, copies, guard.simplify(copies))
        self._function.blocks += [apart, joined]
        return True

    def _join(self, apart: Block, joined: Block, copies: Copies, results: dict[Instruction, Value]) -> None:
        """Replace what *apart* computes, where it is used elsewhere, by what either version has computed."""
        inside = {*apart.instructions, *copies.values.values()}
        phis: dict[Instruction, Instruction] = {}
        for block in [*self._function.blocks, joined]:
            for user in block.instructions:
                if user in inside:
                    continue
                for number, value in enumerate(user.operands):
                    if isinstance(value, Instruction) and value in results:
                        phi = phis.get(value)
                        if phi is None:
                            phi = phis[value] = Instruction(
                                value.type, "phi", [value, results[value]], f"{value.name}.joined",
                                targets=[apart, copies.blocks[apart]],
                            )  # fmt: skip
                        user.operands[number] = phi
        joined.instructions[:0] = phis.values()

    def _make_guard(
        self, block: Block, behind: list[Instruction], divisions: list[CoherentDivision], shapes: VectorShapes
    ) -> _Guard | None:
        """The guard of *divisions* in *block*, if it can be computed before what is *behind* it, which then is written
        twice; ``None`` if that is too much."""
        if len(behind) > self._budget or any(value.opcode == "alloca" for value in behind):
            return None
        start = block.instructions.index(divisions[0].division)
        guard = _Guard(block.instructions[:start], set(behind), self._width)
        divisions = [found for found in divisions if guard.add_division(found)]
        if not divisions:
            return None
        for condition, expected in expected_conditions(block, shapes, divisions).items():
            guard.add_condition(condition, expected)
        self._budget -= len(behind)
        return guard

    def _version(self, block: Block, divisions: list[CoherentDivision], shapes: VectorShapes) -> bool:
        following = _find_following(block, shapes)
        start = block.instructions.index(divisions[0].division)
        behind = [*block.instructions[start:], *(value for other in following for value in other.instructions)]
        if not _is_entered_from(block, following, shapes):
            return False
        guard = self._make_guard(block, behind, divisions, shapes)
        if guard is None:
            return False
        apart = Block(f"{block.name}.apart", block.instructions[start:])
        self._function.blocks.append(apart)
        for target in apart.successors:
            for phi in target.phis:
                phi.targets = [apart if source is block else source for source in phi.targets]
        if block in self._early_exits:
            self._early_exits[apart] = self._early_exits.pop(block)
        copies = self._copy([apart, *following])
        self.apart.update([apart, *following])
        block.instructions = guard.finish(copies.blocks[apart], apart)
        guard.simplify(copies)
        if self.guard is None and all(found.stride == 1 for found in divisions):
            self.guard = guard.describe(block, copies.blocks[apart], apart)
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


class _Guard:
    """The condition that divisions are coherent, and what is known where it holds.

    It is computed behind the instructions *before*; what it needs of those that are *behind* it is computed twice."""

    def __init__(self, before: list[Instruction], behind: Collection[Instruction], width: int) -> None:
        self._instructions = before
        self._behind = behind
        self._width = width
        self._repeated: dict[Instruction, Instruction] = {}
        self._holds: list[Value] = []
        self._fits: list[Value] = []
        """Whether the lanes of a whole gang are in one row, which has room for some."""
        self._rooms: list[Value] = []
        self._divisors: list[Value] = []
        self._known: dict[tuple[Value, Value, int], tuple[Value, Value]] = {}
        self._replaced: dict[Instruction, Value] = {}
        self._ranges = KnownRanges()

    def add_division(self, found: CoherentDivision) -> bool:
        """Require that *found* is coherent; ``False`` if that cannot be told here."""
        division = found.division
        dividend, divisor = (self._available(operand) for operand in division.operands)
        if dividend is None or divisor is None:
            return False
        key = (division.operands[0], division.operands[1], found.stride)
        if key not in self._known:
            self._known[key] = self._divide(dividend, divisor, found.stride)
            most = 1 << division.type.width - 2
            quotient, remainder = self._known[key]
            for value in (quotient, remainder, dividend, division.operands[0]):
                self._ranges.learn(value, (0, most))
            for value in (divisor, division.operands[1], self._require_divisor(division.operands[1])):
                if not isinstance(value, Constant):
                    self._ranges.learn(value, (1, (1 << division.type.width - 1) - 1))
        self._replaced[division] = self._known[key][0 if found.is_quotient else 1]
        return True

    def add_condition(self, condition: Value, expected: bool) -> None:
        """Require that *condition*, which is uniform, is *expected*."""
        found = self._available(condition)
        if found is not None and isinstance(condition, Instruction) and condition not in self._replaced:
            holds = found if expected else self._insert("xor", I1, found, constant(I1, 1))
            self._holds.append(holds)
            self._replaced[condition] = constant(I1, int(expected))

    def finish(self, coherent: Block, apart: Block) -> list[Instruction]:
        """The instructions up to the branch: to *coherent* if all holds, else to *apart*."""
        holds, *others = [*self._holds, *self._fits]
        for other in others:
            holds = self._insert("and", I1, holds, other)
        self._insert("br", VOID, self._insert("freeze", I1, holds), targets=[coherent, apart])
        return self._instructions

    def describe(self, block: Block, coherent: Block, apart: Block) -> RowGuard:
        """The branch at the end of *block*, for `row_split`."""
        return RowGuard(block, coherent, apart, self._holds, self._rooms, self._divisors)

    def simplify(self, copies: Copies) -> dict[Instruction, Value]:
        """Replace, in *copies* of what is behind, what is known there. Returns what stands for each original."""
        replaced: dict[Value, Value] = {
            value: known for value, known in self._replaced.items() if value not in self._behind
        }
        for original in copies.values:
            copy = copies.values[original]
            known = self._ranges.of(original)
            if known is not None:
                self._ranges.learn(copy, known)
            copy.operands = [replaced.get(operand, operand) for operand in copy.operands]
            found = self._replaced.get(original) or _select_arm(copy) or _conjoin(copy) or self._ranges.decide(copy)
            if found is not None:
                replaced[copy] = found
        for block in copies.blocks.values():
            block.instructions = [copy for copy in block.instructions if copy not in replaced]
            for copy in block.instructions:
                copy.operands = [replaced.get(operand, operand) for operand in copy.operands]
        return {original: replaced.get(copy, copy) for original, copy in copies.values.items()}

    def _divide(self, dividend: Value, divisor: Value, stride: int) -> tuple[Value, Value]:
        """The first lane's quotient, and the remainders of all lanes, if all have that quotient."""
        kind = dividend.type
        assert isinstance(kind, ir.IntType)
        reach = (self._width - 1) * stride
        first = self._insert("freeze", kind, self._insert(FIRST, kind, dividend))
        by = self._insert("freeze", kind, divisor)
        small = self._compare("ule", first, (1 << kind.width - 2) - reach)
        positive = self._compare("sgt", by, 0)
        by = self._insert("select", kind, positive, by, constant(kind, 1))  # which does not fit
        quotient = self._insert("udiv", kind, first, by)
        rest = self._insert("sub", kind, first, self._insert("mul", kind, quotient, by))
        room = self._insert("sub", kind, by, rest)
        self._fits.append(self._compare("ugt", room, reach))
        self._holds += [small, positive]
        self._rooms.append(room)
        self._divisors.append(by)
        return quotient, self._insert(RAMP, kind, rest, constant(kind, stride))

    def _require_divisor(self, divisor: Value) -> Value:
        """The divisor that the program has, where LLVM divides by 1 instead of by such that trap."""
        if isinstance(divisor, Instruction) and divisor.opcode == "select":
            condition, taken, otherwise = divisor.operands
            if isinstance(taken, Constant) != isinstance(otherwise, Constant):
                self.add_condition(condition, isinstance(otherwise, Constant))
                return otherwise if isinstance(taken, Constant) else taken
        return divisor

    def _compare(self, predicate: str, value: Value, number: int) -> Instruction:
        assert isinstance(value.type, ir.IntType)
        return self._insert("icmp", I1, value, constant(value.type, number), predicate=predicate)

    def _available(self, value: Value) -> Value | None:
        """*value* or, if it is computed behind the guard, the same value computed here; ``None`` if it cannot be."""
        if not isinstance(value, Instruction) or value not in self._behind:
            return value
        if value in self._repeated:
            return self._repeated[value]
        if value.opcode not in REPEATED:
            return None
        operands = [self._available(operand) for operand in value.operands]
        if None in operands:
            return None
        made = self._repeated[value] = replace(value, operands=[operand for operand in operands if operand is not None])
        self._instructions.append(made)
        return made

    def _insert(self, opcode: str, kind: ir.Type, *operands: Value, **rest: Any) -> Instruction:
        made = Instruction(kind, opcode, list(operands), f"coherent.{opcode}", **rest)
        self._instructions.append(made)
        return made


def _select_arm(value: Instruction) -> Value | None:
    """What a ``select`` must choose, if its condition is known."""
    if value.opcode != "select" or not isinstance(value.operands[0], Constant) or value.operands[0].number is None:
        return None
    return value.operands[1 if value.operands[0].number else 2]


def _conjoin(value: Instruction) -> Value | None:
    """False, if *value* is a conjunction with that; a sum with 0 is the other operand."""
    for number, operand in enumerate(value.operands[:2]):
        if isinstance(operand, Constant) and operand.number == 0 and len(value.operands) == 2:
            if value.opcode == "and":
                return operand
            if value.opcode == "add" or (value.opcode in ("sub", "or") and number == 1):
                return value.operands[1 - number]
    return None


def _find_following(block: Block, shapes: VectorShapes) -> list[Block]:
    """The blocks that are reached from *block*, in order."""
    found: set[Block] = set()
    waiting = [block]
    while waiting:
        for target in shapes.successors(waiting.pop()):
            if target not in found:
                found.add(target)
                waiting.append(target)
    return [other for other in shapes.order.blocks if other in found]


def _is_entered_from(block: Block, following: Collection[Block], shapes: VectorShapes) -> bool:
    """Whether the blocks *following* are only reached through *block*."""
    inside = {block, *following}
    return all(
        source in inside or target not in inside or target is block
        for source in shapes.order.blocks
        for target in shapes.successors(source)
    )
