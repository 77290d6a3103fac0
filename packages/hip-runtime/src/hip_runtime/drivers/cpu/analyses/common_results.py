"""What all lanes of a gang compute alike from a few numbers, as the sine of an angle that a row of an array has.

The next gang of the row computes the same once more, as what the row has is loaded from memory that a store of this one
may have changed. So what takes long is worth to be kept with the numbers that it was computed from.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.uniformity import is_arithmetic
from hip_runtime.drivers.cpu.analyses.users import Users
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.keywords import BINARY, CASTS
from hip_runtime.drivers.cpu.ir.model import Block, Constant, Instruction

_LEAST_COST = 24
"""Instructions that take clearly longer than to compare some numbers with those of the last time, and to load what
came of them."""

_COSTS = {"fdiv": 8, "frem": 16, "llvm.sqrt.": 8}
_CALL_COST = 24
"""Of functions of the mathematical library that are not inlined."""

_MOST_NUMBERS = 4
"""The most numbers that something is computed from, and the most that are computed."""

_FLOATS = (ir.HalfType, ir.FloatType, ir.DoubleType)
_PURE = BINARY | CASTS | {"fneg", "icmp", "fcmp", "select"}


@dataclass(frozen=True)
class CommonResults:
    """*instructions* of a block that compute *results*, which are used elsewhere, from the values *given* and what
    does not change during a launch."""

    instructions: tuple[Instruction, ...]
    given: tuple[Instruction, ...]
    results: tuple[Instruction, ...]


def find_common_results(block: Block, shapes: VectorShapes, users: Users) -> list[CommonResults]:
    """Those of *block* that are worth to be kept; *users* are those of each value of the function. Not in loops, out of
    which LLVM moves what does not change."""
    if shapes.order.loops[block]:
        return []
    chosen: dict[Instruction, set[Instruction]] = {}
    for value in block.instructions:
        if not _is_computed(value, chosen) or shapes.at_definition(value) != 0:
            continue
        group = {value}
        for operand in value.operands:
            if isinstance(operand, Instruction) and (other := chosen.get(operand)) is not None and other is not group:
                other |= group
                group = other
                for member in group:
                    chosen[member] = group
        chosen[value] = group
    groups = {id(group): group for group in chosen.values()}
    found = (_describe(group, block, users) for group in groups.values())
    return [results for results in found if results is not None]


def _is_computed(value: Instruction, chosen: dict[Instruction, set[Instruction]]) -> bool:
    """Whether *value* is computed from numbers alone, and is a float or comes of one."""
    if value.opcode == "call":
        if not (is_arithmetic(value.callee) or value.elementwise is not None):
            return False
    elif value.opcode not in _PURE:
        return False
    operands = [operand for operand in value.operands if not isinstance(operand, Constant)]
    return isinstance(value.type, _FLOATS) or any(
        isinstance(operand.type, _FLOATS) or operand in chosen for operand in operands
    )


def _describe(group: set[Instruction], block: Block, users: Users) -> CommonResults | None:
    if sum(map(_cost, group)) < _LEAST_COST:
        return None
    ordered = tuple(value for value in block.instructions if value in group)
    given = tuple(dict.fromkeys(_outside(ordered, group)))
    results = tuple(value for value in ordered if any(user not in group for user in users.get(value, ())))
    if not (0 < len(given) <= _MOST_NUMBERS and 0 < len(results) <= _MOST_NUMBERS):
        return None
    position = {value: number for number, value in enumerate(block.instructions)}
    is_first = all(position.get(value, -1) < position[ordered[0]] for value in given)
    are_numbers = all(_is_word(value.type) for value in (*given, *results))
    return CommonResults(ordered, given, results) if is_first and are_numbers else None


def _is_word(kind: ir.Type) -> bool:
    """Whether a number of *kind* has 64 bits at most."""
    return isinstance(kind, _FLOATS) or (isinstance(kind, ir.IntType) and kind.width <= 64)


def _outside(values: Iterable[Instruction], group: set[Instruction]) -> Iterable[Instruction]:
    for value in values:
        for operand in value.operands:
            if isinstance(operand, Instruction) and operand not in group:
                yield operand


def _cost(value: Instruction) -> int:
    if value.elementwise is not None:
        return _CALL_COST
    name = next((name for name in _COSTS if value.callee.startswith(name)), value.opcode)
    return _COSTS.get(name, 1)
