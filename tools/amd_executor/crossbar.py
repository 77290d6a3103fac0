"""Instructions by which lanes exchange words through shared memory's crossbar, without using its memory."""

from __future__ import annotations

from llvmlite import ir

from tools.amd_executor import layout
from tools.amd_executor.decoding import UnknownInstruction
from tools.amd_executor.instruction_frame import WORD, word
from tools.amd_executor.memory_access import MemoryAccess
from tools.amd_executor.pseudocode.values import on_stack

NAMES = ("DS_BPERMUTE_B32", "DS_PERMUTE_B32", "DS_SWIZZLE_B32", "DS_BPERMUTE_FI_B32")


class CrossbarExchange(MemoryAccess):
    """Writes an exchange."""

    def write(self) -> None:
        """The data of other lanes. Inactive lanes give zero, unless the instruction's name says otherwise."""
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
        """The source lane according to the pattern in the offset, which is part of the form."""
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
