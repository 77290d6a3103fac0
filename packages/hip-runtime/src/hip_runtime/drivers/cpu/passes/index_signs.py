"""Has the start of a loop decide whether an index that grows in it may be negative.

Python counts negative indices from the end of an array, so each access adds the array's length if its index is
negative. One that only grows is not negative if it does not start so: ``for k in range(ptr[i], ptr[i + 1])`` goes
through a row of a sparse matrix, of which nobody knows but from data that it begins at 0 or later. With that as a part
of the condition, LLVM makes two loops (it unswitches what does not change in a loop), of which the usual one accesses
consecutive elements and can become vectors.
"""

from __future__ import annotations

from collections.abc import Mapping

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.cfg import order_blocks
from hip_runtime.drivers.cpu.analyses.known_ranges import constant
from hip_runtime.drivers.cpu.ir.model import Argument, Block, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1, I64

_PARTS = {"slt": ("uge", "and", 0), "sgt": ("ult", "or", 1)}
"""Predicates of tests whether an index is less than a number, or greater: how what it is at first, less that number and
another, compares with a number below which it is surely not less; and how that is a part of the test."""

_MOST_STEPS = 8
"""The most instructions that compute what an index is at first."""


def decide_at_start(function: Function) -> bool:
    """Make what an index is at first a part of each comparison of it with a number by which *function* chooses a value
    in a loop where the index only grows; whether there are any."""
    order = order_blocks(function.blocks[0], lambda block: block.successors)
    chosen = {value.operands[0] for value in function.instructions() if value.opcode == "select"}
    homes = {value: block for block in function.blocks for value in block.instructions}
    decided: dict[Value, Value] = {}
    for test, block in homes.items():
        if test in chosen and _compares_index(test) and block in order.loops:
            home = homes.get(test.operands[0])  # type: ignore[call-overload]
            loop = next((one for one in reversed(order.loops[block]) if home in one), None)
            made = None if loop is None else _decide(test, loop, homes)
            if made is not None:
                block.instructions.insert(block.instructions.index(test) + 1, made)
                decided[test] = made
    for value in function.instructions() if decided else ():
        if value.opcode == "select":
            value.operands[0] = decided.get(value.operands[0], value.operands[0])
    return bool(decided)


def _compares_index(value: Instruction) -> bool:
    """Whether *value* compares one number with another that is known, and small."""
    if value.opcode != "icmp" or value.predicate not in _PARTS:
        return False
    index, number = value.operands[0], signed_number(value.operands[1])
    return isinstance(index.type, ir.IntType) and number is not None and abs(number) < 1 << index.type.width // 2


def _decide(test: Instruction, loop: frozenset[Block], homes: Mapping[Instruction, Block]) -> Instruction | None:
    """*test* with what its index is at first in *loop* as a part of it, which is written before the loop; ``None`` if
    it may shrink in the loop. A comparison with the same number LLVM would make one of with *test*."""
    starts = _Starts(loop, homes)
    first = starts.find(test.operands[0])
    number, kind = signed_number(test.operands[1]), test.operands[1].type
    if not isinstance(first, (Instruction, Argument)) or number is None or starts.entry is None:
        return None
    assert isinstance(kind, ir.IntType)
    predicate, part, more = _PARTS[test.predicate]
    if number + more:
        first = starts.write(Instruction(kind, "sub", [first, constant(kind, number + more)], f"{test.name}.from"))
    surely = constant(kind, 1 << kind.width - 2)
    first = starts.write(Instruction(I1, "icmp", [first, surely], f"{test.name}.first", predicate=predicate))
    place = len(starts.entry.instructions) - 1
    starts.entry.instructions[place:place] = starts.made
    return Instruction(I1, part, [first, test], f"{test.name}.decided")


class _Starts:
    """What values that only grow in *loop* are when it starts.

    They are computed without regard to overflow: numbers of 64 bits that wrapped around at first do not get to be
    indices in as many iterations as there can be."""

    def __init__(self, loop: frozenset[Block], homes: Mapping[Instruction, Block]) -> None:
        self._loop = loop
        self._homes = homes
        self.entry: Block | None = None
        """The block from which the loop is entered, which the values are for."""
        self.made: list[Instruction] = []

    def find(self, value: Value) -> Value | None:
        """What *value* is at first; ``None`` if it may shrink."""
        if not isinstance(value, Instruction) or self._homes[value] not in self._loop:
            return value
        if value.opcode == "phi":
            return self._find_counter(value)
        if len(self.made) == _MOST_STEPS or not _keeps_order(value):
            return None
        operands = [found for operand in value.operands if (found := self.find(operand)) is not None]
        if len(operands) < len(value.operands) or (value.opcode == "sub" and operands[1] is not value.operands[1]):
            return None
        opcode = "sext" if value.opcode == "zext" else value.opcode  # of what is not negative, the same
        return self.write(Instruction(value.type, opcode, operands, f"{value.name}.at.first"))

    def _find_counter(self, phi: Instruction) -> Value | None:
        arriving = list(zip(phi.operands, phi.targets, strict=True))
        outside = [(value, source) for value, source in arriving if source not in self._loop]
        if len(outside) != 1 or not all(_is_more(value, phi) for value, source in arriving if source in self._loop):
            return None
        first, self.entry = outside[0]
        return first

    def write(self, value: Instruction) -> Instruction:
        """Have *value* computed before the loop."""
        self.made.append(value)
        return value


def _is_more(value: Value, phi: Instruction) -> bool:
    """Whether *value* is *phi* and a number."""
    if not isinstance(value, Instruction) or value.opcode != "add" or "nsw" not in value.flags:
        return False
    step = signed_number(value.operands[1])
    return value.operands[0] is phi and step is not None and step > 0


def _keeps_order(value: Instruction) -> bool:
    """Whether *value* does not shrink if its operands do not, but for what is subtracted."""
    if value.opcode in ("zext", "sext"):
        return value.opcode == "sext" or "nneg" in value.flags
    if value.opcode not in ("add", "sub", "mul", "shl") or value.type != I64 or "nsw" not in value.flags:
        return False
    factor = signed_number(value.operands[1])
    return value.opcode in ("add", "sub") or (factor is not None and factor > 0)
