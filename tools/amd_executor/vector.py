"""Instructions that each lane executes: the pseudocode in a loop over the lanes, with the modifiers of encodings.

Operands may be negated, made absolute, taken from the high half of a register, from another lane (DPP), or from a part
of a register (SDWA). Results may be scaled and clamped.
"""

from __future__ import annotations

import re

from llvmlite import ir

from tools.amd_executor import layout
from tools.amd_executor.decoding import Instruction, Operand, UnknownInstruction, meaning
from tools.amd_executor.instruction_frame import LONG, WORD, Frame, long, word
from tools.amd_executor.lanes import Swizzle
from tools.amd_executor.pseudocode.lowering import Lowering, Variable
from tools.amd_executor.pseudocode.tree import Expression, Name, PseudocodeError
from tools.amd_executor.pseudocode.values import FLOATS, Value, Values, constant, on_stack

_SOURCES = re.compile(r"[sy]\d$")
_KEEPS_HIGH_HALF = re.compile(r"V_(FMA|MAD|MAC|FMAC|DIV_FIXUP)_|V_(FMA|MAD)_MIX")
"""On CDNA the other instructions with 16-bit results clear the rest of the register."""


class VectorEnvironment:
    """The environment of one lane. Masks are collected over all lanes in variables, and stored after the last one."""

    def __init__(self, frame: Frame, lowering_roles: dict[str, str], masks: dict[str, ir.Value]) -> None:
        self.frame = frame
        self.roles = lowering_roles
        self.masks = masks
        self.inputs: dict[str, ir.Value] = {}
        self.sources: dict[str, Value] = {}
        self.lane: ir.Value | None = None

    def read(self, name: str) -> Value | None:
        instruction = self.frame.instruction
        role = self.roles.get(name)
        if role is not None:
            return self.sources.get(role)
        if name == "laneId":
            return Value(self.lane, "u", 32)
        if name in ("WAVE32", "WAVE64", "WAVE_MODE.IEEE"):
            known = {"WAVE32": instruction.wave == 32, "WAVE64": instruction.wave == 64}
            return constant(known.get(name, True), 1, "u")
        if name in ("OPSEL", "OPSEL_HI"):
            fields = instruction.fields
            high = fields.get("opsel_hi", 0) | fields.get("opsel_hi2", 0) << 2
            return constant(high if name == "OPSEL_HI" else fields.get("opsel", 0), 4, "u")
        if name.startswith("INST."):
            return constant(instruction.fields.get(name[5:].lower(), 0), 3, "u")
        return None

    def write(self, name: str, value: Value) -> bool:
        if name == "VCC":  # the manual means this lane's bit
            return self.write_lane(name, Value(self.frame.builder.trunc(value.llvm, ir.IntType(1)), "u", 1))
        return name.startswith("TRAPSTS")

    def read_lane(self, name: str) -> Value | None:
        if name not in self.inputs:
            return None
        return Value(self.frame.lane_bit(self.inputs[name], self.lane), "u", 1)

    def write_lane(self, name: str, value: Value) -> bool:
        place = self.masks.get(name)
        if place is None:
            return False
        builder = self.frame.builder
        number = builder.zext(self.lane, LONG)
        old = builder.and_(builder.load(place, typ=LONG), builder.not_(builder.shl(long(1), number)))
        bit = builder.shl(builder.zext(value.llvm, LONG), number)
        builder.store(builder.or_(old, bit), place)
        return True

    def read_vector(self, lane: Value, register: Expression) -> Value:
        raise PseudocodeError("an instruction of lanes that reads another lane")

    def write_vector(self, lane: Value, register: Expression, value: Value) -> None:
        raise PseudocodeError("an instruction of lanes that writes another lane")


