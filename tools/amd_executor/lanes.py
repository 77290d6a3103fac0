"""Data that moves between lanes: operands of other lanes (DPP), and instructions on a whole wave."""

from __future__ import annotations

import re

from llvmlite import ir

from tools.amd_executor import layout
from tools.amd_executor.decoding import Operand, UnknownInstruction, meaning
from tools.amd_executor.instruction_frame import BIT, LONG, WORD, Frame, long, word
from tools.amd_executor.pseudocode.lowering import Lowering
from tools.amd_executor.pseudocode.tree import Expression, Name, PseudocodeError, View
from tools.amd_executor.pseudocode.values import Value, constant, on_stack


class Swizzle:
    """The first operand of an instruction with DPP: its register before the instruction, read in other lanes."""

    def __init__(self, frame: Frame, places: dict[str, ir.Value]) -> None:
        self.frame = frame
        self.fields = frame.instruction.fields
        rows = max(32, frame.instruction.operands["s0"].bits) // 32
        self.copy = on_stack(frame.builder, ir.ArrayType(WORD, layout.LANES * rows))
        with frame.lanes(long(0), all_lanes=True) as lane:
            for row in range(rows):
                frame.store(
                    frame.load(frame.lane_place(places["s0"], lane, row)), frame.lane_place(self.copy, lane, row)
                )
        self.lane: ir.Value | None = None
        self.valid: ir.Value | None = None

    def enter(self, lane: ir.Value, enabled: ir.Value) -> None:
        """Find the lane to read. The current lane is skipped if it is masked, or has no lane to read."""
        builder = self.frame.builder
        self.lane, exists = self.source(lane)
        if not self.fields.get("fi"):
            exists = builder.and_(exists, self.frame.lane_bit(enabled, self.lane))
        self.valid = exists
        if "dpp8" in self.fields:
            return
        row = builder.and_(builder.lshr(lane, word(4)), word(3))
        bank = builder.and_(builder.lshr(lane, word(2)), word(3))
        wanted = builder.and_(self.bit(self.fields["row_mask"], row), self.bit(self.fields["bank_mask"], bank))
        if not self.fields["bc"]:
            wanted = builder.and_(wanted, exists)
        work = builder.append_basic_block("wanted")
        builder.cbranch(wanted, work, self.frame.next_lane)
        builder.position_at_end(work)

    def bit(self, mask: int, index: ir.Value) -> ir.Value:
        return self.frame.builder.trunc(self.frame.builder.lshr(word(mask), index), BIT)

    def read(self, operand: Operand, lane: ir.Value) -> Value:
        found = self.frame.vector(operand, self.copy, self.lane)
        zero = ir.Constant(found.llvm.type, 0)
        return Value(self.frame.builder.select(self.valid, found.llvm, zero), "u", found.bits)

    def source(self, lane: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The lane to read, and whether it exists; the number is valid in any case."""
        if "dpp8" in self.fields:
            return self.within_eight(lane), ir.Constant(BIT, 1)
        builder, control = self.frame.builder, self.fields["dpp"]
        row, place = builder.and_(lane, word(~15)), builder.and_(lane, word(15))
        amount = control & 15
        yes = ir.Constant(BIT, 1)
        rdna = self.frame.instruction.family != "cdna"
        if control < 0x100:  # quad_perm
            shift = builder.mul(builder.and_(lane, word(3)), word(2))
            chosen = builder.and_(builder.lshr(word(control), shift), word(3))
            return builder.or_(builder.and_(lane, word(~3)), chosen), yes
        if control >> 4 == 0x10:  # row_shl
            return self.within_row(row, builder.add(place, word(amount)))
        if control >> 4 == 0x11:  # row_shr
            return self.within_row(row, builder.sub(place, word(amount)))
        if control >> 4 == 0x12:  # row_ror
            return builder.or_(row, builder.and_(builder.sub(place, word(amount)), word(15))), yes
        if control in (0x140, 0x141):  # row_mirror, row_half_mirror
            return builder.xor(lane, word(15 if control == 0x140 else 7)), yes
        if control >> 4 == 0x15:  # row_share, or row_newbcast
            return builder.or_(row, word(amount)), yes
        if control >> 4 == 0x16 and rdna:  # row_xmask
            return builder.xor(lane, word(amount)), yes
        if rdna or control not in (0x130, 0x134, 0x138, 0x13C, 0x142, 0x143):
            raise UnknownInstruction(f"{self.frame.instruction.name} with the DPP control {control:#x}")
        return self.across_rows(lane, row, control)

    def within_eight(self, lane: ir.Value) -> ir.Value:
        builder = self.frame.builder
        shift = builder.mul(builder.and_(lane, word(7)), word(3))
        chosen = builder.and_(builder.lshr(word(self.fields["dpp8"]), shift), word(7))
        return builder.or_(builder.and_(lane, word(~7)), chosen)

    def across_rows(self, lane: ir.Value, row: ir.Value, control: int) -> tuple[ir.Value, ir.Value]:
        builder = self.frame.builder
        if control == 0x142:  # row_bcast:15
            exists = builder.icmp_unsigned(">=", lane, word(16))
            return builder.and_(builder.sub(row, word(1)), word(63)), exists
        if control == 0x143:  # row_bcast:31
            return word(31), builder.icmp_unsigned(">=", lane, word(32))
        step = 1 if control in (0x130, 0x134) else -1  # wave_shl, wave_rol; wave_shr, wave_ror
        target = builder.add(lane, word(step))
        inside = builder.icmp_unsigned("<", target, word(64))
        exists = inside if control in (0x130, 0x138) else ir.Constant(BIT, 1)
        return builder.and_(target, word(63)), exists

    def within_row(self, row: ir.Value, place: ir.Value) -> tuple[ir.Value, ir.Value]:
        builder = self.frame.builder
        exists = builder.icmp_unsigned("<", place, word(16))
        return builder.or_(row, builder.and_(place, word(15))), exists


class WaveEnvironment:
    """The environment of an instruction that is executed once for all lanes."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.places = {role: frame.operand_place(role) for role in frame.roles}

    def read(self, name: str) -> Value | None:
        frame = self.frame
        operands = frame.instruction.operands
        role = name.lower()
        if re.fullmatch(r"S\d", name) and role in operands:
            operand = operands[role]
            if operand.kind == "v":
                raise PseudocodeError(f"{name} of the wave, which is a vector register")
            return self.signed(frame.uniform(operand, self.places[role]), operand, int(name[1]))
        if name in ("EXEC", "EXEC_LO"):
            mask = frame.exec_mask()
            return Value(mask if name == "EXEC" else frame.builder.trunc(mask, WORD), "u", 64 if name == "EXEC" else 32)
        if name in ("WAVE32", "WAVE64", "wave32"):
            return constant((name != "WAVE64") == (frame.instruction.wave == 32), 1, "u")
        return None

    def signed(self, value: Value, operand: Operand, number: int) -> Value:
        """A scalar float operand of instructions such as ``V_S_RCP_F32``, with its absolute and negate modifiers."""
        fields, builder = self.frame.instruction.fields, self.frame.builder
        if fields.get("clmp") or fields.get("omod"):
            raise UnknownInstruction(f"{self.frame.instruction.name} with clamping or scaling")
        top, raw = 1 << (operand.bits - 1), value.llvm
        if fields.get("abs", 0) >> number & 1:
            raw = builder.and_(raw, ir.Constant(raw.type, (1 << value.bits) - 1 - top))
        if fields.get("neg", 0) >> number & 1:
            raw = builder.xor(raw, ir.Constant(raw.type, top))
        return Value(raw, "u", value.bits)

    def write(self, name: str, value: Value) -> bool:
        return False

    def read_lane(self, name: str) -> Value | None:
        return None

    def write_lane(self, name: str, value: Value) -> bool:
        return False

    def role(self, register: Expression) -> str:
        name = register.value.name if isinstance(register, View) and isinstance(register.value, Name) else ""
        role = {"SRC0": "s0", "SRC1": "s1", "VDST": "d"}.get(name)
        if role is None or role not in self.places:
            raise PseudocodeError(f"the register {register}")
        return role

    def read_vector(self, lane: Value, register: Expression) -> Value:
        role = self.role(register)
        operand = self.frame.instruction.operands[role]
        if operand.kind != "v":
            return self.frame.uniform(operand, self.places[role])
        return self.frame.vector(operand, self.places[role], self.lane(lane))

    def write_vector(self, lane: Value, register: Expression, value: Value) -> None:
        place = self.places[self.role(register)]
        raw = Lowering(self.frame.builder, self).values.fit(value, "u", 32)
        self.frame.put_vector(raw.llvm, place, self.lane(lane))

    def lane(self, lane: Value) -> ir.Value:
        wide = Lowering(self.frame.builder, self).values.resize(lane, 32, "u").llvm
        return self.frame.builder.and_(wide, word(self.frame.instruction.wave - 1))


def build_cross_lane(frame: Frame) -> None:
    """Lanes that the pseudocode reads and writes one by one."""
    instruction = frame.instruction
    lowering = Lowering(frame.builder, WaveEnvironment(frame))
    target = instruction.operands["d"]
    if target.kind == "s":
        lowering.declare("D0", "u", 32)
    if re.match(r"V_PERMLANEX?16_B32", instruction.name):
        _build_permlane(frame)
        return
    lowering.run(meaning(instruction.family, instruction.name, instruction.format))
    if target.kind == "s":
        value = frame.builder.load(lowering.variables["D0"].place, typ=WORD)
        frame.store(value, frame.operand_place("d"))
    frame.finish()


def _build_permlane(frame: Frame) -> None:
    """The pseudocode leaves out inactive lanes, but depending on bits of opsel they are read as well, or give zero."""
    builder, instruction = frame.builder, frame.instruction
    places = {role: frame.operand_place(role) for role in frame.roles}
    low, high = (frame.uniform(instruction.operands[role], places[role]).llvm for role in ("s1", "s2"))
    table = builder.or_(builder.zext(low, LONG), builder.shl(builder.zext(high, LONG), long(32)))
    copy = Swizzle(frame, places).copy
    enabled = frame.exec_mask()
    opsel = instruction.fields["opsel"]
    with frame.lanes(enabled) as lane:
        shift = builder.mul(builder.zext(builder.and_(lane, word(15)), LONG), long(4))
        chosen = builder.and_(builder.trunc(builder.lshr(table, shift), WORD), word(15))
        row = builder.and_(lane, word(~15))
        if "X16" in instruction.name:
            row = builder.xor(row, word(16))
        source = builder.or_(row, chosen)
        found = frame.load(frame.lane_place(copy, source))
        if not opsel & 1:
            other = word(0) if opsel & 2 else frame.load(frame.lane_place(places["d"], lane))
            found = builder.select(frame.lane_bit(enabled, source), found, other)
        frame.put_vector(found, places["d"], lane)
    frame.finish()
