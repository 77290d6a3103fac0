"""Loads of a gang from addresses that `analyses.indirect_addresses` found, when all lanes are active.

Each lane loads its index and then what that is the index of: two instructions and an insertion. A gather computes a
vector of addresses of 64 bits, of which each takes two or three instructions to be taken out. If an index is negative,
it is a gather.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.indirect_addresses import IndirectAddress
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.ir.model import Instruction, Value
from hip_runtime.drivers.cpu.ir.writer import write_instruction
from hip_runtime.drivers.cpu.llvmir import I32
from hip_runtime.drivers.cpu.vectorize.gang_values import GangValues


def load_indirectly(code: GangValues, load: Instruction, address: IndirectAddress) -> ir.Value:
    """What *load* loads from *address* in each lane, all of which are active."""
    if not address.signed:
        return _load_each(code, load, address)
    with code.builder.if_else(_any_negative(code, address), likely=False) as (negative, otherwise):
        with negative:
            places = code.vector(load.operands[0])
            slow, slow_block = code.lanes.gather(load.type, places, None, load.align or 1), code.builder.block
        with otherwise:
            fast, fast_block = _load_each(code, load, address), code.builder.block
    result = code.builder.phi(fast.type)
    result.add_incoming(slow, slow_block)
    result.add_incoming(fast, fast_block)
    return result


def _any_negative(code: GangValues, address: IndirectAddress) -> ir.Value:
    """Whether an index is negative in any lane."""
    builder, lanes = code.builder, code.lanes
    found = lanes.no_lanes()
    for number in address.signed:
        whole = code.vector(number)
        found = builder.or_(found, builder.icmp_signed("<", whole, lanes.splat(ir.Constant(number.type, 0))))
    return lanes.any(found)


def _load_each(code: GangValues, load: Instruction, address: IndirectAddress) -> ir.Value:
    """The same if no index is negative."""
    whole = code.lanes.undefined(code.lanes.type_of(load.type))
    for lane in range(code.lanes.width):
        loaded = write_instruction(code.builder, load, [_of_lane(code, load.operands[0], address, lane)])
        whole = code.builder.insert_element(whole, loaded, I32(lane))
    return whole


def _of_lane(code: GangValues, value: Value, address: IndirectAddress, lane: int) -> ir.Value:
    """*value*, of which *address* is computed, in *lane*."""
    if code.shapes.of(value, code.block) is not VARYING:
        return code.of_lane(value, lane)
    assert isinstance(value, Instruction)
    if value in address.chosen:
        return _of_lane(code, address.chosen[value], address, lane)
    operands = [_of_lane(code, operand, address, lane) for operand in value.operands]
    return write_instruction(code.builder, value, operands)
