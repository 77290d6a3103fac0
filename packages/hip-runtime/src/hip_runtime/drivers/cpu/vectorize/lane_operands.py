"""The operands of what is done for one lane after another: how each is had for the lane whose turn it is.

A vector of them would be put together only to be taken apart. So what is quickly computed, such as an address from an
index, is computed in the turn; and what is loaded for nothing else, such as the number of a bin, is loaded there. All
other vectors are put into memory of the stack, from which LLVM makes registers where the turns are written out.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.effects import has_effect
from hip_runtime.drivers.cpu.analyses.vector_shapes import VARYING
from hip_runtime.drivers.cpu.ir.model import Instruction, Value
from hip_runtime.drivers.cpu.ir.writer import write_instruction
from hip_runtime.drivers.cpu.llvmir import I1, I8, I64, allocate
from hip_runtime.drivers.cpu.vectorize.gang_values import GangValues
from hip_runtime.errors import UnsupportedError

OfLane = Callable[[ir.Value], ir.Value]
"""Writes a value for the lane with a number, an ``i32``."""

_QUICK = frozenset(
    "add sub shl lshr ashr and or xor zext sext trunc getelementptr bitcast ptrtoint inttoptr select icmp".split()
)
_DEEPEST = 6


def prepare_operands(code: GangValues, instruction: Instruction) -> list[OfLane]:
    """How to get the operands of *instruction*, which is about to be written: what they need is written now."""
    operands = _Operands(code, instruction)
    return [operands.prepare(value, _DEEPEST) for value in instruction.operands]


class _Operands:
    def __init__(self, code: GangValues, instruction: Instruction) -> None:
        self._code = code
        self._builder = code.builder
        self._steady: set[Instruction] = set()
        """What may as well be loaded now: nothing in between writes memory."""
        for value in code.block.instructions[: code.block.instructions.index(instruction)]:
            if has_effect(value):
                self._steady.clear()
            self._steady.add(value)

    def prepare(self, value: Value, depth: int) -> OfLane:
        code = self._code
        shape = code.shapes.of(value, code.block)
        if shape is not VARYING:
            first, stride = code.scalar(value), shape
            return lambda lane: self._step(first, stride, lane) if stride else first
        if isinstance(value.type, ir.LiteralStructType | ir.ArrayType):
            raise UnsupportedError(f"vectors cannot hold values of type {value.type} that memory is given")
        if depth and isinstance(value, Instruction) and self._is_quick(value):
            parts = [self.prepare(operand, depth - 1) for operand in value.operands]
            return lambda lane: write_instruction(self._builder, value, [part(lane) for part in parts])
        return self._put_away(value)

    def _is_quick(self, value: Instruction) -> bool:
        shapes = self._code.shapes
        if value.opcode == "load":
            return (
                not self._code.lockstep and value in self._steady and not has_effect(value) and shapes.uses[value] == 1
            )
        if value.opcode == "select" and getattr(value.operands[0], "opcode", "") == "fcmp":
            return False  # of floats, which are put away themselves: the choice of all lanes is one instruction
        return value.opcode in _QUICK and shapes.homes[value] is self._code.block

    def _step(self, first: ir.Value, stride: int, lane: ir.Value) -> ir.Value:
        """What is *first* for the first lane, and *stride* more for each other."""
        builder = self._builder
        if isinstance(first.type, ir.PointerType):
            offset = builder.mul(builder.zext(lane, I64), I64(stride))
            return builder.gep(first, [offset], source_etype=I8)
        bits = first.type.width
        number = (
            lane if bits == 32 else builder.zext(lane, first.type) if bits > 32 else builder.trunc(lane, first.type)
        )
        return builder.add(first, builder.mul(number, ir.Constant(first.type, stride)))

    def _put_away(self, value: Value) -> OfLane:
        """All lanes of a value in memory."""
        code, builder, kind = self._code, self._builder, value.type
        whole = code.vector(value)
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
    """Where the value of *lane* is in an array of *kind* at *place*."""
    return builder.gep(place, [builder.zext(lane, I64)], inbounds=True, source_etype=kind)
