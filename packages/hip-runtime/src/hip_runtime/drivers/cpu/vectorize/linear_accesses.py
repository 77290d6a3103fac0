"""Addresses that `analyses.linear_addresses` found to grow by the same number from lane to lane, when all lanes are
active: each is the first lane's plus a multiple of that number.

Both are scalars, which are computed from those that the address is. An address that is taken out of a vector takes two
or three instructions instead of an addition, and one that was spilled a load; in a loop LLVM sees by how much a scalar
grows, and of several addresses, such as of neighbours in one row, that their lanes are as far apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.ir.model import Instruction, Value
from hip_runtime.drivers.cpu.ir.writer import write_instruction
from hip_runtime.drivers.cpu.llvmir import I8, I32, I64
from hip_runtime.drivers.cpu.vectorize.gang_values import GangValues


@dataclass(frozen=True)
class Line:
    """Addresses, or numbers of 64 bits, of which that of a lane is *step* more than that of the lane before it."""

    first: ir.Value
    step: ir.Value

    def of_lane(self, builder: ir.IRBuilder, lane: ir.Value) -> ir.Value:
        """That of *lane*, an ``i32``."""
        number = I64(lane.constant) if isinstance(lane, ir.Constant) else builder.zext(lane, I64)
        return _add(builder, self.first, builder.mul(self.step, number))


def find_line(code: GangValues, value: Value) -> Line:
    """The lanes of the address *value* in the block that is being written, which all lanes run. What it is computed
    from (`find_leaves`) is available there, but where the gang would have to keep that when it stops."""
    if code.suspension is not None:
        places = [code.of_lane(value, lane) for lane in range(2)]
        first, second = (code.builder.ptrtoint(place, I64) for place in places)
        return Line(places[0], code.builder.sub(second, first))
    return _compute(code, value)


def _compute(code: GangValues, value: Value) -> Line:
    shape, builder = code.shapes.of(value, code.block), code.builder
    if shape is not VARYING:
        return Line(code.scalar(value), I64(shape))
    assert isinstance(value, Instruction)
    if value.opcode in ("mul", "shl"):
        number, factor = value.operands
        if value.opcode == "mul" and code.shapes.of(factor, code.block) != 0:
            number, factor = factor, number
        line, by = _compute(code, number), code.scalar(factor)
        scale = builder.mul if value.opcode == "mul" else builder.shl
        return Line(scale(line.first, by), scale(line.step, by))
    left, right = (_compute(code, operand) for operand in value.operands)
    if value.opcode == "sub":
        return Line(builder.sub(left.first, right.first), builder.sub(left.step, right.step))
    if value.opcode == "getelementptr":
        size = I64(code.shapes.size_of(value.source_type))
        right = Line(builder.mul(right.first, size), builder.mul(right.step, size))
    return Line(_add(builder, left.first, right.first), builder.add(left.step, right.step))


def _add(builder: ir.IRBuilder, value: ir.Value, distance: ir.Value) -> ir.Value:
    """The address or the number *value* plus *distance*."""
    if isinstance(value.type, ir.PointerType):
        return builder.gep(value, [distance], source_etype=I8)
    return builder.add(value, distance)


def load_linear(code: GangValues, load: Instruction) -> ir.Value:
    """What *load* loads in each lane."""
    whole, line = code.lanes.undefined(code.lanes.type_of(load.type)), find_line(code, load.operands[0])
    for lane in map(I32, range(code.lanes.width)):
        loaded = write_instruction(code.builder, load, [line.of_lane(code.builder, lane)])
        whole = code.builder.insert_element(whole, loaded, lane)
    return whole


def store_linear(code: GangValues, store: Instruction) -> None:
    """Store what *store* stores in each lane."""
    value, pointer = store.operands
    values, line = code.vector(value), find_line(code, pointer)
    for lane in map(I32, range(code.lanes.width)):
        element = code.builder.extract_element(values, lane)
        write_instruction(code.builder, store, [element, line.of_lane(code.builder, lane)])
