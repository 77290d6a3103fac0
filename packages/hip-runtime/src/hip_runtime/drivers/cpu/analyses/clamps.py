"""Clamps: indices of neighbours that are held within limits, as by ``max(x - 1, 0)`` and ``min(x + 1, width - 1)``.

In most gangs no lane is at a limit, and what is clamped is consecutive there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.coherent_divisions import REPEATED
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING, Shape
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Function, Instruction, Value

_LOWER = frozenset({"smax", "umax", "usub.sat"})
_UPPER = frozenset({"smin", "umin"})


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


def find_clamps(block: Block, shapes: VectorShapes) -> list[Clamp]:
    """The clamps of *block* that differ from lane to lane: of numbers that grow by the same from lane to lane, or of
    what such clamps give."""
    found: dict[Value, Clamp] = {}

    def stride_of(value: Value) -> Shape:
        clamp = found.get(value)
        return shapes.of(value, block) if clamp is None else clamp.stride

    for value in block.instructions:
        if shapes.at_definition(value) is VARYING and (clamp := as_clamp(value, stride_of)) is not None:
            found[value] = clamp
    return list(found.values())


def as_clamp(value: Instruction, stride_of: Callable[[Value], Shape]) -> Clamp | None:
    """*value* as a clamp, if it is one of a number that grows from lane to lane, by what *stride_of* tells."""
    name = _name(value)
    if not name or not isinstance(value.type, ir.IntType):
        return None
    one, other = value.operands[:2]
    for index, limit in [(one, other)] if name == "usub.sat" else [(one, other), (other, one)]:
        stride = stride_of(index)
        if stride and stride_of(limit) == 0:
            return Clamp(value, index, limit, stride)
    return None


class InsideShapes(VectorShapes):
    """The shapes in gangs of which no lane is at a limit, as in most, for estimates of costs."""

    def infer_from(self, instruction: Instruction, block: Block, shapes: Sequence[Shape | str]) -> Shape:
        """As the super class does, but the result of a clamp grows from lane to lane as its index does."""
        name = _name(instruction)
        if name and isinstance(instruction.type, ir.IntType):
            index, limit = shapes[:2] if shapes[1] == 0 or name == "usub.sat" else shapes[1::-1]
            if isinstance(index, int) and limit == 0:
                return index
        return super().infer_from(instruction, block, shapes)

    def never_wraps(self, value: Value, block: Block) -> bool:
        """As the super class finds, or what is clamped, and so is no index that wraps."""
        return (isinstance(value, Instruction) and bool(_name(value))) or super().never_wraps(value, block)


def has_clamps(function: Function) -> bool:
    """Whether *function* has a clamp of integers."""
    return any(_name(value) for value in function.instructions())


def addresses(value: Instruction, behind: Sequence[Instruction]) -> bool:
    """Whether an access to memory among the instructions *behind*, which are in order, depends on *value* by its
    address."""
    derived = _derive(value, behind)
    return any(user.opcode in ("load", "store") and user.operands[-1] in derived for user in behind)


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
    return name if name in _LOWER | _UPPER else ""
