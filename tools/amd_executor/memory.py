"""Instructions that access memory: their operands, loads and stores; see also `memory_atomics` and `crossbar`."""

from __future__ import annotations

import re

from llvmlite import ir

from tools.amd_executor import crossbar, direct_loads
from tools.amd_executor.crossbar import CrossbarExchange
from tools.amd_executor.decoding import Instruction, Operand
from tools.amd_executor.direct_loads import DirectLoad
from tools.amd_executor.instruction_frame import BYTE, LONG, POINTER, WORD, Frame, long, word
from tools.amd_executor.memory_access import MemoryAccess
from tools.amd_executor.memory_atomics import MemoryAtomic

_MOVE = re.compile(
    r"(DS|FLAT|GLOBAL|SCRATCH)_(LOAD|READ|STORE|WRITE)(2ST64|2)?_(D16_HI_|D16_|2ADDR_STRIDE64_|2ADDR_)?"
    r"(B8|B16|B32|B64|B96|B128|U8|I8|U16|I16|UBYTE|SBYTE|USHORT|SSHORT|BYTE|SHORT|DWORDX[234]|DWORD)(_D16_HI|_D16)?$"
)
_BITS = {
    "B8": 8, "U8": 8, "I8": -8, "UBYTE": 8, "SBYTE": -8, "BYTE": 8, "B16": 16, "U16": 16, "I16": -16,
    "USHORT": 16, "SSHORT": -16, "SHORT": 16, "B32": 32, "DWORD": 32, "B64": 64, "DWORDX2": 64, "B96": 96,
    "DWORDX3": 96, "B128": 128, "DWORDX4": 128,
}  # fmt: skip
"""The bits of each type in memory; negative for signed types."""

_SPACES = ("DS", "FLAT", "GLOBAL", "SCRATCH")


def prepare(instruction: Instruction) -> None:
    """Add the operands, which are all registers, and remove the fields with their numbers from the form."""
    fields = instruction.fields
    vector = {
        "vaddr": "address",
        "addr": "address",
        "data0": "data",
        "data": "data",
        "vsrc": "data",
        "data1": "second",
        "vdst": "d",
    }
    base = 256 if fields.get("acc") else 0
    for name, role in vector.items():
        if name in fields:
            number = fields.pop(name) + (base if role != "address" else 0)
            instruction.operands[role] = Operand("v", number, 32, "B32")
    if "saddr" in fields:
        number = fields.pop("saddr")
        if number < 124 - (instruction.format == "FLAT") * 124:
            instruction.operands["saddr"] = Operand("s", number, 64, "B64")


def offset(instruction: Instruction) -> int:
    """The offset of the instruction, which is removed from the form."""
    fields = instruction.fields
    if instruction.format == "DS":
        return fields.pop("offset0") | fields.pop("offset1") << 8
    name, bits = ("ioffset", 24) if "ioffset" in fields else ("offset", 13)
    number = fields.pop(name)
    if instruction.family == "cdna" and instruction.format == "FLAT":
        return number
    return number - (1 << bits) if number >> (bits - 1) else number


def build_memory(frame: Frame) -> None:
    """Write the function of any instruction that accesses memory, or the crossbar of shared memory."""
    name = frame.instruction.name
    match = _MOVE.match(name)
    if match:
        MemoryMove(frame).write(match)
    elif name in crossbar.NAMES:
        CrossbarExchange(frame).write()
    elif name in direct_loads.NAMES:
        DirectLoad(frame).write()
    else:
        MemoryAtomic(frame).write()
    frame.finish()


class MemoryMove(MemoryAccess):
    """Writes a load or a store."""

    def write(self, match: re.Match[str]) -> None:
        bits = _BITS[match[5]]
        half = match[4] if match[4] in ("D16_", "D16_HI_") else match[6] or ""
        stride = self.stride(match)
        offsets = [0]
        if stride:
            # Both offsets count elements; in the record they are side by side.
            offsets = [0, 1]
        with self.frame.lanes(self.enabled) as lane:
            loads = match[2] in ("LOAD", "READ")
            places = [self.element_address(lane, number, abs(bits) // 8, stride) for number in offsets]
            if loads:
                self.load(places, bits, half, lane)
            else:
                for number, place in enumerate(places):
                    self.store("second" if number else "data", place, abs(bits), "HI" in half, lane)

    def stride(self, match: re.Match[str]) -> int:
        """The unit of an instruction's two offsets in elements; 0 if it has one offset."""
        marks = (match[3] or "") + (match[4] or "")
        if marks.startswith("2"):
            return 64 if "64" in marks else 1
        return 0

    def element_address(self, lane: ir.Value, number: int, size: int, stride: int) -> ir.Value:
        if not stride:
            return self.address(lane, 0, size)
        builder = self.builder
        count = builder.and_(builder.lshr(self.offset, long(8 * number)), long(255))
        place = builder.add(builder.zext(self.register("address", lane), LONG), builder.mul(count, long(stride * size)))
        return self.shared(builder.and_(place, long(0xFFFFFFFF)), size)

    def load(self, places: list[ir.Value], bits: int, half: str, lane: ir.Value) -> None:
        builder = self.builder
        parts = []
        for place in places:
            pointer = builder.inttoptr(place, POINTER)
            for number in range(max(1, abs(bits) // 32)):
                where = builder.gep(pointer, [long(4 * number)], source_etype=BYTE)
                parts.append(builder.load(where, typ=ir.IntType(min(abs(bits), 32)), align=1))
        if abs(bits) < 32:
            parts = [self.small(parts[0], bits, half, lane)]
        for number, part in enumerate(parts):
            self.frame.store(part, self.frame.lane_place(self.places["d"], lane, number))

    def small(self, part: ir.Value, bits: int, half: str, lane: ir.Value) -> ir.Value:
        builder = self.builder
        extend = builder.sext if bits < 0 else builder.zext
        if not half:
            return extend(part, WORD)
        short = ir.IntType(16)
        wide = builder.zext(part if part.type.width == 16 else extend(part, short), WORD)
        old = self.register("d", lane)
        if "HI" in half:
            return builder.or_(builder.and_(old, word(0xFFFF)), builder.shl(wide, word(16)))
        return builder.or_(builder.and_(old, word(0xFFFF0000)), wide)

    def store(self, role: str, place: ir.Value, bits: int, high: bool, lane: ir.Value) -> None:
        builder = self.builder
        pointer = builder.inttoptr(place, POINTER)
        for number in range(max(1, bits // 32)):
            value = self.frame.load(self.frame.lane_place(self.places[role], lane, number))
            if high:
                value = builder.lshr(value, word(16))
            if bits < 32:
                value = builder.trunc(value, ir.IntType(bits))
            where = builder.gep(pointer, [long(4 * number)], source_etype=BYTE)
            builder.store(value, where, align=1)


def is_memory(instruction: Instruction) -> bool:
    return instruction.format in _SPACES
