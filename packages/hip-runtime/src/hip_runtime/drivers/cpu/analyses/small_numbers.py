"""Numbers that are known to be small and not negative: bytes, remainders, the low bits of something."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.ir.model import Instruction, Value

_DEEPEST = 6
"""Instructions that a number is followed through."""

_WIDEST = 16
"""Bits of the longest integers whose largest number counts as small."""


def find_most(value: Value, deepest: int = _DEEPEST) -> int | None:
    """A number that *value*, an integer, is not more than, and not less than 0; ``None`` if it is not known to be
    small, or may be negative."""
    number = signed_number(value)
    if number is not None:
        return number if number >= 0 else None
    if not isinstance(value, Instruction) or not isinstance(value.type, ir.IntType) or not deepest:
        return None
    if value.opcode == "zext":
        bits = value.operands[0].type.width
        known = find_most(value.operands[0], deepest - 1)
        return known if known is not None else (1 << bits) - 1 if bits <= _WIDEST else None
    if value.opcode == "lshr" and (by := signed_number(value.operands[1])) is not None:
        left = value.type.width - by
        return (1 << left) - 1 if 0 <= left <= _WIDEST else find_most(value.operands[0], deepest - 1)
    is_call = value.opcode == "call"
    derive = _DERIVED.get(value.callee.rpartition(".")[0] if is_call else value.opcode)
    if derive is None:
        return None
    operands = value.arguments if is_call else value.operands[value.opcode == "select" :]
    found = derive([find_most(operand, deepest - 1) for operand in operands])
    return found if found is not None and found < 1 << value.type.width - 1 else None


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

Most = Sequence["int | None"]


def _if_known(derive: Callable[..., int | None]) -> Callable[[Most], int | None]:
    """*derive*, of operands that are all known."""
    return lambda most: None if None in most else derive(*most)


def _least_known(most: Most) -> int | None:
    return min((number for number in most if number is not None), default=None)


def _remain(most: Most) -> int | None:
    """Of a remainder by a number; what it is the remainder of has no sign, or is not negative."""
    return most[1] - 1 if most[1] else None


_DERIVED: dict[str, Callable[[Most], int | None]] = {
    "and": _least_known,
    "or": _if_known(lambda one, other: (1 << max(one, other).bit_length()) - 1),
    "xor": _if_known(lambda one, other: (1 << max(one, other).bit_length()) - 1),
    "add": _if_known(lambda one, other: one + other),
    "mul": _if_known(lambda one, other: one * other),
    "shl": _if_known(lambda number, by: number << min(by, _WIDEST)),
    "lshr": _if_known(lambda number, by: number),
    "ashr": _if_known(lambda number, by: number),
    "udiv": _if_known(lambda number, by: number),
    "sdiv": _if_known(lambda number, by: number),
    "urem": _remain,
    "srem": lambda most: _remain(most) if most[0] is not None else None,
    "select": _if_known(max),
    "sext": _if_known(lambda number: number),
    "trunc": _if_known(lambda number: number),
    "freeze": _if_known(lambda number: number),
    "llvm.umin": _least_known,
    "llvm.smin": _if_known(min),
    "llvm.umax": _if_known(max),
    "llvm.smax": _if_known(max),
}
"""What a result is not more than, by what its operands are not."""
