"""Operations of a wave where the lanes of a group are the lanes of a wave.

The lanes that run a block together are those of its mask, which are the lanes that are active at an operation: masked
blocks are run in an order in which lanes that parted meet again where their ways join. So a ballot is a mask as a
number, and a shuffle moves elements within a vector.
"""

from __future__ import annotations

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.driver import Dim3
from hip_runtime.drivers.cpu.analyses.lane_numbers import find_lane_numbers
from hip_runtime.drivers.cpu.ir.model import Instruction
from hip_runtime.drivers.cpu.llvmir import I1, I32, I64, allocate
from hip_runtime.drivers.cpu.vectorize.gang_values import GangValues


def waves_are_gangs(block: Dim3, wave_size: int) -> bool:
    """Whether the lanes of each wave of a block follow one another along x, so that a group of neighbours has them."""
    across, *others = block
    return across % wave_size == 0 or others == [1, 1]


def write_wave_operation(code: GangValues, instruction: Instruction) -> ir.Value | None:
    """Write a call of an operation of waves; its result, which is the same for all lanes but for a shuffle."""
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
    """The value of another lane, where that is active, else the own."""
    _, value, source = instruction.arguments
    width = code.lanes.width
    given = code.vector(value)
    numbers = find_lane_numbers(source, width)
    if numbers is not None:
        return _shuffle_known(code, given, [n if n < width else lane for lane, n in enumerate(numbers)])
    if code.shapes.of(source, code.block) == 0:
        return _broadcast(code, given, code.scalar(source))
    return _shuffle_unknown(code, given, code.vector(source))


def _shuffle_known(code: GangValues, given: ir.Value, numbers: list[int]) -> ir.Value:
    def moved(whole: ir.Value) -> ir.Value:
        order = ir.Constant(ir.VectorType(I32, code.lanes.width), [I32(number) for number in numbers])
        return code.builder.shuffle_vector(whole, ir.Constant(whole.type, ir.Undefined), order)

    if code.mask is None:
        return moved(given)
    return code.builder.select(moved(code.mask), moved(given), given)


def _broadcast(code: GangValues, given: ir.Value, source: ir.Value) -> ir.Value:
    """The value of one lane for all."""
    builder, lanes = code.builder, code.lanes
    exists = builder.icmp_unsigned("<", source, I32(lanes.width))
    source = builder.select(exists, source, I32(0))
    if code.mask is not None:
        exists = builder.select(exists, builder.extract_element(code.mask, source), I1(0))
    return builder.select(exists, lanes.splat(builder.extract_element(given, source)), given)


def _shuffle_unknown(code: GangValues, given: ir.Value, source: ir.Value) -> ir.Value:
    """Through memory: other elements than those of lanes that are active are not read."""
    builder, lanes = code.builder, code.lanes
    kind = given.type.element
    place = allocate(code.entry, given.type, "shuffled")
    builder.store(given, place)
    exists = builder.icmp_unsigned("<", source, lanes.splat(I32(lanes.width)))
    source = builder.select(exists, source, lanes.numbers(I32, 1))
    places = lanes.element_addresses(place, kind, source)
    found = lanes.gather(kind, places, code.mask, 1)
    if code.mask is None:
        return found
    wide = ir.IntType(max(lanes.width, 32))
    bits = lanes.splat(builder.zext(builder.bitcast(code.mask, ir.IntType(lanes.width)), wide))
    number = source if wide == I32 else builder.zext(source, bits.type)
    active = builder.trunc(builder.lshr(bits, number), code.mask.type)
    return builder.select(builder.select(code.mask, active, lanes.no_lanes()), found, given)
