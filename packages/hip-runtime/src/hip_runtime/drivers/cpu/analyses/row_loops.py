"""Loops in which each lane reads a row of its own, element after element.

A gather of one element for each lane takes as many loads as there are lanes, also of rows at a known distance. The next
iteration gathers the elements behind those, so a lane can load those of several iterations at once. That takes a loop
that all lanes leave together, of which it is known how many iterations are left, and in which nothing is written, as
loads of later iterations are made before those of earlier ones are used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.conditions import mirror, negate
from hip_runtime.drivers.cpu.analyses.effects import has_effect
from hip_runtime.drivers.cpu.analyses.known_ranges import constant
from hip_runtime.drivers.cpu.analyses.private_arrays import is_private_address
from hip_runtime.drivers.cpu.analyses.shape_rules import MAX_STRIDE, VARYING
from hip_runtime.drivers.cpu.analyses.stride_speculation import is_tested_in, speculate_strides
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.analyses.unit_stride_loops import UnitStrideLoops
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Constant, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1, I64

ROW = 4
"""Elements that a lane loads at once: of four bytes, what the shortest vector registers hold."""

_MOST_INSTRUCTIONS = 40
"""Of an iteration, as `ROW` of them are written one after another."""

_GOES_ON = {1: ("ne", "slt", "ult"), -1: ("ne", "sgt", "ugt")}
"""How the next counter, which grows by one or shrinks by one, compares with a bound where there is an iteration for
it."""

_MODULO = frozenset({"zext", "sext", "trunc", "freeze", "select"})
"""Instructions whose result need not grow by one number where their operand does, as that may wrap around."""


@dataclass(frozen=True)
class RowLoop:
    """A loop of one *block*, which goes on while *counter* is not as far as *bound*."""

    block: Block
    behind: Block
    """Where it goes in the end."""
    counter: Instruction
    bound: Value
    grows: bool
    """Whether *counter* grows by one in each iteration; it shrinks by one if not."""
    predicate: str
    """How *counter* compares with *bound* where there is another iteration; ``ne`` if the two meet in the end."""
    compares_next: bool
    """Whether it is the counter of the next iteration that is compared, and not that of this one."""
    loads: tuple[Instruction, ...]
    """Those of a row for each lane."""


class _ExactSteps(UnitStrideLoops):
    """By how much addresses grow in each iteration, whatever wraps around."""

    def __init__(self, shapes: VectorShapes, size_of: SizeOf) -> None:
        super().__init__(shapes, size_of)
        self._choices = {
            select: chosen
            for select, chosen in self._choices.items()
            if is_tested_in(shapes.homes[select], select, shapes)
        }

    def _find_step(self, value: Instruction, loop: frozenset[Block]) -> int | None:
        steps = [self.step(operand, loop) for operand in value.operands] if value.opcode != "phi" else []
        if value.opcode in _MODULO:
            return 0 if all(step == 0 for step in steps) else None
        if value.opcode == "getelementptr":
            indices = zip(value.operands[1:], steps[1:], strict=True)
            if any(step != 0 and index.type != I64 for index, step in indices):
                return None
        return super()._find_step(value, loop)


def find_row_loops(shapes: VectorShapes, size_of: SizeOf) -> Iterator[RowLoop]:
    """Such loops of a function with *shapes*, in gangs of which all lanes are active."""
    steps = _ExactSteps(shapes, size_of)
    speculated = speculate_strides(shapes)
    for block in shapes.order.blocks:
        loops = shapes.order.loops[block]
        if not loops or loops[-1] != {block} or block in shapes.masked or block in shapes.divergent:
            continue
        if len(block.instructions) > _MOST_INSTRUCTIONS or any(map(_has_order, block.instructions)):
            continue
        loads = tuple(
            value for value in block.instructions
            if _is_of_row(value, block, shapes, size_of, steps) and value.operands[0] not in speculated
        )  # fmt: skip
        found = _find_bound(block, loads, shapes, steps) if loads else None
        if found is not None:
            yield found


def _has_order(value: Instruction) -> bool:
    """Whether loads must not be moved across *value*, or it is of one place only."""
    return has_effect(value) or bool(value.meets_tables) or value.opcode == "alloca"


def _is_of_row(
    value: Instruction, block: Block, shapes: VectorShapes, size_of: SizeOf, steps: UnitStrideLoops
) -> bool:  # fmt: skip
    """Whether *value* loads an element of a row of its own for each lane, and in each iteration the next one."""
    if value.opcode != "load" or not _is_number(value.type) or is_private_address(value.operands[0]):
        return False
    pointer, nbytes = value.operands[0], size_of(value.type)
    shape = shapes.of(pointer, block)
    is_far = shape is VARYING or abs(shape) > MAX_STRIDE * nbytes
    return is_far and steps.step(pointer, frozenset({block})) == nbytes


def _is_number(kind: ir.Type) -> bool:
    if isinstance(kind, ir.IntType):
        return kind.width in (8, 16, 32, 64)
    return isinstance(kind, ir.FloatType | ir.DoubleType)


def _find_bound(
    block: Block, loads: tuple[Instruction, ...], shapes: VectorShapes, steps: UnitStrideLoops
) -> RowLoop | None:
    """The loop of *block*, which makes *loads*, if it is known how many iterations are left."""
    end = block.terminator
    condition = end.operands[0] if end.opcode == "br" and end.operands else None
    if not isinstance(condition, Instruction) or condition.opcode != "icmp" or condition not in block.instructions:
        return None
    if len(set(end.targets)) != 2:
        return None
    behind = next(target for target in end.targets if target is not block)
    counted, bound = condition.operands
    predicate = condition.predicate
    if end.targets[0] is behind:
        predicate = negate(predicate)
    if not isinstance(counted, Instruction) or shapes.homes.get(counted) is not block:
        counted, bound, predicate = bound, counted, mirror(predicate)
    counter, compares_next = _find_counter(counted, block, shapes)
    step = steps.step(counter, frozenset({block})) if counter is not None else None
    if counter is None or step not in (1, -1) or (isinstance(bound, Instruction) and shapes.homes[bound] is block):
        return None
    predicate, bound = _exclude_bound(predicate, bound)
    if shapes.of(bound, block) != 0 or predicate not in _GOES_ON[step]:
        return None
    return RowLoop(block, behind, counter, bound, step == 1, predicate, compares_next, loads)


def _exclude_bound(predicate: str, bound: Value) -> tuple[str, Value]:
    """The same comparison with a constant that the number itself must not be, where that is another one: LLVM writes
    ``j > 1`` as the opposite of ``j < 2``."""
    kind = bound.type
    if predicate[1:] in ("ge", "le") and isinstance(bound, Constant) and isinstance(kind, ir.IntType):
        below = predicate[1:] == "ge"
        sign = 1 << kind.width - 1 if predicate[0] == "s" else 0
        if bound.number is not None and bound.number != (sign if below else (sign or 1 << kind.width) - 1):
            number = bound.number + (-1 if below else 1)
            return predicate[0] + ("gt" if below else "lt"), constant(kind, number & (1 << kind.width) - 1)
    return predicate, bound


def _find_counter(counted: Value, block: Block, shapes: VectorShapes) -> tuple[Instruction | None, bool]:
    """The counter that *counted* is, or is in the next iteration, if it is the same in all lanes; and whether it is in
    the next one."""
    for phi in block.phis:
        if not isinstance(phi.type, ir.IntType) or phi.type == I1 or shapes.of(phi, block) != 0:
            continue
        following = next(value for value, source in zip(phi.operands, phi.targets, strict=True) if source is block)
        if counted in (phi, following):
            return phi, counted is following
    return None, False
