"""The operands of scalarized instructions, computed for each lane in turn.

A vector operand would be assembled only to be taken apart again. So cheap operands, such as an address computed from an
index, are computed for each lane; loads without another use, such as that of a histogram's bin, are made for each lane,
too. All other vectors are spilled to the stack, which LLVM promotes to registers if the loop over the lanes is
unrolled."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.effects import has_effect
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.ir.model import Instruction, Value
from hip_runtime.drivers.cpu.ir.writer import write_instruction
from hip_runtime.drivers.cpu.llvmir import I1, I8, I64, allocate
from hip_runtime.drivers.cpu.vectorize.gang_values import GangValues
from hip_runtime.drivers.cpu.vectorize.linear_accesses import find_line
from hip_runtime.errors import UnsupportedError

OfLane = Callable[[ir.Value], ir.Value]
"""Writes a value for the lane with the given index, an ``i32``."""

_CHEAP = frozenset(
    "add sub shl lshr ashr and or xor zext sext trunc getelementptr bitcast ptrtoint inttoptr select icmp".split()
)
_MAX_DEPTH = 6


def prepare_operands(code: GangValues, instruction: Instruction) -> list[OfLane]:
    """How to get each operand of *instruction* for a lane. What is shared by all lanes is written now."""
    return [prepare_operand(code, instruction, number) for number in range(len(instruction.operands))]


def prepare_operand(code: GangValues, instruction: Instruction, number: int) -> OfLane:
    """The same for one of them."""
    return _Operands(code, instruction).prepare(instruction.operands[number], _MAX_DEPTH)


class _Operands:
    def __init__(self, code: GangValues, instruction: Instruction) -> None:
        self._code = code
        self._builder = code.builder
        self._movable: set[Instruction] = set()
        """Values that could as well be loaded at *instruction*, as nothing in between writes memory."""
        for value in code.block.instructions[: code.block.instructions.index(instruction)]:
            if has_effect(value):
                self._movable.clear()
            self._movable.add(value)

    def prepare(self, value: Value, depth: int) -> OfLane:
        code = self._code
        if code.shapes.of(value, code.block) is not VARYING:
            return take_lanes(code, value)
        if isinstance(value.type, ir.LiteralStructType | ir.ArrayType):
            raise UnsupportedError(f"vectors cannot hold values of type {value.type} that are stored to memory")
        if depth and isinstance(value, Instruction) and self._is_cheap(value):
            if value.opcode == "load" and code.is_line(value.operands[0]):
                line = find_line(code, value.operands[0])
                return lambda lane: write_instruction(self._builder, value, [line.of_lane(self._builder, lane)])
            parts = [self.prepare(operand, depth - 1) for operand in value.operands]
            return lambda lane: write_instruction(self._builder, value, [part(lane) for part in parts])
        return take_lanes(code, value)

    def _is_cheap(self, value: Instruction) -> bool:
        shapes = self._code.shapes
        if value.opcode == "load":
            return (
                not self._code.lockstep and value in self._movable and not has_effect(value) and shapes.uses[value] == 1
            )
        if value.opcode == "select" and getattr(value.operands[0], "opcode", "") == "fcmp":
            return False  # its operands are floats, which are spilled themselves: one vector select is cheaper
        return value.opcode in _CHEAP and shapes.homes[value] is self._code.block


def take_lanes(code: GangValues, value: Value, whole: ir.Value | None = None) -> OfLane:
    """How to get *value* for a lane, without computing it again; *whole* is its base or all lanes of it, if that is not
    what the block that is being written has."""
    shape = code.shapes.of(value, code.block)
    if shape is VARYING:
        return _spill(code, value.type, code.vector(value) if whole is None else whole)
    first, stride = code.scalar(value) if whole is None else whole, shape
    return lambda lane: _step(code.builder, first, stride, lane) if stride else first


def _step(builder: ir.IRBuilder, first: ir.Value, stride: int, lane: ir.Value) -> ir.Value:
    """The value with the base *first* and *stride* for *lane*."""
    if isinstance(first.type, ir.PointerType):
        offset = builder.mul(builder.zext(lane, I64), I64(stride))
        return builder.gep(first, [offset], source_etype=I8)
    bits = first.type.width
    number = lane if bits == 32 else builder.zext(lane, first.type) if bits > 32 else builder.trunc(lane, first.type)
    return builder.add(first, builder.mul(number, ir.Constant(first.type, stride)))


def _spill(code: GangValues, kind: ir.Type, whole: ir.Value) -> OfLane:
    """Spill all lanes of a value to the stack."""
    builder = code.builder
    if kind == I1:
        whole = builder.zext(whole, code.lanes.type_of(I8))
    stored = whole.type.element
    place = allocate(code.entry, ir.ArrayType(stored, code.lanes.width), "operands")
    place.align = 64
    builder.store(whole, place, align=1)

    def take(lane: ir.Value) -> ir.Value:
        found = builder.load(element_address(builder, place, stored, lane), typ=stored)
        return builder.trunc(found, I1) if kind == I1 else found

    return take


def element_address(builder: ir.IRBuilder, place: ir.Value, kind: ir.Type, lane: ir.Value) -> ir.Value:
    """The address of the element of *lane* in an array of *kind* at *place*."""
    return builder.gep(place, [builder.zext(lane, I64)], inbounds=True, source_etype=kind)


def stored_type(kind: ir.Type) -> ir.Type:
    """What an array of the lanes' values of *kind* has as elements."""
    return I8 if kind == I1 else kind
