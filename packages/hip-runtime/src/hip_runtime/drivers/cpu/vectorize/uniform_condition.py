"""Whether a condition is the same for all lanes of a group."""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.conditions import read_order, split_condition
from hip_runtime.drivers.cpu.analyses.vector_shapes import VARYING
from hip_runtime.drivers.cpu.ir.model import Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1, compare, have_same_sign
from hip_runtime.drivers.cpu.vectorize.gang_values import GangValues


def write_uniform_condition(code: GangValues, condition: Value, wanted: bool) -> ir.Value:
    """Whether *condition* is *wanted* in all lanes, all of which are there. What is compared is strided as a rule: then
    the first and the last lane tell."""
    shape = code.shapes.of(condition, code.block)
    if shape == 0:
        found = code.scalar(condition)
        return found if wanted else code.builder.not_(found)
    parts = split_condition(condition, wanted)
    if isinstance(condition, Instruction) and code.shapes.homes[condition] is code.block:
        if parts:
            first, second = (write_uniform_condition(code, part, wanted) for part in parts)
            return code.builder.select(first, second, I1(0))  # where the first does not hold, the second may be poison
        found = _compare_ends(code, condition, wanted)
        if found is not None:
            return found
    whole = code.vector(condition)
    return code.lanes.all(whole if wanted else code.builder.not_(whole))


def _compare_ends(code: GangValues, condition: Instruction, wanted: bool) -> ir.Value | None:
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