class VectorForm:
    """Builds the function of a vector instruction."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.instruction = frame.instruction
        self.builder = frame.builder
        self.values = Values(frame.builder)
        self.current: dict[str, Value] = {}
        operands = self.instruction.operands
        self.places = {role: frame.operand_place(role) for role in frame.roles}
        self.uniform = {
            role: frame.uniform(operand, self.places[role])
            for role, operand in operands.items()
            if operand.kind != "v" and (_SOURCES.match(role) or role == "simm32") and not self.is_mask(role)
        }

    def is_mask(self, role: str) -> bool:
        return role == "s2" and (self.instruction.operands["s2"].format == "M64")

    # masks

    def mask_targets(self) -> dict[str, ir.Value]:
        """The registers of the masks that the instruction writes."""
        instruction = self.instruction
        targets = {}
        if instruction.format == "VOPC":
            targets["D0"] = self.places["sd"] if "sd" in self.places else self.frame.place(layout.VCC)
        elif instruction.format == "VOP3" and instruction.operands["d"].kind == "s":
            targets["D0"] = self.places["d"]
        elif "sd" in self.places:
            targets["VCC"] = self.places["sd"]
        elif re.search("_CO_", instruction.name):
            targets["VCC"] = self.frame.place(layout.VCC)
        if instruction.name.startswith("V_CMPX"):
            targets["EXEC"] = self.frame.place(layout.EXEC)
            if instruction.family != "cdna":
                del targets["D0"]
        return targets

    def mask_input(self) -> ir.Value:
        """The mask that the pseudocode calls VCC."""
        place = self.places["s2"] if "s2" in self.places and self.is_mask("s2") else self.frame.place(layout.VCC)
        return self.frame.mask(place)

    # the function

    def build(self) -> None:
        frame, builder = self.frame, self.builder
        enabled = frame.exec_mask()
        targets = self.mask_targets()
        masks = {name: on_stack(builder, LONG) for name in targets}
        parts = self.instruction.name.split("+")
        environments = [VectorEnvironment(frame, self.names(number), masks) for number in range(len(parts))]
        vcc = self.mask_input()
        swizzle = Swizzle(frame, self.places) if self.instruction.variants & {"DPP16", "DPP8"} else None
        with frame.lanes(enabled) as lane:
            if swizzle is not None:
                swizzle.enter(lane, enabled)
            sources = {
                role: self.source(role, lane, swizzle)
                for role in frame.roles
                if _SOURCES.match(role) or role == "simm32"
            }
            self.current = {role: value for role, value in sources.items() if value is not None}
            done = []
            for number, (name, environment) in enumerate(zip(parts, environments, strict=True)):
                environment.lane, environment.inputs = lane, {"VCC": vcc, "EXEC": enabled}
                environment.sources = self.current
                done.append(self.compute(name, environment, "d" if number == 0 else "yd", lane))
            for role, variable, lowering in done:
                if variable is not None:
                    self.put(role, variable, lane, lowering)
        for name, place in targets.items():
            frame.store_mask(builder.load(masks[name], typ=LONG), place)
        frame.finish()

    def names(self, number: int) -> dict[str, str]:
        letter = "y" if number else "s"
        return {**{f"S{i}": f"{letter}{i}" for i in range(3)}, "SIMM32": "simm32"}

    def compute(
        self, name: str, environment: VectorEnvironment, role: str, lane: ir.Value
    ) -> tuple[str, Variable | None, Lowering]:
        instruction = self.instruction
        lowering = Lowering(self.builder, environment)
        operand = instruction.operands.get(role)
        variable = None
        if operand is not None and operand.kind == "v":
            variable = lowering.declare("D0", "u", max(32, operand.bits))
            old = self.frame.vector(operand, self.places[role], lane)
            self.builder.store(old.llvm, variable.place)
        if "sd" in self.places and instruction.name.startswith("V_MAD_"):
            lowering.declare("D1", "u", 1)
        if name.startswith("V_SWAP"):
            self.swap(lane)
            return role, None, lowering
        lowering.run(meaning(instruction.family, name, "VOPD" if instruction.format == "VOPD" else instruction.format))
        if "D1" in lowering.variables:
            carry = lowering.evaluate(Name("D1"))
            environment.write_lane("VCC", self.values.view(carry, "u", 1))
        return role, variable, lowering

    def swap(self, lane: ir.Value) -> None:
        one, other = (self.frame.lane_place(self.places[role], lane) for role in ("d", "s0"))
        first, second = self.frame.load(one), self.frame.load(other)
        self.frame.store(second, one)
        self.frame.store(first, other)

    # sources

    def source(self, role: str, lane: ir.Value, swizzle: Swizzle | None) -> Value | None:
        operand = self.instruction.operands[role]
        if self.is_mask(role):
            return None
        if role in self.uniform:
            value = self.uniform[role]
        elif swizzle is not None and role == "s0":
            value = swizzle.read(operand, lane)
        else:
            value = self.frame.vector(operand, self.places[role], lane)
        if role == "simm32" or role[0] == "y":
            return value
        number = int(role[1])
        if "SDWA" in self.instruction.variants:
            value = self.selected(value, number)
        if self.instruction.format == "VOP3P":
            return self.packed(value, operand, number)
        return self.signed(value, operand, number)

    def signed(self, value: Value, operand: Operand, number: int) -> Value:
        """The operand with its absolute and negate modifiers."""
        fields = self.instruction.fields
        absolute = fields.get("abs", 0) >> number & 1 or fields.get(f"src{number}_abs", 0)
        negative = fields.get("neg", 0) >> number & 1 or fields.get(f"src{number}_neg", 0)
        if "BITOP3" in self.instruction.name:
            return value
        top = 1 << (operand.bits - 1)
        raw = value.llvm
        if absolute:
            raw = self.builder.and_(raw, ir.Constant(raw.type, (1 << value.bits) - 1 - top))
        if negative:
            raw = self.builder.xor(raw, ir.Constant(raw.type, top))
        return Value(raw, value.kind, value.bits)

    def packed(self, value: Value, operand: Operand, number: int) -> Value:
        """Two halves, each selected and negated separately."""
        fields = self.instruction.fields
        if "_MIX" in self.instruction.name:
            return self.mixed(value, number)
        half = value.bits // 2
        part = ir.IntType(half)
        high_choice = (fields["opsel_hi"] | fields["opsel_hi2"] << 2) >> number & 1
        if not operand.format.startswith("PK") and half == 16 and "DOT" not in self.instruction.name:
            return value
        if "MOV" in self.instruction.name:
            return value
        low = self.builder.trunc(value.llvm, part)
        high = self.builder.trunc(self.builder.lshr(value.llvm, ir.Constant(value.llvm.type, half)), part)
        chosen = [high if choice else low for choice in (fields["opsel"] >> number & 1, high_choice)]
        if "F" in operand.format:
            top = ir.Constant(part, 1 << (half - 1))
            for place, name in enumerate(("neg", "neg_hi")):
                if fields[name] >> number & 1:
                    chosen[place] = self.builder.xor(chosen[place], top)
        wide = [self.builder.zext(item, value.llvm.type) for item in chosen]
        joined = self.builder.or_(wide[0], self.builder.shl(wide[1], ir.Constant(value.llvm.type, half)))
        return Value(joined, "u", value.bits)

    def mixed(self, value: Value, number: int) -> Value:
        """An operand that is a float or one of two halves, with the corresponding signs."""
        fields = self.instruction.fields
        is_half = (fields["opsel_hi"] | fields["opsel_hi2"] << 2) >> number & 1
        top = (1 << 31) if not is_half else (1 << 31) | (1 << 15)
        raw = value.llvm
        if fields["neg_hi"] >> number & 1:
            raw = self.builder.and_(raw, word(~top))
        if fields["neg"] >> number & 1:
            raw = self.builder.xor(raw, word(top))
        return Value(raw, "u", 32)

    def selected(self, value: Value, number: int) -> Value:
        """SDWA: a byte or a half of the register."""
        choice = self.instruction.fields.get(f"src{number}_sel", 6)
        if choice == 6:
            return value
        bits, shift = (8, 8 * choice) if choice < 4 else (16, 16 * (choice - 4))
        part = self.builder.trunc(self.builder.lshr(value.llvm, word(shift)), ir.IntType(bits))
        extend = self.builder.sext if self.instruction.fields.get(f"src{number}_sext") else self.builder.zext
        return Value(extend(part, WORD), "u", 32)

    # results

    def put(self, role: str, variable: Variable, lane: ir.Value, lowering: Lowering) -> None:
        operand = self.instruction.operands[role]
        builder = self.builder
        raw = builder.load(variable.place, typ=ir.IntType(variable.bits))
        raw = self.limited(raw, operand)
        if "SDWA" in self.instruction.variants:
            raw = self.placed(raw, operand, lane, role)
        elif operand.bits == 16:
            raw = self.half(raw, operand, lane, role)
        self.frame.put_vector(raw, self.places[role], lane)

    def half(self, raw: ir.Value, operand: Operand, lane: ir.Value, role: str) -> ir.Value:
        """A result of 16 bits in its register."""
        builder = self.builder
        low = builder.and_(raw, word(0xFFFF))
        clears = self.instruction.family == "cdna" and not _KEEPS_HIGH_HALF.match(self.instruction.name)
        if clears and not operand.half:
            return low
        old = self.frame.load(self.frame.lane_place(self.places[role], lane))
        if operand.half:
            return builder.or_(builder.and_(old, word(0xFFFF)), builder.shl(low, word(16)))
        return builder.or_(builder.and_(old, word(0xFFFF0000)), low)

    def placed(self, raw: ir.Value, operand: Operand, lane: ir.Value, role: str) -> ir.Value:
        """SDWA: the result in a byte or a half of the register."""
        choice, unused = self.instruction.fields.get("dst_sel", 6), self.instruction.fields.get("dst_unused", 0)
        builder = self.builder
        if choice == 6:
            return self.half(raw, operand, lane, role) if operand.bits == 16 else raw
        bits, shift = (8, 8 * choice) if choice < 4 else (16, 16 * (choice - 4))
        part = builder.trunc(raw, ir.IntType(bits))
        if unused == 1:
            return builder.shl(builder.sext(part, WORD), word(shift))
        moved = builder.shl(builder.zext(part, WORD), word(shift))
        if unused == 0:
            return moved
        old = self.frame.load(self.frame.lane_place(self.places[role], lane))
        return builder.or_(builder.and_(old, word(~(((1 << bits) - 1) << shift))), moved)

    def limited(self, raw: ir.Value, operand: Operand) -> ir.Value:
        """The output modifiers: times 2, 4 or a half, and clamped."""
        fields = self.instruction.fields
        scale, clamp = fields.get("omod", 0), fields.get("clmp", 0)
        if "BITOP3" in self.instruction.name or not (scale or clamp):
            return raw
        match = re.fullmatch(r"(PK2_)?F(16|32|64)", operand.format)
        if not match:
            return self.saturated(raw, operand)
        bits = int(match[2])
        result = ir.Constant(raw.type, 0)
        for part in range(2 if match[1] else 1):
            shifted = self.builder.lshr(raw, ir.Constant(raw.type, bits * part))
            value = self.values.view(Value(shifted, "u", raw.type.width), "f", bits)
            value = self.scaled(value, scale, bool(clamp))
            wide = self.values.resize(self.values.pattern(value), raw.type.width, "u").llvm
            result = self.builder.or_(result, self.builder.shl(wide, ir.Constant(raw.type, bits * part)))
        return result

    def scaled(self, value: Value, scale: int, clamp: bool) -> Value:
        kind = FLOATS[value.bits]
        if scale:
            factor = Value(ir.Constant(kind, (1.0, 2.0, 4.0, 0.5)[scale]), "f", value.bits)
            value = self.values.operate("*", value, factor)
        if clamp:
            least = Value(ir.Constant(kind, 0.0), "f", value.bits)
            most = Value(ir.Constant(kind, 1.0), "f", value.bits)
            value = self.values.named("minimumnum", self.values.named("maximumnum", value, least), most)
        return value

    def saturated(self, raw: ir.Value, operand: Operand) -> ir.Value:
        """Integer sums and differences that saturate."""
        match = re.fullmatch(r"V_(ADD|SUB)(?:_NC)?_([UI])(16|32)", self.instruction.name)
        if not match or self.instruction.fields.get("omod"):
            raise UnknownInstruction(f"{self.instruction.name} with clamping")
        bits = int(match[3])
        part = ir.IntType(bits)
        sources = [
            self.builder.trunc(self.current[role].llvm, part) if bits < 32 else self.current[role].llvm
            for role in ("s0", "s1")
        ]
        name = f"llvm.{match[2].lower().replace('i', 's')}{match[1].lower()}.sat.i{bits}"
        found = self.values.intrinsic(name, *sources)
        return self.builder.zext(found, WORD) if bits < 32 else found


def build_vector(frame: Frame) -> None:
    """VOP1, VOP2, VOP3, VOP3P, VOPC and VOPD."""
    VectorForm(frame).build()


def is_cross_lane(instruction: Instruction) -> bool:
    """Whether the pseudocode describes the whole wave."""
    return bool(re.match(r"V_(READLANE|READFIRSTLANE|WRITELANE|PERMLANE|S_)", instruction.name))
