"""In what range an integer with a sign is, by those of what it is computed from."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hip_runtime.drivers.cpu.analyses.known_ranges import Range, multiply_ranges
from hip_runtime.drivers.cpu.ir.model import Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I32, I64


def operation_of(value: Instruction) -> str:
    """What *value* does: an opcode, or the name of an intrinsic without its types."""
    return value.callee.rpartition(".")[0] if value.opcode == "call" else value.opcode


def numbers_of(value: Instruction) -> Sequence[Value]:
    """The operands of *value* that its result is computed from."""
    if value.opcode == "call":
        return value.arguments[:1] if operation_of(value) == "llvm.abs" else value.arguments
    return value.operands[1:] if value.opcode == "select" else value.operands


def _shift_left(value: Range, by: Range) -> Range | None:
    return (value[0] << by[0], value[1] << by[0]) if 0 <= by[0] == by[1] < I32.width else None


def _shift_right(value: Range, by: Range) -> Range | None:
    return (value[0] >> by[0], value[1] >> by[0]) if 0 <= by[0] == by[1] < I64.width else None


def _shift_in_zeros(value: Range, by: Range) -> Range | None:
    return _shift_right(value, by) if value[0] >= 0 and by[1] < I32.width else None


def _divide(value: Range, by: Range) -> Range | None:
    """A quotient with a sign, by a number; what is rounded to 0 is no larger."""
    if by[0] != by[1] or by[0] <= 0:
        return None
    return min(value[0], 0), max(value[1], 0)


def _divide_naturals(value: Range, by: Range) -> Range | None:
    return _divide(value, by) if value[0] >= 0 else None


def _remain(value: Range, by: Range) -> Range | None:
    if by[0] != by[1] or by[0] <= 0:
        return None
    return max(min(value[0], 0), 1 - by[0]), min(max(value[1], 0), by[0] - 1)


def _remain_natural(value: Range, by: Range) -> Range | None:
    return _remain(value, by) if value[0] >= 0 else None


def _mix(left: Range, right: Range) -> Range:
    """Of bits that are combined: as many as the longer one has, and a sign if one has a sign."""
    bits = max(max(abs(least), abs(most + (most < 0))).bit_length() for least, most in (left, right))
    is_natural = left[0] >= 0 and right[0] >= 0
    return 0 if is_natural else -(1 << bits), (1 << bits) - 1


def _mask(left: Range, right: Range) -> Range:
    """Of bits that both have."""
    naturals = [found[1] for found in (left, right) if found[0] >= 0]
    return (0, min(naturals)) if naturals else _mix(left, right)


def _unite(left: Range, right: Range) -> Range:
    return min(left[0], right[0]), max(left[1], right[1])


Derive = Callable[..., "Range | None"]

DERIVED: dict[str, Derive] = {
    "add": lambda left, right: (left[0] + right[0], left[1] + right[1]),
    "sub": lambda left, right: (left[0] - right[1], left[1] - right[0]),
    "mul": multiply_ranges,
    "shl": _shift_left,
    "ashr": _shift_right,
    "lshr": _shift_in_zeros,
    "and": _mask,
    "or": _mix,
    "xor": _mix,
    "sdiv": _divide,
    "udiv": _divide_naturals,
    "srem": _remain,
    "urem": _remain_natural,
    "select": _unite,
    "llvm.smax": lambda left, right: (max(left[0], right[0]), max(left[1], right[1])),
    "llvm.smin": lambda left, right: (min(left[0], right[0]), min(left[1], right[1])),
    "llvm.umax": lambda left, right: _unite(left, right) if min(left[0], right[0]) >= 0 else None,
    "llvm.umin": lambda left, right: _unite(left, right) if min(left[0], right[0]) >= 0 else None,
    "llvm.abs": lambda value: (0, max(-value[0], value[1])),
}
"""The range of a result, from those of the operands."""
