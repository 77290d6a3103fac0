"""Atomic operations of all lanes on one address: one operation for the active lanes together.

A counter or a total that all threads update costs a locked instruction, and a trip of its cache line from one core to
another, for each gang instead of for each thread. If the old value is used, as for a place in a list, each lane
computes its own from the operands of the lanes before it, as if they had come one after another.
"""

from __future__ import annotations

import math

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.uniform_atomics import FLOAT_REDUCTIONS, INTEGER_REDUCTIONS, SUMS
from hip_runtime.drivers.cpu.ir.model import Constant, Instruction
from hip_runtime.drivers.cpu.llvmir import I1, I32, allocate
from hip_runtime.drivers.cpu.passes.checked_atomics import write_checked
from hip_runtime.drivers.cpu.passes.demote_atomics import write_demoted
from hip_runtime.drivers.cpu.vectorize.gang_values import GangValues
from hip_runtime.drivers.cpu.vectorize.vector_builder import VectorBuilder, mangle

COLLECTED = {"sub": "add", "fsub": "fadd"}
"""By which operation operands are combined, if it is another than that on memory."""


def write_uniform_atomic(code: GangValues, instruction: Instruction) -> ir.Value | None:
    """Write an atomic operation that `analyses.uniform_atomics` found combinable; its result in each lane, if used."""
    builder, lanes = code.builder, code.lanes
    if instruction.total is not None:
        _collect(code, instruction)
        return None
    is_used = code.shapes.uses[instruction] > 0
    old_place = allocate(code.entry, instruction.type, "old") if is_used else None
    pointer = code.scalar(instruction.operands[0])
    only = None if is_used else code.lane
    values: ir.Value | None = None
    if only is not None:
        combined = code.of_lane(instruction.operands[1], only)
    elif _is_uniform(code, instruction) and not is_used:
        combined = _combine_uniform(code, instruction)
    else:
        values = _active_values(code, instruction)
        combined = reduce_lanes(lanes, instruction, values)
    write = write_demoted if instruction in code.demotable else write_checked

    def update() -> None:
        old = write(builder, instruction, [pointer, combined])
        if old_place is not None:
            builder.store(old, old_place)

    if code.mask is None:
        update()
    else:
        with builder.if_then(code.runs(code.block, code.mask)):
            update()
    if old_place is None:
        return None
    assert values is not None
    old = builder.load(old_place, typ=instruction.type)
    if _counts_by_one(instruction):
        code.places[instruction] = lanes.freeze(old)  # no number where no lane is active
    first = lanes.splat(old)
    before = _sum_before(code, values)
    return builder.add(first, before) if instruction.operation == "add" else builder.sub(first, before)


def _counts_by_one(instruction: Instruction) -> bool:
    """Whether *instruction* adds 1 for each lane."""
    added = instruction.operands[1]
    return instruction.operation == "add" and isinstance(added, Constant) and added.number == 1


def _collect(code: GangValues, instruction: Instruction) -> None:
    """Add the operands of the active lanes to those of the chunk of blocks."""
    if _is_uniform(code, instruction):
        values = _combine_uniform(code, instruction)
    else:
        values = _active_values(code, instruction)
        if instruction.operation in ("fmax", "fmin"):
            values = reduce_lanes(code.lanes, instruction, values)
    active = None if code.mask is None else code.runs(code.block, code.mask)
    assert code.item.memory.totals is not None
    address = code.scalar(instruction.operands[0])
    code.item.memory.totals.collect(code.builder, code.arguments[0], instruction, address, values, active)


def _is_uniform(code: GangValues, instruction: Instruction) -> bool:
    """Whether all lanes have the same operand, which can be combined without a vector."""
    is_sum = instruction.operation in ("fadd", "fsub", "xor")
    return not is_sum and code.shapes.of(instruction.operands[1], code.block) == 0


def _combine_uniform(code: GangValues, instruction: Instruction) -> ir.Value:
    """What an operand that is the same in all active lanes comes to."""
    builder, width = code.builder, code.lanes.width
    value = code.scalar(instruction.operands[1])
    if instruction.operation not in SUMS:
        return value
    if code.mask is None:
        return builder.mul(value, ir.Constant(value.type, width))
    bits = ir.IntType(width)
    count = code.lanes.call(f"llvm.ctpop.i{width}", bits, [builder.bitcast(code.mask, bits)])
    wider = value.type.width - width
    fitting = builder.zext(count, value.type) if wider > 0 else builder.trunc(count, value.type) if wider else count
    return builder.mul(value, fitting)


def _active_values(code: GangValues, instruction: Instruction) -> ir.Value:
    """The operands of all lanes; what changes nothing in those that are not active."""
    values = code.vector(instruction.operands[1])
    if code.mask is None:
        return values
    return code.builder.select(code.mask, values, code.lanes.splat(identity_of(instruction)))


def identity_of(instruction: Instruction) -> ir.Constant:
    """An operand with which *instruction* changes nothing."""
    kind, operation = instruction.type, instruction.operation
    if isinstance(kind, ir.IntType):
        most = (1 << kind.width) - 1
        numbers = {"and": most, "umin": most, "min": most >> 1, "max": (most >> 1) + 1}
        return ir.Constant(kind, numbers.get(operation, 0))
    reals = {"fadd": -0.0, "fsub": -0.0, "omax": -math.inf, "omin": math.inf}
    return ir.Constant(kind, reals.get(operation, math.nan))


def reduce_lanes(lanes: VectorBuilder, instruction: Instruction, values: ir.Value) -> ir.Value:
    """The operands *values* of all lanes, combined."""
    kind = instruction.type
    reductions = INTEGER_REDUCTIONS if isinstance(kind, ir.IntType) else FLOAT_REDUCTIONS
    name = f"llvm.vector.reduce.{reductions[instruction.operation]}.{mangle(values.type)}"
    if reductions[instruction.operation] == "fadd":
        return lanes.call(name, kind, [ir.Constant(kind, -0.0), values], ["reassoc"])
    if instruction.operation in ("omax", "omin"):
        is_number = lanes.builder.fcmp_ordered("ord", values, values)
        values = lanes.builder.select(is_number, values, lanes.splat(identity_of(instruction)))
        return lanes.call(name, kind, [values], ["nnan", "nsz"])
    return lanes.call(name, kind, [values])


def _sum_before(code: GangValues, values: ir.Value) -> ir.Value:
    """For each lane, the sum of *values* in the lanes before it."""
    builder, lanes = code.builder, code.lanes
    zeros = lanes.splat(ir.Constant(values.type.element, 0))

    def moved(whole: ir.Value, step: int) -> ir.Value:
        order = lanes.vector_of(I32, [max(lane - step, 0) for lane in range(lanes.width)])
        exists = lanes.vector_of(I1, [int(lane >= step) for lane in range(lanes.width)])
        return builder.select(exists, lanes.shuffle(whole, order), zeros)

    total, step = moved(values, 1), 1
    while step < lanes.width:
        total = builder.add(total, moved(total, step))
        step *= 2
    return total
