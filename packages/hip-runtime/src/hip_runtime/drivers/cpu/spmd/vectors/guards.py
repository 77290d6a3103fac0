"""Branches at the start of a kernel at which threads that have nothing to do return: ``if i < n``."""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.frame import I1
from hip_runtime.drivers.cpu.spmd.analyses.comparisons import compare, have_same_sign, read_order, split_condition
from hip_runtime.drivers.cpu.spmd.analyses.effects import has_effect
from hip_runtime.drivers.cpu.spmd.ir.graph import Block, Instruction, Value
from hip_runtime.drivers.cpu.spmd.vectors.lanecode import LaneCode
from hip_runtime.drivers.cpu.spmd.vectors.shapes import VARYING, Shapes

_NOTING = frozenset({"getelementptr", "store"})


def find_guard(shapes: Shapes, known: dict[Block, Block]) -> tuple[Block, Block] | None:
    """A branch of which one side only returns, in front of which nothing was written; and the other side."""
    loops = shapes.order.loops
    for block in shapes.order.blocks:
        if any(has_effect(instruction) for instruction in block.instructions):
            return None
        if block not in shapes.parting or block in shapes.masked or block in known or loops[block]:
            continue
        targets = block.terminator.targets
        if block.terminator.opcode == "br" and len(targets) == 2:
            for number in (0, 1):
                if _only_returns(targets[number]) and not _only_returns(targets[1 - number]):
                    return block, targets[1 - number]
    return None


def _only_returns(block: Block) -> bool:
    """Whether threads return in *block*, and do no more there than to note it, as they do where others wait."""
    *others, end = block.instructions
    return end.opcode == "ret" and all(instruction.opcode in _NOTING for instruction in others)


def write_agreement(code: LaneCode, condition: Value, wanted: bool) -> ir.Value:
    """Whether *condition* is *wanted* in all lanes, all of which are there. What is compared is strided as a rule: then
    the first and the last lane tell."""
    shape = code.shapes.of(condition, code.block)
    if shape == 0:
        found = code.scalar(condition)
        return found if wanted else code.builder.not_(found)
    parts = split_condition(condition, wanted)
    if isinstance(condition, Instruction) and code.shapes.homes[condition] is code.block:
        if parts:
            first, second = (write_agreement(code, part, wanted) for part in parts)
            return code.builder.select(first, second, I1(0))  # where the first does not hold, the second may be poison
        found = _compare_ends(code, condition, wanted)
        if found is not None:
            return found
    whole = code.vector(condition)
    return code.lanes.all(whole if wanted else code.builder.not_(whole))


def _compare_ends(code: LaneCode, condition: Instruction, wanted: bool) -> ir.Value | None:
    """The comparison *condition* for the first and the last lane; ``None`` where these do not tell all."""
    shapes, builder = code.shapes, code.builder
    predicate = read_order(condition, wanted)
    if not predicate:
        return None
    ends: list[list[ir.Value]] = []
    orders = []
    for value in condition.operands:
        shape = shapes.of(value, code.block)
        if shape is VARYING:
            return None
        first = code.scalar(value)
        last = first
        if shape:
            reach = (code.lanes.width - 1) * shape
            if abs(reach) >= 1 << value.type.width - 1:
                return None
            last = builder.add(first, ir.Constant(value.type, reach))
            if not shapes.follows(value, code.block):  # where the last lane has not overflowed, none has
                orders.append(builder.icmp_signed("<" if reach > 0 else ">", first, last))
            if predicate[0] == "u":  # numbers that do not change their sign are in the same order without it
                orders.append(have_same_sign(builder, first, last))
        ends.append([first, last])
    found = I1(1)
    for left, right in zip(*ends, strict=True):
        found = builder.and_(found, compare(builder, predicate, left, right))
    for order in orders:
        found = builder.and_(found, order)
    return found
