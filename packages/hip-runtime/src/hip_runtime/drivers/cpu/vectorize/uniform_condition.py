"""Run-time checks that a condition is the same in all lanes of a gang."""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.conditions import is_difference, read_order, split_condition
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.ir.model import Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1, compare, have_same_sign
from hip_runtime.drivers.cpu.vectorize.gang_values import GangValues


def write_uniform_condition(code: GangValues, condition: Value, expected: bool) -> ir.Value:
    """Whether *condition* is *expected* in all lanes, which are all active. It usually compares strided values; then
    the first and the last lane decide."""
    shape = code.shapes.of(condition, code.block)
    if shape == 0:
        found = code.scalar(condition)
        return found if expected else code.builder.not_(found)
    parts = split_condition(condition, expected)
    if isinstance(condition, Instruction) and code.shapes.homes[condition] is code.block:
        if parts:
            first, second = (write_uniform_condition(code, part, expected) for part in parts)
            return code.builder.select(first, second, I1(0))  # if the first does not hold, the second may be poison
        found = _compare_end_lanes(code, condition, expected)
        if found is not None:
            return found
    lanes = code.vector(condition)
    return code.lanes.all(lanes if expected else code.builder.not_(lanes))


def _compare_end_lanes(code: GangValues, condition: Instruction, expected: bool) -> ir.Value | None:
    """Whether *condition*, a comparison, is *expected* in the first and the last lane, and therefore in all; ``None``
    if these do not decide. Numbers that differ do so in all lanes if the same one is larger in both."""
    shapes, builder = code.shapes, code.builder
    predicate = read_order(condition, expected)
    differs = not predicate and condition.opcode == "icmp" and is_difference(condition, expected)
    if not (predicate or differs):
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
            if not shapes.never_wraps(value, code.block):  # if the last lane has not overflowed, none has
                orders.append(builder.icmp_signed("<" if reach > 0 else ">", first, last))
            if predicate.startswith("u"):  # signed and unsigned order agree for numbers of the same sign
                orders.append(have_same_sign(builder, first, last))
        ends.append([first, last])
    pairs = list(zip(*ends, strict=True))
    if differs:
        found = builder.or_(_compare_pairs(builder, "slt", pairs), _compare_pairs(builder, "sgt", pairs))
    else:
        found = _compare_pairs(builder, predicate, pairs)
    for order in orders:
        found = builder.and_(found, order)
    return found


def _compare_pairs(builder: ir.IRBuilder, predicate: str, pairs: list[tuple[ir.Value, ir.Value]]) -> ir.Value:
    """Whether both numbers of each pair are in the order *predicate*."""
    found = I1(1)
    for left, right in pairs:
        found = builder.and_(found, compare(builder, predicate, left, right))
    return found
