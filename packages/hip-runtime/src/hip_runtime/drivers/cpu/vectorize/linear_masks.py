"""Masks of comparisons of numbers that are consecutive across the lanes, such as an index with a bound.

The lanes for which such a comparison holds are the first ones of the gang, or the last ones, or a single one. How many
they are is a difference, and their mask an integer that is shifted by it: a few instructions on scalars, where 64
numbers of eight bytes take eight additions, eight comparisons, and seven instructions that put masks together. Where
masks have no registers of their own, the lanes' numbers are compared with that difference: each of them takes a byte,
so 32 of them one comparison.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.conditions import mirror
from hip_runtime.drivers.cpu.ir.model import Constant, Instruction
from hip_runtime.drivers.cpu.llvmir import I1, compare
from hip_runtime.drivers.cpu.object_code.host_machine import has_mask_registers, vector_bytes
from hip_runtime.drivers.cpu.vectorize.gang_values import GangValues

_REGISTERS = 4
"""Vector registers that the numbers of all lanes fill, at least: fewer are compared as fast."""


def is_linear_comparison(code: GangValues, comparison: Instruction) -> bool:
    """Whether *comparison*, an ``icmp``, is of consecutive numbers with one that is the same for all lanes, which takes
    longer with vectors than with scalars."""
    kind = comparison.operands[0].type
    if not isinstance(kind, ir.IntType) or _asks_for_sign(comparison):
        return False
    if code.lanes.width * kind.width < _REGISTERS * 8 * vector_bytes():
        return False
    return [code.shapes.of(value, code.block) for value in comparison.operands] in ([1, 0], [0, 1])


def _asks_for_sign(comparison: Instruction) -> bool:
    """Whether *comparison* is that of an index that could be negative: LLVM mostly knows that it is not, but not of
    numbers that are frozen."""
    predicate, bound = comparison.predicate, comparison.operands[1]
    if not isinstance(bound, Constant) or bound.number is None:
        return False
    return (predicate, bound.number & (1 << bound.type.width) - 1) in (
        ("slt", 0), ("sge", 0), ("sgt", (1 << bound.type.width) - 1), ("sle", (1 << bound.type.width) - 1),
    )  # fmt: skip


def write_linear_mask(code: GangValues, comparison: Instruction) -> ir.Value:
    """The lanes for which *comparison* holds, which `is_linear_comparison`."""
    left, right = comparison.operands
    predicate = comparison.predicate
    if code.shapes.of(left, code.block) == 0:
        left, right, predicate = right, left, mirror(predicate)
    builder, first, bound = code.builder, code.scalar(left), code.scalar(right)
    if predicate in ("eq", "ne"):
        mask = _lane_of(code, builder.sub(bound, first))
        return mask if predicate == "eq" else builder.not_(mask)
    # where the numbers do not wrap they are in order, whatever lanes are active
    last = builder.add(first, ir.Constant(first.type, code.lanes.width - 1))
    in_order = compare(builder, f"{predicate[0]}lt", code.lanes.freeze(first), code.lanes.freeze(last))
    with builder.if_else(in_order, likely=True) as (linear, wrapped):
        with linear:
            counted = _count_lanes(code, predicate, first, bound)
            end_of_counting = builder.block
        with wrapped:
            compared = compare(builder, predicate, code.lanes.spread(first, 1), code.lanes.splat(bound))
            end_of_comparing = builder.block
    result = builder.phi(counted.type)
    result.add_incoming(counted, end_of_counting)
    result.add_incoming(compared, end_of_comparing)
    return result


def _count_lanes(code: GangValues, predicate: str, first: ir.Value, bound: ir.Value) -> ir.Value:
    """The lanes whose numbers, *first* in the first lane and one more in each, are in the order *predicate* with
    *bound*."""
    builder = code.builder
    if predicate[1:] in ("gt", "ge"):
        others = "le" if predicate[1:] == "gt" else "lt"
        return builder.not_(_count_lanes(code, predicate[0] + others, first, bound))
    most = code.lanes.width if predicate[1:] == "lt" else code.lanes.width - 1
    count = _at_most(builder, builder.sub(bound, first), most)
    holds = compare(builder, predicate, first, bound)  # in the first lane, else in none
    if not has_mask_registers():
        lanes = builder.add(count, count.type(code.lanes.width - most))
        return code.lanes.first_lanes(builder.select(holds, lanes, count.type(0)))
    all_lanes = ir.IntType(code.lanes.width)(-1)
    lanes = builder.lshr(all_lanes, _resize(builder, builder.sub(count.type(most), count), all_lanes.type))
    return _as_mask(code, builder.select(holds, lanes, all_lanes.type(0)))


def _lane_of(code: GangValues, distance: ir.Value) -> ir.Value:
    """The lane at *distance* from the first one, if it is in the gang."""
    builder, bits = code.builder, ir.IntType(code.lanes.width)
    exists = builder.icmp_unsigned("<", distance, distance.type(code.lanes.width))
    if not has_mask_registers():
        return code.lanes.is_lane(builder.select(exists, distance, distance.type(code.lanes.width)))
    lane = builder.select(exists, distance, distance.type(0))
    bit = builder.shl(bits(1), _resize(builder, lane, bits))
    return _as_mask(code, builder.select(exists, bit, bits(0)))


def _at_most(builder: ir.IRBuilder, number: ir.Value, most: int) -> ir.Value:
    """*number*, which has no sign, or *most* if that is less."""
    limit = number.type(most)
    return builder.select(builder.icmp_unsigned("<", number, limit), number, limit)


def _resize(builder: ir.IRBuilder, number: ir.Value, kind: ir.IntType) -> ir.Value:
    """*number*, which is smaller than the width of *kind*, as *kind*."""
    if number.type.width == kind.width:
        return number
    return builder.zext(number, kind) if number.type.width < kind.width else builder.trunc(number, kind)


def _as_mask(code: GangValues, bits: ir.Value) -> ir.Value:
    return code.builder.bitcast(bits, code.lanes.type_of(I1))
