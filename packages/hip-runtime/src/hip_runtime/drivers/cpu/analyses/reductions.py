"""Reductions: values that a loop carries and that it only adds to, so that the order of its iterations does not matter.

A value that the loop carries and also uses otherwise is a recurrence: each iteration has to wait for the one before it,
as the steps of an integration in time do, whatever the flags of its operations allow.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value

_REORDERING = frozenset({"fast", "reassoc"})
_FLOAT_KINDS = {"fadd": "add", "fsub": "add", "fmul": "mul"}
_INTEGER_KINDS = {"add": "add", "sub": "add", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
_EXTREMES = tuple(
    f"llvm.{name}." for name in ("minnum", "maxnum", "minimum", "maximum", "smin", "smax", "umin", "umax")
)
_PRODUCT_SUMS = ("llvm.fma.", "llvm.fmuladd.")
_SELF_ORDERED = ("sub", "fsub")
"""Operations that reduce into their first operand only."""


def is_reduction(phi: Instruction, loop: frozenset[Block], shapes: VectorShapes) -> bool:
    """Whether *phi*, in the header of *loop*, is reduced: by one kind of associative operation, with a single use of
    each intermediate value."""
    following = [value for value, source in zip(phi.operands, phi.targets, strict=True) if source in loop]
    if len(following) != 1:
        return False
    kinds: set[str] = set()
    value: Instruction = phi
    while True:
        users = _users(value, loop, shapes)
        if value is following[0]:  # the phi is the only other one that may use the last value
            return users == [phi] and len(kinds) == 1
        chosen = next((user for user in users if user.opcode == "select"), None)
        others = [user for user in users if user is not chosen]
        if len(others) != 1:
            return False
        if chosen is not None and _is_extreme(chosen, others[0]):
            kind = "extreme"
        elif chosen is None or _is_skipped(chosen, others[0], value):
            kind = _kind(others[0], value)
            if chosen is not None and _users(others[0], loop, shapes) != [chosen]:
                return False
        else:
            return False
        if not kind:
            return False
        kinds.add(kind)
        value = chosen or others[0]


def _users(value: Value, loop: frozenset[Block], shapes: VectorShapes) -> list[Instruction]:
    """The instructions in *loop* that use *value*, each as often as it does."""
    return [
        user for user, home in shapes.homes.items() if home in loop for operand in user.operands if operand is value
    ]


def _is_extreme(chosen: Instruction, comparison: Instruction) -> bool:
    """Whether *chosen* is one of the two values that *comparison* compares: a minimum or a maximum."""
    condition, *arms = chosen.operands
    return comparison.opcode in ("icmp", "fcmp") and comparison is condition and set(arms) == set(comparison.operands)


def _is_skipped(chosen: Instruction, operation: Instruction, value: Instruction) -> bool:
    """Whether *chosen* is the result of *operation* in some iterations and *value* in the others."""
    return {*chosen.operands[1:]} == {operation, value}


def _kind(user: Instruction, value: Instruction) -> str:
    """What kind of reduction *user*, which uses *value* once, makes of it; empty if none."""
    if isinstance(user.type, ir.IntType):
        kind = _INTEGER_KINDS.get(user.opcode, "")
    elif _REORDERING.intersection(user.flags):
        kind = _FLOAT_KINDS.get(user.opcode, "")
        if user.callee.startswith(_PRODUCT_SUMS) and user.arguments[-1] is value:
            kind = "add"
    else:
        kind = ""
    if user.callee.startswith(_EXTREMES):
        return user.callee.rsplit(".", 1)[0]
    if user.opcode in _SELF_ORDERED and user.operands[0] is not value:
        return ""
    return kind
