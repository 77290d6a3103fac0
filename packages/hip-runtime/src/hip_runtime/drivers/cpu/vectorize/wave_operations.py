"""Wave operations in gangs that are waves.

The mask of a block is the set of lanes that are active at its wave operations: masked blocks run in an order in which
lanes that diverged reconverge where their paths join. So a ballot is a mask converted to an integer, and a shuffle
permutes a vector.
"""

from __future__ import annotations

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.driver import Dim3
from hip_runtime.drivers.cpu.analyses.lane_constants import find_lane_constants
from hip_runtime.drivers.cpu.ir.model import Instruction
from hip_runtime.drivers.cpu.llvmir import I1, I32, I64, allocate
from hip_runtime.drivers.cpu.vectorize.gang_values import GangValues


def waves_are_gangs(block: Dim3, wave_size: int) -> bool:
    """Whether the lanes of each wave of a block are consecutive along x, so that a gang of neighbours is a wave."""
    across, *others = block
    return across % wave_size == 0 or others == [1, 1]


def write_wave_operation(code: GangValues, instruction: Instruction) -> ir.Value | None:
    """Write a wave operation; its result, which is uniform except for a shuffle of a value that is not."""
    name = instruction.callee
    if name == spmd.WAVE_BARRIER:
        return None
    if name == spmd.ACTIVE_LANES:
        return _as_number(code, code.mask or code.lanes.all_lanes())
    if name == spmd.BALLOT:
        votes = code.vector(instruction.arguments[1])
        if code.mask is not None:
            votes = code.builder.select(code.mask, votes, code.lanes.no_lanes())
        return _as_number(code, votes)
    return _shuffle(code, instruction)


def _as_number(code: GangValues, mask: ir.Value) -> ir.Value:
    width = code.lanes.width
    bits = code.builder.bitcast(mask, ir.IntType(width))
    return bits if width == I64.width else code.builder.zext(bits, I64)


def _shuffle(code: GangValues, instruction: Instruction) -> ir.Value:
    """The value of another lane if that is active, else the lane's own."""
    _, value, source = instruction.arguments
    if code.shapes.of(value, code.block) == 0:
        return code.scalar(value)
    width = code.lanes.width
    values = code.vector(value)
    numbers = find_lane_constants(source, width)
    if numbers is not None:
        return _shuffle_constant(code, values, [n if n < width else lane for lane, n in enumerate(numbers)])
    if code.shapes.of(source, code.block) == 0:
        return _broadcast(code, values, code.scalar(source))
    return _shuffle_dynamic(code, values, code.vector(source))


def _shuffle_constant(code: GangValues, values: ir.Value, numbers: list[int]) -> ir.Value:
    def moved(whole: ir.Value) -> ir.Value:
        order = ir.Constant(ir.VectorType(I32, code.lanes.width), [I32(number) for number in numbers])
        return code.builder.shuffle_vector(whole, ir.Constant(whole.type, ir.Undefined), order)

    if code.mask is None:
        return moved(values)
    return code.builder.select(moved(code.mask), moved(values), values)


def _broadcast(code: GangValues, values: ir.Value, source: ir.Value) -> ir.Value:
    """A shuffle from one lane to all."""
    builder, lanes = code.builder, code.lanes
    exists = builder.icmp_unsigned("<", source, I32(lanes.width))
    source = builder.select(exists, source, I32(0))
    if code.mask is not None:
        exists = builder.select(exists, builder.extract_element(code.mask, source), I1(0))
    return builder.select(exists, lanes.splat(builder.extract_element(values, source)), values)


def _shuffle_dynamic(code: GangValues, values: ir.Value, source: ir.Value) -> ir.Value:
    """A shuffle through memory, which reads only the elements of active lanes."""
    builder, lanes = code.builder, code.lanes
    kind = values.type.element
    place = allocate(code.entry, values.type, "shuffled")
    builder.store(values, place)
    exists = builder.icmp_unsigned("<", source, lanes.splat(I32(lanes.width)))
    source = builder.select(exists, source, lanes.step_vector(I32, 1))
    places = lanes.element_addresses(place, kind, source)
    found = lanes.gather(kind, places, code.mask, 1)
    if code.mask is None:
        return found
    wide = ir.IntType(max(lanes.width, 32))
    bits = lanes.splat(builder.zext(builder.bitcast(code.mask, ir.IntType(lanes.width)), wide))
    number = source if wide == I32 else builder.zext(source, bits.type)
    active = builder.trunc(builder.lshr(bits, number), code.mask.type)
    return builder.select(builder.select(code.mask, active, lanes.no_lanes()), found, values)
