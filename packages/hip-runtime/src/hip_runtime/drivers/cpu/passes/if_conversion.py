"""Computes both sides of small branches at which lanes part, and selects a result (if-conversion).

A side that only computes a few numbers runs under a mask in any case. Masked, what it computes is blended into memory
where the sides join, and the mask is computed, too; as a ``select`` it stays in registers, and LLVM finds minima and
the like.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.effects import DIVISIONS
from hip_runtime.drivers.cpu.analyses.known_ranges import constant
from hip_runtime.drivers.cpu.ir.keywords import BINARY, CASTS
from hip_runtime.drivers.cpu.ir.model import Block, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1, VOID

_COMPUTES = (BINARY - DIVISIONS - {"fdiv", "frem"}) | CASTS | {
    "fneg", "icmp", "fcmp", "select", "getelementptr", "freeze",
}  # fmt: skip
"""Opcodes of what depends on the operands alone, and takes little time."""

_MOST_INSTRUCTIONS = 10
"""Of a side, which may have sides of its own that were converted."""

_MOST_CASES = 8


def has_small_ifs(function: Function) -> bool:
    """Whether *function* has such branches, at which lanes may part or not."""
    entries = _count_entries(function)
    return any(_find_ends(block, entries) is not None for block in function.blocks)


def convert_ifs(function: Function, divergent: Collection[Block]) -> bool:
    """Convert such branches of *function*, among those of the blocks *divergent*; whether there were any."""
    converter = _Converter(function, set(divergent))
    found = False
    while converter.convert_next():
        found = True
    return found


@dataclass
class _Choice:
    """From where the join is entered: one of *arms*, if the condition before that is the first that holds, else
    *otherwise*."""

    arms: list[tuple[Value, Block]]
    otherwise: Block


class _Converter:
    def __init__(self, function: Function, divergent: set[Block]) -> None:
        self._function = function
        self._divergent = divergent

    def convert_next(self) -> bool:
        """Convert a branch, if there is one."""
        entries = _count_entries(self._function)
        for block in self._function.blocks:
            ends = _find_ends(block, entries) if block in self._divergent else None
            if ends is not None:
                self._convert(block, *ends, entries)
                return True
        return False

    def _convert(self, block: Block, join: Block, sides: list[Block], entries: Counter[Block]) -> None:
        end = block.instructions.pop()
        for side in sides:
            block.instructions += side.instructions[:-1]
            self._function.blocks.remove(side)
        choice = _read_choice(block, end, sides)
        for phi in join.phis:
            values = dict(zip(phi.targets, phi.operands, strict=True))
            chosen = _select(block, phi, choice, values)
            kept = [(source, value) for source, value in values.items() if source is not block and source not in sides]
            phi.targets = [*(source for source, _ in kept), block]
            phi.operands = [*(value for _, value in kept), chosen]
        block.instructions.append(Instruction(VOID, "br", [], targets=[join]))
        self._divergent.discard(block)
        if entries[join] == len(sides) + (join in end.targets):
            self._append(block, join)

    def _append(self, block: Block, join: Block) -> None:
        """Have *join*, which only *block* leads to, be a part of that."""
        known: dict[Value, Value] = {phi: phi.operands[0] for phi in join.phis}
        block.instructions[-1:] = join.instructions[len(known) :]
        self._function.blocks.remove(join)
        for other in self._function.blocks:
            for value in other.instructions:
                value.operands = [known.get(operand, operand) for operand in value.operands]
                if value.opcode == "phi":
                    value.targets = [block if source is join else source for source in value.targets]
        if join in self._divergent:
            self._divergent.add(block)


def _count_entries(function: Function) -> Counter[Block]:
    """How many blocks of *function* lead to each."""
    return Counter(target for block in function.blocks for target in set(block.successors))


def _find_ends(block: Block, entries: Counter[Block]) -> tuple[Block, list[Block]] | None:
    """Where all ways from the end of *block* join, and the sides in between; ``None`` if one does more than a little,
    or they do not."""
    targets = list(dict.fromkeys(block.terminator.targets))
    if not 2 <= len(targets) <= 1 + _MOST_CASES or len(block.terminator.targets) > 1 + _MOST_CASES:
        return None
    sides = [target for target in targets if _is_side(target, entries)]
    for join in dict.fromkeys([*(side.terminator.targets[0] for side in sides)]):
        between = [side for side in sides if side is not join]
        leads = all(side.terminator.targets[0] is join for side in between)
        if leads and join is not block and all(target is join or target in between for target in targets):
            return join, between
    return None


def _is_side(block: Block, entries: Counter[Block]) -> bool:
    """Whether *block* is entered from one other only, and does nothing but compute a little."""
    end = block.terminator
    if entries[block] != 1 or end.opcode != "br" or len(end.targets) != 1 or end.targets[0] is block:
        return False
    values = block.instructions[:-1]
    return len(values) <= _MOST_INSTRUCTIONS and all(value.opcode in _COMPUTES for value in values)


def _read_choice(block: Block, end: Instruction, sides: list[Block]) -> _Choice:
    """What *end* chooses, with its conditions computed in *block*."""
    arms = [target if target in sides else block for target in end.targets]
    if end.opcode == "br":
        taken, otherwise = arms
        return _Choice([(end.operands[0], taken)], otherwise)
    number, (otherwise, *others) = end.operands[0], arms
    kind = number.type
    assert isinstance(kind, ir.IntType)
    conditions = [
        Instruction(I1, "icmp", [number, constant(kind, case)], "is.case", predicate="eq") for case in end.cases
    ]
    block.instructions += conditions
    return _Choice(list(zip(conditions, others, strict=True)), otherwise)


def _select(block: Block, phi: Instruction, choice: _Choice, values: dict[Block, Value]) -> Value:
    """Write, in *block*, what chooses the one of *values* that *phi* is."""
    result = values[choice.otherwise]
    for condition, arm in reversed(choice.arms):
        if values[arm] is not result:
            result = Instruction(phi.type, "select", [condition, values[arm], result], f"{phi.name}.chosen")
            block.instructions.append(result)
    return result
