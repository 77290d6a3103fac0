"""Clamps: indices of neighbours that are held within limits, as by ``max(x - 1, 0)`` and ``min(x + 1, width - 1)``,
that begin anew at an edge, as by ``x + 1 if x < width - 1 else 0``, or that are reflected there, as by ``abs(x - 1)``.

In most gangs no lane is at a limit, and what is clamped is consecutive there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.coherent_divisions import REPEATED
from hip_runtime.drivers.cpu.analyses.conditions import mirror, negate
from hip_runtime.drivers.cpu.analyses.known_ranges import constant
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING, Shape
from hip_runtime.drivers.cpu.analyses.stride_speculation import match_index_select
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1

_LOWER = frozenset({"smax", "umax", "usub.sat"})
_UPPER = frozenset({"smin", "umin"})
_ABSOLUTE = "abs"
_LEAST_JUMP = 64
"""The least distance that is far away, in lanes: of fewer, gangs with none at the edge would be few."""


@dataclass(frozen=True)
class Clamp:
    """*value* is *index*, which grows by *stride* from lane to lane, held above or below *limit*."""

    value: Instruction
    index: Value
    limit: Value
    stride: int

    @property
    def is_upper(self) -> bool:
        """Whether *limit* is the most that *value* can be."""
        return _name(self.value) in _UPPER

    @property
    def sign(self) -> str:
        """How numbers are compared: ``s`` with their sign, ``u`` without."""
        return _name(self.value)[0]

    @property
    def subtracts(self) -> bool:
        """Whether *value* is what *index* is above *limit*."""
        return _name(self.value) == "usub.sat"


@dataclass(frozen=True)
class Wrap(Clamp):
    """A clamp that is a ``select``: *value* is *index* but in lanes at an edge, where it is *limit*. At an edge is a
    lane whose *compared*, which grows by *step* from lane to lane, is to *bound* as *predicate* says. What is added to
    an index may be one, too, whose *stride* is 0."""

    compared: Value
    bound: Value
    predicate: str
    step: int


@dataclass(frozen=True)
class Reflection(Wrap):
    """A wrap whose lanes at an edge have indices that differ, too, of which no *limit* tells."""


def find_clamps(block: Block, shapes: VectorShapes) -> list[Clamp]:
    """The clamps of *block* that differ from lane to lane: of numbers that grow by the same from lane to lane, of what
    such clamps give, or of sums with that."""
    found: list[Clamp] = []
    strides: dict[Value, int] = {}
    """Of what differs from lane to lane at an edge alone."""

    def stride_of(value: Value) -> Shape:
        return strides[value] if value in strides else shapes.of(value, block)

    for value in block.instructions:
        if shapes.at_definition(value) is not VARYING:
            continue
        if (clamp := as_clamp(value, stride_of)) is not None:
            found.append(clamp)
            strides[value] = clamp.stride
        elif value.opcode in ("add", "sub") and not strides.keys().isdisjoint(value.operands):
            one, other = map(stride_of, value.operands)
            if one is not VARYING and other is not VARYING:
                strides[value] = one + other if value.opcode == "add" else one - other
    return found


def as_clamp(value: Instruction, stride_of: Callable[[Value], Shape]) -> Clamp | None:
    """*value* as a clamp, if it is one of a number that grows from lane to lane, by what *stride_of* tells."""
    if not may_clamp(value):
        return None
    if value.opcode == "select":
        return _as_wrap(value, stride_of) or _as_reflection(value, stride_of)
    name = _name(value)
    if name == _ABSOLUTE:
        return _as_absolute(value, stride_of)
    one, other = value.operands[:2]
    for index, limit in [(one, other)] if name == "usub.sat" else [(one, other), (other, one)]:
        stride = stride_of(index)
        if stride and stride_of(limit) == 0:
            return Clamp(value, index, limit, stride)
    return None


def _as_wrap(value: Instruction, stride_of: Callable[[Value], Shape]) -> Wrap | None:
    """A ``select`` of a number that grows from lane to lane and one that is the same in all, by a comparison of two
    such, as a clamp; ``None`` if it is none, or lanes that are equal to the bound alone would not be at the edge. Two
    numbers that are added are one if the other leads far away; not what Python adds to negative indices, which nearly
    never are."""
    condition, taken, otherwise = value.operands
    if not isinstance(condition, Instruction) or condition.opcode != "icmp":
        return None
    if not isinstance(condition.operands[0].type, ir.IntType):
        return None
    compared, bound = condition.operands
    predicate = condition.predicate
    if stride_of(bound):
        compared, bound, predicate = bound, compared, mirror(predicate)
    at_edge = stride_of(taken) == 0 and not (stride_of(otherwise) == 0 and _goes_on(taken, otherwise))
    index, limit = (otherwise, taken) if at_edge else (taken, otherwise)
    predicate = predicate if at_edge else negate(predicate)
    step, stride = stride_of(compared), stride_of(index)
    if not step or stride is VARYING or stride_of(bound) != 0 or stride_of(limit) != 0 or predicate == "ne":
        return None
    if not stride and (not _goes_on(index, limit) or match_index_select(value) is not None):
        return None
    return Wrap(value, index, limit, stride, compared, bound, predicate, step)


def _as_reflection(value: Instruction, stride_of: Callable[[Value], Shape]) -> Reflection | None:
    """A ``select`` of a number that grows from lane to lane, if it is to a bound as nearly all are, and else of one
    that is computed from what is compared, or grows the other way, as a clamp; ``None`` if it is none."""
    condition, taken, otherwise = value.operands
    if not isinstance(condition, Instruction) or condition.opcode != "icmp" or condition.predicate in ("eq", "ne"):
        return None
    compared, bound = condition.operands
    predicate = condition.predicate
    if stride_of(bound):
        compared, bound, predicate = bound, compared, mirror(predicate)
    step = stride_of(compared)
    if not step or stride_of(bound) != 0 or not isinstance(compared.type, ir.IntType):
        return None
    for index, other, at_edge in ((taken, otherwise, negate(predicate)), (otherwise, taken, predicate)):
        is_reflected = stride_of(other) == -step or _is_computed_from(compared, other)
        if stride_of(index) == step and is_reflected:
            return Reflection(value, index, other, step, compared, bound, at_edge, step)
    return None


def _is_computed_from(index: Value, other: Value) -> bool:
    """Whether *other* is *index*, or what is left of a number without it, plus a number."""
    return isinstance(other, Instruction) and other.opcode in ("add", "sub", "xor") and index in other.operands


def _as_absolute(value: Instruction, stride_of: Callable[[Value], Shape]) -> Reflection | None:
    index = value.operands[0]
    stride = stride_of(index)
    if not stride:
        return None
    return Reflection(value, index, index, stride, index, constant(index.type, 0), "slt", stride)


def _goes_on(near: Value, far: Value) -> bool:
    """Whether an index to which *near* is added goes on, and one to which *far* is added returns, or goes on, at an
    edge: LLVM makes two constants of ``(x + 1) % 500``, and none or one of what only the launch knows of ``x + 1`` that
    is reduced by the width if that is too much."""
    steps, jump = signed_number(near), signed_number(far)
    if steps is not None and jump is not None:
        return abs(steps) < _LEAST_JUMP <= abs(jump)
    return jump is None and _is_mostly_zero(near)


def _is_mostly_zero(value: Value) -> bool:
    """Whether *value* is 0, or a choice between that and something else, or minus such a choice."""
    if isinstance(value, Instruction) and value.opcode == "sub" and signed_number(value.operands[0]) == 0:
        value = value.operands[1]
    arms = value.operands[1:] if isinstance(value, Instruction) and value.opcode == "select" else [value]
    return any(signed_number(arm) == 0 for arm in arms)


class InsideShapes(VectorShapes):
    """The shapes in gangs of which no lane is at a limit, as in most, for estimates of costs."""

    def infer_from(self, instruction: Instruction, block: Block, shapes: Sequence[Shape | str]) -> Shape:
        """As the super class does, but the result of a clamp grows from lane to lane as its index does."""
        clamp = as_clamp(instruction, lambda operand: self.of(operand, block)) if may_clamp(instruction) else None
        return super().infer_from(instruction, block, shapes) if clamp is None else clamp.stride

    def never_wraps(self, value: Value, block: Block) -> bool:
        """As the super class finds, or what is clamped, and so is no index that wraps."""
        return (isinstance(value, Instruction) and may_clamp(value)) or super().never_wraps(value, block)


def has_clamps(function: Function) -> bool:
    """Whether *function* has what may be a clamp."""
    return any(map(may_clamp, function.instructions()))


def may_clamp(value: Instruction) -> bool:
    """Whether *value* is a clamp if its operands are as those of one."""
    is_integer = isinstance(value.type, ir.IntType) and value.type != I1
    return is_integer and (value.opcode == "select" or bool(_name(value)))


def addresses(value: Instruction, behind: Sequence[Instruction]) -> bool:
    """Whether an access to memory among the instructions *behind*, which are in order, depends on *value* by its
    address."""
    derived = _derive(value, behind)
    return any(user.opcode in ("load", "store") and user.address in derived for user in behind)


def is_compared(value: Instruction, behind: Sequence[Instruction]) -> bool:
    """Whether a comparison among the instructions *behind*, which are in order, depends on *value*, as where it is the
    start or the end of a loop."""
    derived = _derive(value, behind)
    return any(user.opcode == "icmp" and not derived.isdisjoint(user.operands) for user in behind)


def _derive(value: Instruction, behind: Sequence[Instruction]) -> set[Value]:
    """*value*, and what is computed from it by the instructions *behind*."""
    derived: set[Value] = {value}
    for user in behind:
        if (user.opcode in _DERIVING or _name(user)) and not derived.isdisjoint(user.operands):
            derived.add(user)
    return derived


_DERIVING: Collection[str] = REPEATED | {"getelementptr", "phi"}


def _name(value: Instruction) -> str:
    """What LLVM calls a minimum, a maximum or the like; empty for other instructions."""
    if not value.callee.startswith("llvm."):
        return ""
    name = value.callee.removeprefix("llvm.").rpartition(".")[0]
    return name if name in _LOWER | _UPPER | {_ABSOLUTE} else ""
