"""Divides integers as such where a kernel divides them as float64 and drops the fraction: ``int(i / width)``, or
``math.floor(i / width)`` and ``math.ceil(i / width)``.

That is how C's integer division is often written in Python. As float64 the row of a thread found so differs from lane
to lane for all that is known; as an integer division it is known to be the same in a block, or in most gangs.

The two are equal where the dividend is below 2**53, so that it is exact as float64. If ``a = q * b + r``, then
``a / b`` is at least ``1 / b`` from the next integer, which relative to ``a / b`` is ``1 / a``, more than it is rounded
by. If the divisor is not exact, it is at least 2**53, and both quotients are 0, or between 0 and the next integer.
What rounds down or up is the quotient of a dividend that is larger by what the divisor, not the lane, tells.

The conversion saturates, which the dividend's size decides, too. A divisor that may be 0 is one that is the same in all
threads, so that one test of it tells; what becomes of an infinite quotient, and of 0 / 0, is known then.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.known_ranges import constant
from hip_runtime.drivers.cpu.analyses.magnitudes import (
    computes_from_indices,
    find_magnitude,
    float_number,
    is_of_launch,
    is_positive,
)
from hip_runtime.drivers.cpu.analyses.users import find_users
from hip_runtime.drivers.cpu.ir.model import Block, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1, I64
from hip_runtime.drivers.cpu.passes.remove_unused import remove_unused

_EXACT = 1 << 53
"""Integers below it are exact as float64."""

_LONGEST_SHIFT = 52
"""Powers of two up to this one have an inverse that LLVM multiplies by."""

_FLOOR, _CEIL = "llvm.floor.f64", "llvm.ceil.f64"

_CONVERSIONS = ("trunc", "sext", "zext")
_ORDERS = ("gt", "ge", "lt", "le")


@dataclass(frozen=True)
class _Quotient:
    """*dividend*, whose magnitude is at most *most*, divided by *divisor*, which may be 0 unless it *is_positive*, as
    float64."""

    value: Instruction
    dividend: Value
    divisor: Value
    most: int
    is_positive: bool
    has_sign: bool
    """Whether the dividend may be negative."""


def divide_as_integers(function: Function) -> bool:
    """Write such divisions of *function* so, where nothing but an integer is made of them; whether there were any."""
    if not any(value.opcode == "fptosi" for value in function.instructions()):
        return False
    users = find_users(function.instructions())
    replaced: dict[Value, Value] = {}
    for block in function.blocks:
        for value in list(block.instructions):
            quotient = _find_quotient(value)
            chain = None if quotient is None else _Chain.of(quotient, block, users)
            if chain is not None:
                replaced.update(_Writer(chain, block).write())
                block.instructions = [one for one in block.instructions if not chain.rounds(one)]
    if not replaced:
        return False
    for value in function.instructions():
        value.operands = [replaced.get(operand, operand) for operand in value.operands]
    remove_unused(function)
    return True


def _find_quotient(value: Instruction) -> _Quotient | None:
    if value.opcode not in ("fdiv", "fmul") or not isinstance(value.type, ir.DoubleType):
        return None
    dividend, divisor = _find_integer(value.operands[0]), _find_divisor(value)
    if dividend is None or divisor is None:
        return None
    positive = is_positive(divisor)
    if not positive and not (is_of_launch(divisor) and computes_from_indices(dividend)):
        return None
    most = find_magnitude(dividend)
    if most is None or most >= _EXACT:
        return None
    converted = value.operands[0]
    has_sign = isinstance(converted, Instruction) and converted.opcode == "sitofp"
    return _Quotient(value, dividend, divisor, most, positive, has_sign)


def _find_integer(value: Value) -> Value | None:
    """The integer that *value* is as float64. It has a sign, or is known not to need it."""
    if not isinstance(value, Instruction) or value.opcode not in ("sitofp", "uitofp"):
        return None
    (integer,) = value.operands
    return integer if value.opcode == "sitofp" or "nneg" in value.flags else None


def _find_divisor(value: Instruction) -> Value | None:
    """What *value* divides by; LLVM multiplies by the inverse of a power of two instead."""
    number = float_number(value.operands[1])
    if number is not None and value.opcode == "fmul":
        fraction, exponent = math.frexp(number)
        number = 1 / number if fraction == 0.5 and -_LONGEST_SHIFT < exponent < 1 else None
    if number is not None:
        return constant(I64, int(number)) if number.is_integer() and 0 < number < _EXACT else None
    return _find_integer(value.operands[1]) if value.opcode == "fdiv" else None


class _Chain:
    """What is computed of *quotient* in its block by comparing it with constants, selecting and converting it."""

    def __init__(self, quotient: _Quotient) -> None:
        self.quotient = quotient
        self.values: set[Value] = {quotient.value}
        self.roots: list[Instruction] = []
        """Those that others use."""

    @classmethod
    def of(cls, quotient: _Quotient, block: Block, users: dict[Value, list[Instruction]]) -> _Chain | None:
        """That of *quotient*, which is in *block*; ``None`` if it is used as a number with a fraction."""
        chain = cls(quotient)
        begin = block.instructions.index(quotient.value)
        for value in block.instructions[begin + 1 :]:
            if chain._joins(value):
                chain.values.add(value)
        found = [value for value in block.instructions[begin:] if value in chain.values]
        chain.roots = [value for value in found if not chain.values.issuperset(users.get(value, ()))]
        if any(isinstance(root.type, ir.DoubleType) for root in chain.roots) or not any(
            value.opcode == "fptosi" for value in found
        ):
            return None
        return chain

    def _joins(self, value: Instruction) -> bool:
        """Whether *value* is computed of the chain so far."""
        first = value.operands[0] if value.operands else None
        if value.opcode == "call":
            return first is self.quotient.value and value.callee in (_FLOOR, _CEIL) and not self.quotient.has_sign
        if value.opcode == "fcmp":
            return first in self.values and self._decide(value) is not None
        if value.opcode == "fptosi":
            return first in self.values and self._fits(value.type)
        if value.opcode == "select":
            return not self.values.isdisjoint(value.operands) and all(map(self._is_known, value.operands))
        return value.opcode in _CONVERSIONS and first in self.values

    def _is_known(self, value: Value) -> bool:
        return value in self.values or signed_number(value) is not None or float_number(value) is not None

    def _fits(self, kind: ir.Type) -> bool:
        """Whether integers of type *kind* can be the quotient."""
        return isinstance(kind, ir.IntType) and self.quotient.most < 1 << (kind.width - 1)

    def _decide(self, test: Instruction) -> bool | None:
        """The result of *test*, if the quotient's magnitude decides it: of a comparison with a constant."""
        limit = float_number(test.operands[1])
        if limit is None or math.isnan(limit):
            return None
        if test.predicate in ("ord", "uno"):
            return test.predicate == "ord"
        if abs(limit) <= self.quotient.most or test.predicate[1:] not in _ORDERS:
            return None
        return (test.predicate[1] == "l") == (limit > 0)

    def decided(self, value: Value) -> Value:
        """*value* without what the quotient's magnitude decides: a conversion, or a constant."""
        while isinstance(value, Instruction) and value in self.values:
            if value.opcode == "fcmp":
                return constant(I1, bool(self._decide(value)))
            if value.opcode != "select":
                break
            chosen = signed_number(self.decided(value.operands[0]))
            if chosen is None:
                break
            value = value.operands[1 if chosen else 2]
        return value

    @property
    def roundings(self) -> set[str]:
        """How the quotient is rounded before it is converted: not at all, or by a function."""
        return {
            self.rounding_of(value)
            for value in self.values
            if isinstance(value, Instruction) and value.opcode == "fptosi"
        }

    def rounds(self, value: Instruction) -> bool:
        """Whether *value* rounds the quotient."""
        return value.opcode == "call" and value in self.values

    def rounding_of(self, conversion: Instruction) -> str:
        """The function by which *conversion* has its quotient rounded."""
        source = self.decided(conversion.operands[0])
        return source.callee if isinstance(source, Instruction) and source.opcode == "call" else ""

    def evaluate(self, value: Value, quotient: float) -> float:
        """*value* if the quotient is *quotient*, which is no finite number."""
        if value is self.quotient.value:
            return quotient
        if not isinstance(value, Instruction) or value not in self.values:
            number = signed_number(value)
            return float_number(value) or 0.0 if number is None else number
        parts = [self.evaluate(operand, quotient) for operand in value.operands]
        if value.opcode == "call":  # which rounds
            return parts[0]
        if value.opcode == "fcmp":
            return _compare(value.predicate, parts[0], parts[1])
        if value.opcode == "select":
            return parts[1] if parts[0] else parts[2]
        bits = int(value.type.width)
        if value.opcode == "fptosi":  # which is undefined beyond the type
            return int(parts[0]) if -(1 << (bits - 1)) <= parts[0] < 1 << (bits - 1) else 0
        before = int(value.operands[0].type.width)
        kept = int(parts[0]) % (1 << min(before, bits))
        return kept - (1 << min(before, bits)) if value.opcode != "zext" and kept >> (min(before, bits) - 1) else kept


