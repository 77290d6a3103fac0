"""Values that depend on the lane index only, such as the source lanes of a shuffle, evaluated for each lane."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.ir.model import Constant, Instruction, Value


def find_lane_constants(value: Value, width: int, index: str = "") -> list[int] | None:
    """*value* in each of the *width* lanes of a wave, as unsigned integers, or ``None`` if it depends on more than the
    lane index, which the remainder by *width* of what the function *index* of the contract gives is, too."""
    return _Numbers(width, index).of(value)


class _Numbers:
    def __init__(self, width: int, index: str) -> None:
        self._width = width
        self._index = index
        self._known: dict[Value, list[int] | None] = {}

    def of(self, value: Value) -> list[int] | None:
        if value not in self._known:
            self._known[value] = None  # for values that depend on themselves
            self._known[value] = self._find(value)
        return self._known[value]

    def _find(self, value: Value) -> list[int] | None:
        if isinstance(value, Constant):
            return None if value.number is None else [value.number] * self._width
        if not isinstance(value, Instruction) or not isinstance(value.type, ir.IntType):
            return None
        if value.opcode == "call":
            return list(range(self._width)) if value.callee == spmd.LANE else None
        if (divisor := self._divides_index(value)) is not None:
            return [lane % divisor for lane in range(self._width)]
        if value.opcode not in _RULES and value.opcode != "icmp":
            return None
        operands = [self.of(operand) for operand in value.operands]
        if any(operand is None for operand in operands):
            return None
        bits = getattr(value.operands[0].type, "width", 0)
        rule = _COMPARISONS[value.predicate] if value.opcode == "icmp" else _RULES[value.opcode]
        most = (1 << value.type.width) - 1
        return [rule(bits, *parts) & most for parts in zip(*operands, strict=True)]

    def _divides_index(self, value: Instruction) -> int | None:
        """The divisor of the width by which *value* is the remainder of the thread's index, if it is one."""
        if value.opcode not in ("and", "urem") or not self._is_index(value.operands[0]):
            return None
        number = value.operands[1].number if isinstance(value.operands[1], Constant) else None
        if number is None:
            return None
        divisor = number + 1 if value.opcode == "and" else number
        return divisor if divisor and self._width % divisor == 0 else None

    def _is_index(self, value: Value) -> bool:
        """Whether *value* is the thread's index, in an integer of any length that holds all remainders."""
        while isinstance(value, Instruction) and value.opcode in ("zext", "sext", "trunc", "freeze"):
            if value.type.width < _LONGEST_WIDTH:
                return False
            (value,) = value.operands
        return isinstance(value, Instruction) and bool(self._index) and value.callee == self._index


_LONGEST_WIDTH = 8
"""Bits that hold the number of a lane."""


def _signed(bits: int, number: int) -> int:
    return number - (1 << bits) if number >> (bits - 1) & 1 else number


Rule = Callable[..., int]

_RULES: dict[str, Rule] = {
    "add": lambda bits, a, b: a + b,
    "sub": lambda bits, a, b: a - b,
    "mul": lambda bits, a, b: a * b,
    "and": lambda bits, a, b: a & b,
    "or": lambda bits, a, b: a | b,
    "xor": lambda bits, a, b: a ^ b,
    "shl": lambda bits, a, b: a << min(b, bits),
    "lshr": lambda bits, a, b: a >> b,
    "zext": lambda bits, a: a,
    "trunc": lambda bits, a: a,
    "sext": lambda bits, a: _signed(bits, a),
    "select": lambda bits, c, a, b: a if c else b,
}
"""The result of each instruction, given the bits of its first operand; only the result's low bits count. Poison from
violated flags may be any number."""

_COMPARISONS: dict[str, Rule] = {
    "eq": lambda bits, a, b: a == b,
    "ne": lambda bits, a, b: a != b,
    "ult": lambda bits, a, b: a < b,
    "ule": lambda bits, a, b: a <= b,
    "ugt": lambda bits, a, b: a > b,
    "uge": lambda bits, a, b: a >= b,
    "slt": lambda bits, a, b: _signed(bits, a) < _signed(bits, b),
    "sle": lambda bits, a, b: _signed(bits, a) <= _signed(bits, b),
    "sgt": lambda bits, a, b: _signed(bits, a) > _signed(bits, b),
    "sge": lambda bits, a, b: _signed(bits, a) >= _signed(bits, b),
}
