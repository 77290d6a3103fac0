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
_OF_EXTREMES = frozenset({"nnan", "nsz"})
_FLAGGED = ("llvm.minnum.", "llvm.maxnum.")
"""Minima and maxima of floats that can be reordered with these flags only."""

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
        chosen = next((user for user in users if user.opcode == "select" or _is_join(user, loop)), None)
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
    if comparison is not condition or set(arms) != set(comparison.operands):
        return False
    return comparison.opcode == "icmp" or (comparison.opcode == "fcmp" and _may_reorder_extremes(chosen))


def _may_reorder_extremes(chosen: Instruction) -> bool:
    """Whether it is one to *chosen* which of two zeros it is, and what becomes of NaN; these depend on the order."""
    return "fast" in chosen.flags or _OF_EXTREMES.issubset(chosen.flags)


def _is_skipped(chosen: Instruction, operation: Instruction, value: Instruction) -> bool:
    """Whether *chosen* is the result of *operation* in some iterations and *value* in the others."""
    arms = chosen.operands if chosen.opcode == "phi" else chosen.operands[1:]
    return {*arms} == {operation, value}


def _is_join(value: Instruction, loop: frozenset[Block]) -> bool:
    """Whether *value* chooses by how *loop* got there in the same iteration."""
    return value.opcode == "phi" and all(source in loop for source in value.targets)


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
    if user.callee.startswith(_FLAGGED) and not _may_reorder_extremes(user):
        return ""
    if user.callee.startswith(_EXTREMES):
        return user.callee.rsplit(".", 1)[0]
    if user.opcode in _SELF_ORDERED and user.operands[0] is not value:
        return ""
    return kind
