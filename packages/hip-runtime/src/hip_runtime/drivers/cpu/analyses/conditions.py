"""Branch conditions taken apart into the integer comparisons that they consist of."""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.ir.model import Constant, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1

_INVERSE = {"slt": "sge", "sge": "slt", "sgt": "sle", "sle": "sgt", "ult": "uge", "uge": "ult", "ugt": "ule",
            "ule": "ugt"}  # fmt: skip
_MIRROR = str.maketrans("lg", "gl")


def negate(predicate: str) -> str:
    """The predicate of ``icmp`` that holds exactly where *predicate* does not."""
    return _INVERSE.get(predicate) or {"eq": "ne", "ne": "eq"}[predicate]


def mirror(predicate: str) -> str:
    """The predicate of ``icmp`` for operands that are exchanged."""
    return predicate.translate(_MIRROR)


def split_condition(condition: Value, expected: bool) -> list[Value]:
    """Two conditions that are both *expected* exactly if *condition* is; empty if it is not such a conjunction. The
    second may be poison if the first is not *expected*."""
    if not isinstance(condition, Instruction):
        return []
    if condition.opcode == ("and" if expected else "or"):
        return condition.operands
    if condition.opcode == "select" and condition.type == I1:
        first, taken, otherwise = condition.operands
        if expected and _is_constant(otherwise, 0):
            return [first, taken]
        if not expected and _is_constant(taken, 1):
            return [first, otherwise]
    return []


def _is_constant(value: Value, number: int) -> bool:
    return isinstance(value, Constant) and value.number == number


def read_order(condition: Value, expected: bool) -> str:
    """The predicate under which *condition*, an integer ordering, is *expected*; empty for any other condition."""
    if not isinstance(condition, Instruction) or condition.opcode != "icmp":
        return ""
    if not isinstance(condition.operands[0].type, ir.IntType) or condition.predicate not in _INVERSE:
        return ""
    return condition.predicate if expected else _INVERSE[condition.predicate]


def is_difference(condition: Instruction, expected: bool) -> bool:
    """Whether *condition* compares integers and is *expected* exactly if they differ."""
    return condition.predicate == ("ne" if expected else "eq") and isinstance(condition.operands[0].type, ir.IntType)
