"""Operators of `cuda.compute`: its own kinds, and functions of Python."""

from __future__ import annotations

import operator
from enum import IntEnum
from typing import Any

from numba_hip.errors import AlgorithmError
from numba_hip_cuda.compute.unavailable import RawOp as RawOp


class OpKind(IntEnum):
    """Operators that need no function."""

    STATELESS = 0
    STATEFUL = 1
    PLUS = 2
    MINUS = 3
    MULTIPLIES = 4
    DIVIDES = 5
    MODULUS = 6
    EQUAL_TO = 7
    NOT_EQUAL_TO = 8
    GREATER = 9
    LESS = 10
    GREATER_EQUAL = 11
    LESS_EQUAL = 12
    LOGICAL_AND = 13
    LOGICAL_OR = 14
    LOGICAL_NOT = 15
    BIT_AND = 16
    BIT_OR = 17
    BIT_XOR = 18
    BIT_NOT = 19
    IDENTITY = 20
    NEGATE = 21
    MINIMUM = 22
    MAXIMUM = 23


FUNCTIONS: dict[OpKind, Any] = {
    OpKind.PLUS: operator.add,
    OpKind.MINUS: operator.sub,
    OpKind.MULTIPLIES: operator.mul,
    OpKind.DIVIDES: operator.truediv,
    OpKind.MODULUS: operator.mod,
    OpKind.EQUAL_TO: operator.eq,
    OpKind.NOT_EQUAL_TO: operator.ne,
    OpKind.GREATER: operator.gt,
    OpKind.LESS: operator.lt,
    OpKind.GREATER_EQUAL: operator.ge,
    OpKind.LESS_EQUAL: operator.le,
    OpKind.LOGICAL_AND: lambda a, b: bool(a) and bool(b),
    OpKind.LOGICAL_OR: lambda a, b: bool(a) or bool(b),
    OpKind.LOGICAL_NOT: lambda a: not a,
    OpKind.BIT_AND: operator.and_,
    OpKind.BIT_OR: operator.or_,
    OpKind.BIT_XOR: operator.xor,
    OpKind.BIT_NOT: operator.invert,
    OpKind.IDENTITY: lambda a: a,
    OpKind.NEGATE: operator.neg,
    OpKind.MINIMUM: min,
    OpKind.MAXIMUM: max,
}


def function_of(op: Any, argument: str) -> Any:
    """The function that *op*, which a program passed as *argument*, stands for. Raises `AlgorithmError` for a kind
    that is no operator, and for what cannot be called."""
    if isinstance(op, OpKind):
        if op not in FUNCTIONS:
            raise AlgorithmError(f"{argument} is OpKind.{op.name}, which names no operator: pass the function itself")
        return FUNCTIONS[op]
    if not callable(op):
        raise AlgorithmError(f"{argument} is {op!r}: pass a function, or a member of OpKind")
    return op
