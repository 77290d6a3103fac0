"""Loads, stores and atomic operations of the lanes: shared memory (DS), global, generic (FLAT) and private memory.

Every address is checked. What no lane may touch ends the wave with a fault that names the address.
"""

from __future__ import annotations

import re

from llvmlite import ir

from tools.amd_executor import layout
from tools.amd_executor.decoding import PRIVATE_HIGH, SHARED_HIGH, Instruction, Operand, UnknownInstruction
from tools.amd_executor.frames import BYTE, LONG, POINTER, WORD, Frame, long, word
from tools.amd_executor.values import Value, Values, on_stack

_MOVE = re.compile(
    r"(DS|FLAT|GLOBAL|SCRATCH)_(LOAD|READ|STORE|WRITE)(2ST64|2)?_(D16_HI_|D16_|2ADDR_STRIDE64_|2ADDR_)?"
    r"(B8|B16|B32|B64|B96|B128|U8|I8|U16|I16|UBYTE|SBYTE|USHORT|SSHORT|BYTE|SHORT|DWORDX[234]|DWORD)(_D16_HI|_D16)?$"
)
_ATOMIC = re.compile(r"(?:FLAT|GLOBAL)_ATOMIC_([A-Z_]+?)(?:_(B32|B64|U32|U64|I32|I64|F32|F64|F16|BF16|X2))?$")
_SHARED_ATOMIC = re.compile(r"DS_([A-Z_]+?)(_RTN)?_(B32|B64|U32|U64|I32|I64|F32|F64|F16|BF16)$")
_BITS = {
    "B8": 8, "U8": 8, "I8": -8, "UBYTE": 8, "SBYTE": -8, "BYTE": 8, "B16": 16, "U16": 16, "I16": -16,
    "USHORT": 16, "SSHORT": -16, "SHORT": 16, "B32": 32, "DWORD": 32, "B64": 64, "DWORDX2": 64, "B96": 96,
    "DWORDX3": 96, "B128": 128, "DWORDX4": 128,
}  # fmt: skip
"""Bits of each type of memory; less than nothing for those with a sign."""

_SPACES = ("DS", "FLAT", "GLOBAL", "SCRATCH")
_NO_ADDRESS = (124, 125)


def prepare(instruction: Instruction) -> None:
    """Add the operands, which are all registers, and take the fields that only say where they are out of the form."""
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
    """The offset of the instruction, taken out of the form."""
    fields = instruction.fields
    if instruction.format == "DS":
        return fields.pop("offset0") | fields.pop("offset1") << 8
    name, bits = ("ioffset", 24) if "ioffset" in fields else ("offset", 13)
    number = fields.pop(name)
    if instruction.family == "cdna" and instruction.format == "FLAT":
        return number
    return number - (1 << bits) if number >> (bits - 1) else number


def build_memory(frame: Frame) -> None:
    """Every load, store and atomic operation."""
    instruction = frame.instruction
    form = MemoryForm(frame)
    match = _MOVE.match(instruction.name)
    if match:
        form.move(match)
    elif instruction.name in ("DS_BPERMUTE_B32", "DS_PERMUTE_B32", "DS_SWIZZLE_B32", "DS_BPERMUTE_FI_B32"):
        form.permute()
    else:
        form.atomic()
    frame.finish()


