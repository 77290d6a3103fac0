"""What values must be where some are known to lie in ranges: conditions that are decided, sums that stay in range."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.ir.model import Constant, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1

_MOST_BITS = 64

Range = tuple[int, int]
"""The least and the largest number that an integer with a sign can be."""


class KnownRanges:
    """The ranges of values that have one narrower than their type; those that others are derived from are `learn`\\ t,
    and after them each instruction, in order."""

    def __init__(self) -> None:
        self._ranges: dict[Value, Range] = {}

    def learn(self, value: Value, found: Range) -> None:
        """Record that *value* is in the range *found*."""
        self._ranges[value] = found

    def follow(self, phi: Instruction) -> None:
        """Record the range of a counter that starts at no less than 0 and grows without overflow."""
        starts = [found for operand in phi.operands if not _is_more(operand, phi) and (found := self.of(operand))]
        steps = [operand for operand in phi.operands if _is_more(operand, phi)]
        if len(starts) + len(steps) < len(phi.operands) or not starts or not isinstance(phi.type, ir.IntType):
            return
        least = min(found[0] for found in starts)
        grows = all((found := self.of(_step_of(step, phi))) is not None and found[0] >= 0 for step in steps)
        if least >= 0 and grows:
            most = (1 << phi.type.width - 1) - 1 if steps else max(found[1] for found in starts)
            self._ranges[phi] = least, most

    def of(self, value: Value) -> Range | None:
        """The range of *value*, if one is known."""
        number = signed_number(value)
        return (number, number) if number is not None else self._ranges.get(value)

    def simplify(self, value: Instruction) -> Value | None:
        """What *value* must be, if its operands decide that; else its range is recorded if it has one."""
        return _select_arm(value) or _conjoin(value) or self._choose(value) or self.decide(value)

    def _choose(self, value: Instruction) -> Value | None:
        """The one of two numbers that *value*, the larger or the smaller of them, must be."""
        predicate = _CHOOSES.get(value.callee.rpartition(".")[0])
        if predicate is None:
            return None
        left, right = value.arguments
        holds = _compare(predicate, self.of(left), self.of(right))
        return None if holds is None else left if holds else right

    def decide(self, value: Instruction) -> Constant | None:
        """The constant that *value* must be, if its operands decide that; else its range is recorded if it has one."""
        if not isinstance(value.type, ir.IntType):
            return None
        if value.opcode == "icmp":
            holds = _compare(value.predicate, *map(self.of, value.operands))
            if holds is None and self._is_below_divisor(*value.operands):
                holds = _BELOW.get(value.predicate)
            return None if holds is None else constant(value.type, int(holds))
        found = self._derive(value)
        if found is None:
            return None
        learned = self._ranges.get(value, found)
        least, largest = found = max(found[0], learned[0]), min(found[1], learned[1])
        if least == largest:
            return constant(value.type, least)
        self._ranges[value] = found
        return None

    def _is_below_divisor(self, value: Value, divisor: Value) -> bool:
        """Whether *value* is a remainder by *divisor*, and not negative."""
        found, most = self.of(value), self.of(divisor)
        if not isinstance(value, Instruction) or value.opcode not in ("srem", "urem"):
            return False
        is_known = found is not None and found[0] >= 0 and most is not None and most[0] > 0
        return is_known and value.operands[1] is divisor

    def _derive(self, value: Instruction) -> Range | None:
        assert isinstance(value.type, ir.IntType)
        operation = value.callee.rpartition(".")[0] if value.opcode == "call" else value.opcode
        derive = _DERIVED.get(operation)
        known = [self.of(operand) for operand in (value.arguments if value.opcode == "call" else value.operands)]
        found = derive(*known) if derive is not None and None not in known else None
        limit = 1 << value.type.width - 1
        if found is not None and "nsw" in value.flags and found[0] < limit and -limit <= found[1]:
            return max(found[0], -limit), min(found[1], limit - 1)
        return found if found is not None and -limit <= found[0] and found[1] < limit else None


def _is_more(value: Value, phi: Instruction) -> bool:
    """Whether *value* is the sum of *phi* and something, which does not overflow."""
    if not isinstance(value, Instruction) or value.opcode != "add" or "nsw" not in value.flags:
        return False
    return any(operand is phi for operand in value.operands)


def _step_of(value: Value, phi: Instruction) -> Value:
    assert isinstance(value, Instruction)
    return value.operands[value.operands[0] is phi]


def constant(kind: ir.IntType, number: int) -> Constant:
    """The constant *number* of type *kind*."""
    bits = number % (1 << kind.width)
    return Constant(kind, ("false", "true")[bits] if kind.width == 1 else str(number), bits)


def _compare(predicate: str, left: Range | None, right: Range | None) -> bool | None:
    if left is None or right is None:
        return None
    if predicate in ("eq", "ne"):
        return predicate == "ne" if left[1] < right[0] or right[1] < left[0] else None
    if predicate.startswith("u"):
        return _compare(f"s{predicate[1:]}", left, right) if min(left[0], right[0]) >= 0 else None
    if predicate in ("sgt", "sle"):
        return _compare({"sgt": "slt", "sle": "sge"}[predicate], right, left)
    if predicate in ("slt", "sge"):
        if left[1] < right[0]:
            return predicate == "slt"
        if left[0] >= right[1]:
            return predicate == "sge"
    return None


def _shift(value: Range, by: Range) -> Range | None:
    return (value[0] >> by[0], value[1] >> by[0]) if by[0] == by[1] >= 0 else None


def _shift_left(value: Range, by: Range) -> Range | None:
    return (value[0] << by[0], value[1] << by[0]) if 0 <= by[0] == by[1] < _MOST_BITS else None


def multiply_ranges(left: Range, right: Range) -> Range:
    """The range of products."""
    products = [one * other for one in left for other in right]
    return min(products), max(products)


def _divide(value: Range, by: Range) -> Range | None:
    """A quotient of what is not negative and what is more, with a sign or without."""
    return (value[0] // by[1], value[1] // by[0]) if value[0] >= 0 and by[0] > 0 else None


def _remain(value: Range, by: Range) -> Range | None:
    return (0, min(value[1], by[1] - 1)) if value[0] >= 0 and by[0] > 0 else None


def _keep_sign(value: Range) -> Range:
    return value


def _zero_extend(value: Range) -> Range | None:
    return value if value[0] >= 0 else None


def _mix(left: Range, right: Range) -> Range | None:
    """Of bits that are combined by ``or`` or ``xor``."""
    if min(left[0], right[0]) < 0:
        return None
    return 0, (1 << max(left[1], right[1]).bit_length()) - 1


_DERIVED: dict[str, Callable[..., Range | None]] = {
    "add": lambda left, right: (left[0] + right[0], left[1] + right[1]),
    "sub": lambda left, right: (left[0] - right[1], left[1] - right[0]),
    "or": _mix,
    "xor": _mix,
    "mul": multiply_ranges,
    "sdiv": _divide,
    "udiv": _divide,
    "srem": _remain,
    "urem": _remain,
    "shl": _shift_left,
    "ashr": _shift,
    "trunc": _keep_sign,
    "sext": _keep_sign,
    "zext": _zero_extend,
    "llvm.smin": lambda left, right: (min(left[0], right[0]), min(left[1], right[1])),
    "llvm.smax": lambda left, right: (max(left[0], right[0]), max(left[1], right[1])),
}


_BELOW = {"slt": True, "ult": True, "sge": False, "uge": False}
"""What comparisons of a number with a larger one are."""

_CHOOSES = {"llvm.smax": "sge", "llvm.smin": "sle", "llvm.umax": "uge", "llvm.umin": "ule"}
"""How the first of two numbers compares with the other one where it is chosen."""


def _select_arm(value: Instruction) -> Value | None:
    """What a ``select`` must choose, if its condition is known, or both are the same number."""
    if value.opcode != "select":
        return None
    condition, taken, otherwise = value.operands
    if isinstance(condition, Constant) and condition.number is not None:
        return taken if condition.number else otherwise
    if value.type == I1 and signed_number(otherwise) == 0 and isinstance(taken, Constant) and taken.number:
        return condition
    return taken if signed_number(taken) is not None and signed_number(taken) == signed_number(otherwise) else None


def _conjoin(value: Instruction) -> Value | None:
    """False, if *value* is a conjunction with that; a sum with 0 is the other operand."""
    for number, operand in enumerate(value.operands[:2]):
        if isinstance(operand, Constant) and operand.number == 0 and len(value.operands) == 2:
            if value.opcode == "and":
                return operand
            if value.opcode == "add" or (value.opcode in ("sub", "or") and number == 1):
                return value.operands[1 - number]
    return None
