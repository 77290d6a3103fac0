"""Powers of two that a number is a multiple of in the first lane of every gang.

Gangs begin at multiples of their width. So the low bits of a strided number, as many as all lanes together reach over,
come from the lane alone where the first lane has zeros there, and no sum carries into the bits above, which are the
same in all lanes. That holds in a part of a gang, too, such as what is left of one behind the end of a row: its lanes
are some of the gang's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.ir.model import Constant, Instruction, Value

SPLITTING = frozenset({"and", "lshr", "ashr", "udiv", "urem"})
"""Opcodes that take a number apart if the second operand is a constant."""

ZERO = 64
"""The alignment of 0, in bits; no number needs more."""


class Alignments:
    """The alignments of numbers in gangs of *width* lanes: how many of their lowest bits are 0 in the first lane.

    *starts* has those of intrinsics, by name. Values are looked up when they are asked for, so their instructions may
    change before that.
    """

    def __init__(self, width: int, starts: Mapping[str, int]) -> None:
        self.width = width
        self._starts = starts
        self._known: dict[Instruction, int] = {}

    def of(self, value: Value) -> int:
        """The number of lowest bits of *value* that are 0 in the first lane, as far as that is known."""
        if not isinstance(value, Instruction):
            return _count_zeros(value.number) if isinstance(value, Constant) and value.number is not None else 0
        if value not in self._known:
            self._solve(value)
        return self._known[value]

    def _solve(self, value: Instruction) -> None:
        """Find the alignments of *value* and of all that it is computed from: the largest that agree."""
        needed = self._collect(value)
        self._known.update(dict.fromkeys(needed, ZERO))
        changed = True
        while changed:
            changed = False
            for instruction in needed:
                found = self._infer(instruction)
                changed |= found < self._known[instruction]
                self._known[instruction] = min(found, self._known[instruction])

    def _collect(self, value: Instruction) -> list[Instruction]:
        """*value* and the instructions that it is computed from whose alignments are not known, operands first except
        around loops."""
        found: dict[Instruction, None] = {}
        entered: set[Instruction] = set()
        waiting: list[tuple[Instruction, bool]] = [(value, False)]
        while waiting:
            next_value, is_done = waiting.pop()
            if is_done:
                found[next_value] = None
            elif next_value not in entered and next_value not in self._known:
                entered.add(next_value)
                waiting.append((next_value, True))
                if next_value.opcode in _RULES:
                    waiting += [(part, False) for part in next_value.operands if isinstance(part, Instruction)]
        return list(found)

    def _infer(self, instruction: Instruction) -> int:
        if not isinstance(instruction.type, ir.IntType):
            return 0
        if instruction.opcode == "call":
            return self._starts.get(instruction.callee, 0)
        rule = _RULES.get(instruction.opcode)
        if rule is None:
            return 0
        return min(ZERO, rule(instruction, [self.of(operand) for operand in instruction.operands]))


def align_gangs(width: int, along: str, extent: int, lanes_consecutive: bool, multiple: int = 1) -> Alignments:
    """The alignments in gangs of *width* neighbours *along* an axis on which a block has *extent* threads.
    *lanes_consecutive*: a gang's lanes are neighbours in their wave. The length of blocks is a *multiple* of that."""
    bits = _count_zeros(width)
    starts = {
        spmd.thread_idx(along): bits,
        intrinsics.NUMBER: bits,
        intrinsics.LANE_PLACE: bits,
        intrinsics.global_idx(along): min(bits, _count_zeros(extent)),
        spmd.block_dim("x"): _count_zeros(multiple),
    }
    return Alignments(width, {**starts, spmd.LANE: bits} if lanes_consecutive else starts)


def splits_gangs(value: Instruction, alignments: Alignments) -> bool:
    """Whether *value* is made of the bits of a number that the lanes of a gang differ in, or of those above, as if the
    number counted lanes: the lane and the number of a wave, by ``i % 32`` and ``i // 32``."""
    if value.opcode not in SPLITTING:
        return False
    least = (alignments.width - 1).bit_length()
    number = signed_number(value.operands[1])
    if number is None or number <= 0 or alignments.of(value.operands[0]) < least:
        return False
    if value.opcode in ("lshr", "ashr"):
        return number >= least
    low = number & (1 << least) - 1
    return low in (0, (1 << least) - 1) if value.opcode == "and" else low == 0


def _count_zeros(number: int) -> int:
    """The number of lowest bits of *number* that are 0."""
    return (number & -number).bit_length() - 1 if number else ZERO


_Rule = Callable[[Instruction, list[int]], int]


def _least(instruction: Instruction, operands: list[int]) -> int:
    return min(operands)


def _shift_left(instruction: Instruction, operands: list[int]) -> int:
    return operands[0] + max(signed_number(instruction.operands[1]) or 0, 0)


def _shift_right(instruction: Instruction, operands: list[int]) -> int:
    by = signed_number(instruction.operands[1])
    return 0 if by is None or by < 0 else max(operands[0] - by, 0)


def _quotient(instruction: Instruction, operands: list[int]) -> int:
    """Of an exact division by a power of two; others may leave any number."""
    by = signed_number(instruction.operands[1])
    if by is None or by <= 0 or by & (by - 1):
        return 0
    return max(operands[0] - _count_zeros(by), 0)


_RULES: dict[str, _Rule] = {
    **dict.fromkeys(("add", "sub", "or", "xor", "phi", "urem", "srem"), _least),
    **dict.fromkeys(("zext", "sext", "trunc", "freeze"), lambda instruction, operands: operands[0]),
    "and": lambda instruction, operands: max(operands),
    "mul": lambda instruction, operands: sum(operands),
    "select": lambda instruction, operands: min(operands[1:]),
    "shl": _shift_left,
    "lshr": _shift_right,
    "ashr": _shift_right,
    "udiv": _quotient,
    "sdiv": _quotient,
}