def _compare(predicate: str, left: float, right: float) -> bool:
    if math.isnan(left) or math.isnan(right):
        return predicate[0] == "u"
    if predicate in ("ord", "uno"):
        return predicate == "ord"
    order = predicate[1:]
    return (left < right if order[0] == "l" else left > right) or (order[1] == "e" and left == right)


class _Writer:
    """Writes the roots of *chain*, which is in *block*, with an integer division."""

    def __init__(self, chain: _Chain, block: Block) -> None:
        self._chain = chain
        self._quotient = chain.quotient
        self._block = block
        self._made: list[Instruction] = []
        self._source = chain.quotient.value

    def write(self) -> dict[Value, Value]:
        """Each root with what takes its place."""
        quotient = self._quotient
        dividend, divisor = (self._widen(part) for part in (quotient.dividend, quotient.divisor))
        zero = None
        if not quotient.is_positive:
            zero = self._compare(divisor, "eq")
            divisor = self._make(I64, "select", zero, constant(I64, 1), divisor)
        wholes = {rounding: self._divide(dividend, divisor, rounding) for rounding in sorted(self._chain.roundings)}
        self._insert(self._source)
        found: dict[Value, Value] = {}
        for root in self._chain.roots:
            self._source = root
            known = self._convert(root, wholes)
            if zero is not None:
                known = self._make(root.type, "select", zero, self._of_zero(root, dividend), known)
            self._insert(root)
            found[root] = known
        return found

    def _divide(self, dividend: Value, divisor: Value, rounding: str) -> Value:
        """The quotient, rounded to 0 or by *rounding*: which differs if it has a fraction and is below 0, or above."""
        if rounding:
            away = "slt" if rounding == _FLOOR else "sgt"
            limit = constant(I64, -_EXACT if rounding == _FLOOR else _EXACT)
            is_far = self._make(I1, "icmp", divisor, limit, predicate=away)
            divisor = self._make(I64, "select", is_far, limit, divisor)
            size = self._make(I64, "sub", constant(I64, 0), divisor) if rounding == _FLOOR else divisor
            beyond = self._make(I64, "add", dividend, self._make(I64, "sub", size, constant(I64, 1)))
            dividend = self._make(I64, "select", self._compare(divisor, away), beyond, dividend)
        return self._make(I64, "sdiv", dividend, divisor)

    def _convert(self, value: Value, wholes: Mapping[str, Value]) -> Value:
        """*value* of the chain, where the quotient is one of *wholes*, by its rounding."""
        decided = self._chain.decided(value)
        if not isinstance(decided, Instruction) or decided not in self._chain.values:
            return decided
        if decided.opcode == "fptosi":
            whole = wholes[self._chain.rounding_of(decided)]
            return whole if decided.type == I64 else self._make(decided.type, "trunc", whole)
        return self._make(decided.type, decided.opcode, *(self._convert(part, wholes) for part in decided.operands))

    def _of_zero(self, root: Instruction, dividend: Value) -> Value:
        """*root* where the divisor is 0, by the sign of *dividend*."""
        above, below, none = (
            constant(root.type, int(self._chain.evaluate(root, number))) for number in (math.inf, -math.inf, math.nan)
        )
        other = self._make(root.type, "select", self._compare(dividend, "slt"), below, none)
        return self._make(root.type, "select", self._compare(dividend, "sgt"), above, other)

    def _widen(self, value: Value) -> Value:
        return value if value.type == I64 else self._make(I64, "sext", value)

    def _compare(self, value: Value, predicate: str) -> Value:
        """Whether *value* compares with 0 so."""
        return self._make(I1, "icmp", value, constant(I64, 0), predicate=predicate)

    def _make(self, kind: ir.Type, opcode: str, *operands: Value, predicate: str = "") -> Value:
        name = f"{self._source.name}.{opcode}.{len(self._made)}"
        self._made.append(
            Instruction(kind, opcode, list(operands), name, predicate=predicate, location=self._source.location)
        )
        return self._made[-1]

    def _insert(self, place: Instruction) -> None:
        """Insert what was made before *place*."""
        index = self._block.instructions.index(place)
        self._block.instructions[index:index] = self._made
        self._made = []