class MemoryForm:
    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.instruction = frame.instruction
        self.builder = frame.builder
        self.values = Values(frame.builder)
        self.places = {role: frame.operand_place(role) for role in frame.roles}
        self.offset = frame.number(layout.FIRST_NUMBER)
        self.enabled = frame.exec_mask()
        self.scalar = self.scalar_address()

    def scalar_address(self) -> ir.Value | None:
        if "saddr" not in self.places:
            return None
        return self.frame.load(self.places["saddr"], 32 if self.instruction.format == "SCRATCH" else 64)

    # addresses

    def register(self, role: str, lane: ir.Value, bits: int = 32) -> ir.Value:
        operand = Operand("v", 0, bits, "")
        return self.frame.vector(operand, self.places[role], lane).llvm

    def address(self, lane: ir.Value, extra: int, size: int) -> ir.Value:
        """Where a lane reads or writes, checked."""
        builder = self.builder
        moved = builder.add(self.offset, long(extra)) if extra else self.offset
        match self.instruction.format:
            case "DS":
                low = builder.add(self.register("address", lane), builder.trunc(moved, WORD))
                return self.shared(builder.zext(low, LONG), size)
            case "SCRATCH":
                return self.private(self.scratch_offset(lane, moved), lane, size)
            case "GLOBAL":
                address = builder.add(self.global_address(lane), moved)
                self.frame.require(address, size)
                return address
        return self.generic(builder.add(self.global_address(lane), moved), lane, size)

    def global_address(self, lane: ir.Value) -> ir.Value:
        if self.scalar is not None:
            return self.builder.add(self.scalar, self.builder.zext(self.register("address", lane), LONG))
        return self.register("address", lane, 64)

    def scratch_offset(self, lane: ir.Value, moved: ir.Value) -> ir.Value:
        builder = self.builder
        total = builder.trunc(moved, WORD)
        if self.instruction.fields.get("sve"):
            total = builder.add(total, self.register("address", lane))
        if self.scalar is not None:
            total = builder.add(total, self.scalar)
        return builder.zext(total, LONG)

    def shared(self, place: ir.Value, size: int) -> ir.Value:
        limit = self.builder.zext(self.frame.load(self.frame.place(layout.SHARED_BYTES)), LONG)
        return self.bounded(place, size, limit, self.frame.load(self.frame.place(layout.SHARED), 64))

    def private(self, place: ir.Value, lane: ir.Value, size: int) -> ir.Value:
        builder = self.builder
        stride = builder.zext(self.frame.load(self.frame.place(layout.SCRATCH_BYTES)), LONG)
        start = self.frame.load(self.frame.place(layout.SCRATCH), 64)
        return self.bounded(place, size, stride, builder.add(start, builder.mul(stride, builder.zext(lane, LONG))))

    def bounded(self, place: ir.Value, size: int, limit: ir.Value, start: ir.Value) -> ir.Value:
        end = self.builder.add(place, long(size))
        self.frame.demand(self.builder.icmp_unsigned("<=", end, limit), place)
        return self.builder.add(start, place)

    def generic(self, address: ir.Value, lane: ir.Value, size: int) -> ir.Value:
        """An address that may be one of shared or private memory."""
        builder = self.builder
        high, low = builder.lshr(address, long(32)), builder.and_(address, long(0xFFFFFFFF))
        blocks = [builder.append_basic_block(name) for name in ("is_shared", "is_private", "is_global", "found")]
        choice = builder.switch(high, blocks[2])
        choice.add_case(long(SHARED_HIGH), blocks[0])
        choice.add_case(long(PRIVATE_HIGH), blocks[1])
        found = []
        for block, check in zip(blocks[:3], ("shared", "private", "global"), strict=True):
            builder.position_at_end(block)
            if check == "global":
                self.frame.require(address, size)
                result = address
            else:
                result = self.shared(low, size) if check == "shared" else self.private(low, lane, size)
            found.append((result, builder.block))
            builder.branch(blocks[3])
        builder.position_at_end(blocks[3])
        place = builder.phi(LONG)
        for value, block in found:
            place.add_incoming(value, block)
        return place

    # loads and stores

    def move(self, match: re.Match[str]) -> None:
        bits = _BITS[match[5]]
        half = match[4] if match[4] in ("D16_", "D16_HI_") else match[6] or ""
        stride = self.stride(match)
        offsets = [0]
        if stride:
            # Both offsets count elements; the record has them side by side.
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
        """What the two offsets of one instruction count in, in elements; 0 where there is one offset."""
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

    # atomic operations

    def atomic(self) -> None:
        name = self.instruction.name
        fields = self.instruction.fields
        if self.instruction.format == "DS":
            match = _SHARED_ATOMIC.match(name)
            operation, returns, kind = (match[1], bool(match[2]), match[3]) if match else ("", False, "")
        else:
            match = _ATOMIC.match(name)
            operation, kind = (match[1], match[2] or "B32") if match else ("", "")
            returns = bool(fields.get("th", 0) & 1 or fields.get("glc", 0) or fields.get("sc0", 0))
        if not match:
            raise UnknownInstruction(name)
        bits = 64 if kind in ("B64", "U64", "I64", "F64", "X2") else 32
        with self.frame.lanes(self.enabled) as lane:
            pointer = self.builder.inttoptr(self.address(lane, 0, bits // 8), POINTER)
            old = self.builder.load(pointer, typ=ir.IntType(bits), align=4)
            new = self.updated(operation, kind, bits, old, lane)
            self.builder.store(new, pointer, align=4)
            if returns:
                self.frame.put_vector(old, self.places["d"], lane)

    def updated(self, operation: str, kind: str, bits: int, old: ir.Value, lane: ir.Value) -> ir.Value:
        data = self.register("data", lane, bits)
        if operation in ("SWAP", "STOREXCHG", "WRXCHG"):
            return data
        if operation in ("CMPSWAP", "CMPSTORE", "CMPST"):
            return self.exchanged(operation, kind, bits, old, data, lane)
        if operation == "MSKOR":
            kept = self.builder.and_(old, self.builder.not_(data))
            return self.builder.or_(kept, self.register("second", lane, bits))
        if operation == "PK_ADD":
            return self.packed_sum(kind, old, data)
        if kind.startswith("F"):
            return self.real(operation, bits, old, data)
        return self.whole(operation, kind, old, data)

    def exchanged(
        self, operation: str, kind: str, bits: int, old: ir.Value, data: ir.Value, lane: ir.Value
    ) -> ir.Value:
        if self.instruction.format == "DS":
            other = self.register("second", lane, bits)
        else:
            place = self.builder.gep(self.places["data"], [long(layout.LANES * bits // 32)], source_etype=WORD)
            other = self.frame.vector(Operand("v", 0, bits, ""), place, lane).llvm
        if operation == "CMPST":  # the older processors have what is compared with first
            other, data = data, other
        if kind.startswith("F"):
            pair = [self.values.view(Value(item, "u", bits), "f", bits) for item in (old, other)]
            same = self.values.compare("==", *pair).llvm
        else:
            same = self.builder.icmp_unsigned("==", old, other)
        return self.builder.select(same, data, old)

    def packed_sum(self, kind: str, old: ir.Value, data: ir.Value) -> ir.Value:
        builder, values = self.builder, self.values
        total = word(0)
        for part in range(2):
            pair = [
                values.view(Value(builder.lshr(item, word(16 * part)), "u", 32), "f" if kind == "F16" else "bf", 16)
                for item in (old, data)
            ]
            found = values.operate("+", *pair)
            found = found if kind == "F16" else values.bfloat(found)
            raw = values.resize(values.pattern(found), 32, "u").llvm
            total = builder.or_(total, builder.shl(raw, word(16 * part)))
        return total

    def real(self, operation: str, bits: int, old: ir.Value, data: ir.Value) -> ir.Value:
        left, right = (self.values.view(Value(item, "u", bits), "f", bits) for item in (old, data))
        match operation.removesuffix("_NUM"):
            case "ADD":
                result = self.values.operate("+", left, right)
            case "MIN":
                result = self.values.named("minimumnum", left, right)
            case "MAX":
                result = self.values.named("maximumnum", left, right)
            case _:
                raise UnknownInstruction(self.instruction.name)
        return self.values.pattern(result).llvm

    def whole(self, operation: str, kind: str, old: ir.Value, data: ir.Value) -> ir.Value:
        builder = self.builder
        zero, one = ir.Constant(old.type, 0), ir.Constant(old.type, 1)
        simple = {"ADD": builder.add, "SUB": builder.sub, "AND": builder.and_, "OR": builder.or_, "XOR": builder.xor}
        if operation in simple:
            return simple[operation](old, data)
        below = builder.icmp_unsigned("<", old, data)
        match operation:
            case "RSUB":
                return builder.sub(data, old)
            case "MIN" | "MAX" | "SMIN" | "SMAX" | "UMIN" | "UMAX":
                has_sign = operation[0] == "S" or (operation[0] == "M" and kind[0] == "I")
                compare = builder.icmp_signed if has_sign else builder.icmp_unsigned
                return builder.select(compare("<" if operation.endswith("MIN") else ">", data, old), data, old)
            case "INC":
                return builder.select(below, builder.add(old, one), zero)
            case "DEC":
                over = builder.or_(builder.icmp_unsigned("==", old, zero), builder.icmp_unsigned(">", old, data))
                return builder.select(over, data, builder.sub(old, one))
            case "CSUB" | "SUB_CLAMP":
                return builder.select(below, zero, builder.sub(old, data))
            case "COND_SUB":
                return builder.select(below, old, builder.sub(old, data))
        raise UnknownInstruction(self.instruction.name)

    # through shared memory's crossbar

    def permute(self) -> None:
        """The data of other lanes; lanes that are off give zero, unless the name says that they do not."""
        name = self.instruction.name
        source_role = "address" if name == "DS_SWIZZLE_B32" else "data"
        copy = on_stack(self.builder, ir.ArrayType(WORD, layout.LANES))
        with self.frame.lanes(self.enabled, all_lanes=True) as lane:
            value = self.register(source_role, lane)
            if "FI" not in name:
                value = self.builder.select(self.frame.lane_bit(self.enabled, lane), value, word(0))
            self.frame.store(value, self.frame.lane_place(copy, lane))
        if name == "DS_PERMUTE_B32":
            self.scatter(copy)
            return
        with self.frame.lanes(self.enabled) as lane:
            source = self.swizzled(lane) if name == "DS_SWIZZLE_B32" else self.wanted_lane(lane)
            self.frame.put_vector(self.frame.load(self.frame.lane_place(copy, source)), self.places["d"], lane)

    def wanted_lane(self, lane: ir.Value) -> ir.Value:
        builder = self.builder
        place = builder.add(self.register("address", lane), builder.trunc(self.offset, WORD))
        return builder.and_(builder.lshr(place, word(2)), word(self.instruction.wave - 1))

    def scatter(self, copy: ir.Value) -> None:
        result = on_stack(self.builder, ir.ArrayType(WORD, layout.LANES))
        with self.frame.lanes(self.enabled, all_lanes=True) as lane:
            self.frame.store(word(0), self.frame.lane_place(result, lane))
        with self.frame.lanes(self.enabled) as lane:
            value = self.frame.load(self.frame.lane_place(copy, lane))
            self.frame.store(value, self.frame.lane_place(result, self.wanted_lane(lane)))
        with self.frame.lanes(self.enabled) as lane:
            self.frame.put_vector(self.frame.load(self.frame.lane_place(result, lane)), self.places["d"], lane)

    def swizzled(self, lane: ir.Value) -> ir.Value:
        """The lane that the pattern in the offset means; the pattern is part of the form."""
        builder, pattern = self.builder, self.instruction.fields["pattern"]
        high, low = builder.and_(lane, word(32)), builder.and_(lane, word(31))
        if pattern < 0x8000:
            kept = builder.or_(builder.and_(low, word(pattern & 31)), word(pattern >> 5 & 31))
            return builder.or_(builder.xor(kept, word(pattern >> 10 & 31)), high)
        if pattern >> 8 == 0x80:
            shift = builder.mul(builder.and_(lane, word(3)), word(2))
            chosen = builder.and_(builder.lshr(word(pattern & 255), shift), word(3))
            return builder.or_(builder.and_(lane, word(~3)), chosen)
        if pattern >> 13 == 6:
            amount = pattern >> 5 & 31
            turned = builder.sub(low, word(amount)) if pattern >> 10 & 1 else builder.add(low, word(amount))
            mask = pattern & 31
            inside = builder.and_(turned, word(31 & ~mask))
            return builder.or_(builder.or_(builder.and_(low, word(mask)), inside), high)
        raise UnknownInstruction(f"{self.instruction.name} with the pattern {pattern:#x}")


def is_memory(instruction: Instruction) -> bool:
    return instruction.format in _SPACES
