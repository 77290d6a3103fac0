"""Conditions as comparisons of numbers, taken apart."""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.ir.model import Constant, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1

_INVERSE = {"slt": "sge", "sge": "slt", "sgt": "sle", "sle": "sgt", "ult": "uge", "uge": "ult", "ugt": "ule",
            "ule": "ugt"}  # fmt: skip


def split_condition(condition: Value, wanted: bool) -> list[Value]:
    """Two conditions of which both have to be *wanted* for *condition* to be; empty where there are none. Where the
    first is not, the second may be poison."""
    if not isinstance(condition, Instruction):
        return []
    if condition.opcode == ("and" if wanted else "or"):
        return condition.operands
    if condition.opcode == "select" and condition.type == I1:
        first, taken, otherwise = condition.operands
        if wanted and _is_constant(otherwise, 0):
            return [first, taken]
        if not wanted and _is_constant(taken, 1):
            return [first, otherwise]
    return []


def _is_constant(value: Value, number: int) -> bool:
    return isinstance(value, Constant) and value.number == number


def read_order(condition: Value, wanted: bool) -> str:
    """The predicate that tells whether *condition* is *wanted*, where it says which of two integers is less than the
    other; else empty."""
    if not isinstance(condition, Instruction) or condition.opcode != "icmp":
        return ""
    if not isinstance(condition.operands[0].type, ir.IntType) or condition.predicate not in _INVERSE:
        return ""
    return condition.predicate if wanted else _INVERSE[condition.predicate]
