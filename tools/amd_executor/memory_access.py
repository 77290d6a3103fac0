"""Addresses of the lanes' memory accesses: shared (DS), global, generic (FLAT) and private memory.

Every address is checked. An address that no lane may access ends the wave with a fault that names it.
"""

from __future__ import annotations

from llvmlite import ir

from tools.amd_executor import layout
from tools.amd_executor.decoding import PRIVATE_HIGH, SHARED_HIGH, Operand
from tools.amd_executor.instruction_frame import LONG, WORD, Frame, long
from tools.amd_executor.pseudocode.values import Values


class MemoryAccess:
    """One instruction that accesses memory, for each lane: its operands, and its checked addresses."""

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
        """The checked address that a lane accesses."""
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
        """A generic address, which may be in shared or private memory."""
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
