"""Numbers that are known to be small and not negative: bytes, remainders, the low bits of something."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.derived_ranges import DERIVED, numbers_of, operation_of
from hip_runtime.drivers.cpu.analyses.known_ranges import Range
from hip_runtime.drivers.cpu.ir.model import Instruction, Value

_DEEPEST = 6
"""Instructions that a number is followed through."""

_WIDEST = 16
"""Bits of the longest integers whose largest number counts as small."""


_CONVERTS = frozenset({"zext", "sext", "trunc", "freeze"})
"""What gives the number that it is given, if that fits."""


def find_most(value: Value) -> int | None:
    """A number that *value*, an integer, is not more than, and not less than 0; ``None`` if it is not known to be
    small, or may be negative."""
    found = _find_range(value, _DEEPEST)
    return found[1] if found is not None and found[0] >= 0 else None


def _find_range(value: Value, deepest: int) -> Range | None:
    """The range of *value*, if it is known to be small."""
    number = signed_number(value)
    if number is not None:
        return number, number
    if not isinstance(value, Instruction) or not isinstance(value.type, ir.IntType) or not deepest:
        return None
    derive = DERIVED.get(operation_of(value))
    if derive is None and value.opcode not in _CONVERTS:
        return None
    known = [_find_range(operand, deepest - 1) for operand in numbers_of(value)]
    found = _of_bits(value, known)
    if found is None and derive is not None and None not in known:
        found = derive(*known)
    limit = 1 << value.type.width - 1
    return found if found is not None and -limit <= found[0] and found[1] < limit else None


def _of_bits(value: Instruction, known: Sequence[Range | None]) -> Range | None:
    """The range of *value* if it keeps its operand, or some bits of a number of which no more need be *known*."""
    operation = operation_of(value)
    if operation in _CONVERTS and operation != "zext":
        return known[0]
    if operation == "zext":
        bits = value.operands[0].type.width
        is_natural = known[0] is not None and known[0][0] >= 0
        return known[0] if is_natural else (0, (1 << bits) - 1) if bits <= _WIDEST else None
    if operation == "lshr" and (by := signed_number(value.operands[1])) is not None:
        bits = value.type.width - by
        return (0, (1 << bits) - 1) if 0 <= bits <= _WIDEST else None
    if operation == "urem" and (by := signed_number(value.operands[1])) is not None:
        return (0, by - 1) if by > 0 else None
    if operation in ("and", "llvm.umin"):
        naturals = [found[1] for found in known if found is not None and found[0] >= 0]
        return (0, min(naturals)) if naturals else None
    return None


def count_low_zeros(value: Value, deepest: int = _DEEPEST) -> int:
    """How many of the lowest bits of *value*, an integer, are known to be 0."""
    number = signed_number(value)
    if number is not None:
        return (number & -number).bit_length() - 1 if number else _WIDEST
    if not isinstance(value, Instruction) or not deepest:
        return 0
    operands = value.operands[value.opcode == "select" :]
    if value.opcode == "shl":
        by = signed_number(operands[1]) or 0
        return count_low_zeros(operands[0], deepest - 1) + max(by, 0)
    choose = _LOW_ZEROS.get(value.opcode)
    return choose([count_low_zeros(operand, deepest - 1) for operand in operands]) if choose is not None else 0


_LOW_ZEROS: dict[str, Callable[[list[int]], int]] = {
    "zext": min, "sext": min, "trunc": min, "freeze": min, "select": min, "add": min, "or": min, "xor": min, "and": max,
    "mul": sum,
}  # fmt: skip
"""How many a result has, by how many its operands have."""
