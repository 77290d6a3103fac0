"""Loads and stores at addresses that `analyses.linear_addresses` found, when all lanes are active.

Each lane's address is the first one's plus a multiple of the distance to the second one's, both scalars: an addition,
where an address that is taken out of a vector takes two or three instructions.
"""

from __future__ import annotations

from collections.abc import Iterator

from llvmlite import ir

from hip_runtime.drivers.cpu.ir.model import Instruction, Value
from hip_runtime.drivers.cpu.ir.writer import write_instruction
from hip_runtime.drivers.cpu.llvmir import I8, I32, I64
from hip_runtime.drivers.cpu.vectorize.gang_values import GangValues


def load_linear(code: GangValues, load: Instruction) -> ir.Value:
    """What *load* loads in each lane."""
    whole = code.lanes.undefined(code.lanes.type_of(load.type))
    for lane, place in enumerate(_each_place(code, load.operands[0])):
        whole = code.builder.insert_element(whole, write_instruction(code.builder, load, [place]), I32(lane))
    return whole


def store_linear(code: GangValues, store: Instruction) -> None:
    """Store what *store* stores in each lane."""
    value, pointer = store.operands
    values = code.vector(value)
    for lane, place in enumerate(_each_place(code, pointer)):
        write_instruction(code.builder, store, [code.builder.extract_element(values, I32(lane)), place])


def _each_place(code: GangValues, pointer: Value) -> Iterator[ir.Value]:
    """The address *pointer* of each lane."""
    builder, places = code.builder, code.vector(pointer)
    first, second = (builder.extract_element(places, I32(lane)) for lane in range(2))
    step = builder.sub(builder.ptrtoint(second, I64), builder.ptrtoint(first, I64))
    for lane in range(code.lanes.width):
        yield builder.gep(first, [builder.mul(step, I64(lane))], source_etype=I8)
