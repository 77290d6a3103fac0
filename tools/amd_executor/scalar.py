"""Instructions that are executed once per wave: scalar arithmetic, branches, loads through the constant cache."""

from __future__ import annotations

import re

from llvmlite import ir

from tools.amd_executor import layout
from tools.amd_executor.decoding import Instruction, UnknownInstruction, meaning
from tools.amd_executor.instruction_frame import LONG, POINTER, WORD, Frame, long
from tools.amd_executor.pseudocode.lowering import Lowering
from tools.amd_executor.pseudocode.tree import Expression, PseudocodeError
from tools.amd_executor.pseudocode.values import Value, constant

_MASKS = {"EXEC": layout.EXEC, "VCC": layout.VCC, "EXEC_LO": layout.EXEC, "EXEC_HI": layout.EXEC + 1}
_LOAD = re.compile(r"S_LOAD_(?:DWORD(?:X(\d+))?|B(\d+)|([UI])(8|16))$")


class ScalarEnvironment:
    """Scalar registers, the condition bit, masks and the program counter."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.values: Lowering | None = None
        self.sources = {
            role: frame.uniform(operand, frame.operand_place(role))
            for role, operand in frame.instruction.operands.items()
            if role[0] == "s" and role != "sd"
        }

    def read(self, name: str) -> Value | None:
        frame, builder = self.frame, self.frame.builder
        instruction = frame.instruction
        if name == "SIMM16" or (name in ("S0", "S1") and self.is_immediate(name)):
            return Value(builder.trunc(frame.number(layout.FIRST_NUMBER), WORD), "i", 32)
        if name == "S0" and instruction.format == "SOPK":
            return frame.uniform(instruction.operands["sd"], frame.operand_place("sd"))
        if re.fullmatch(r"S\d", name):
            return self.sources.get(name.lower())
        if name == "SIMM32":
            return self.sources.get("simm32")
        if name == "SCC":
            return Value(builder.trunc(frame.load(frame.place(layout.SCC)), ir.IntType(1)), "u", 1)
        if name in _MASKS:
            bits = 32 if name[-3:] in ("_LO", "_HI") else 64
            return Value(frame.load(frame.place(_MASKS[name]), bits), "u", bits)
        if name in ("EXECZ", "VCCZ"):
            mask = frame.mask(frame.place(_MASKS[name[:-1]]))
            return Value(builder.icmp_unsigned("==", mask, long(0)), "u", 1)
        if name == "M0":
            return Value(frame.load(frame.place(self.m0)), "u", 32)
        if name == "PC":
            return Value(builder.sub(frame.load(frame.place(layout.PC), 64), frame.number(layout.SIZE)), "i", 64)
        if name in ("WAVE32", "WAVE64", "WAVE_MODE.IEEE"):
            return constant(
                {"WAVE32": frame.instruction.wave == 32, "WAVE64": frame.instruction.wave == 64}.get(name, True), 1, "u"
            )
        return None

    @property
    def m0(self) -> int:
        return 124 if self.frame.instruction.family == "cdna" else 125

    def is_immediate(self, name: str) -> bool:
        """In the encoding with a 16-bit constant, that is the operand; in comparisons, the second one."""
        instruction = self.frame.instruction
        if instruction.format != "SOPK":
            return False
        compares = instruction.name.startswith(("S_CMPK", "S_SETREG"))
        return (name == "S1") if compares else (name == "S0")

    def write(self, name: str, value: Value) -> bool:
        frame, builder = self.frame, self.frame.builder
        if name == "SCC":
            bit = (
                value.llvm
                if value.bits == 1
                else builder.icmp_unsigned("!=", value.llvm, ir.Constant(value.llvm.type, 0))
            )
            frame.store(builder.zext(bit, WORD), frame.place(layout.SCC))
        elif name in _MASKS:
            frame.store(value.llvm, frame.place(_MASKS[name]))
        elif name == "PC":
            frame.store(value.llvm, frame.place(layout.PC))
        elif name == "M0":
            frame.store(value.llvm, frame.place(self.m0))
        else:
            return name.startswith("TRAPSTS.")  # floating-point exceptions are not reported
        return True

    def read_lane(self, name: str) -> Value | None:
        return None

    def write_lane(self, name: str, value: Value) -> bool:
        return False

    def read_vector(self, lane: Value, register: Expression) -> Value:
        raise PseudocodeError("a scalar instruction that reads a vector register")

    def write_vector(self, lane: Value, register: Expression, value: Value) -> None:
        raise PseudocodeError("a scalar instruction that writes a vector register")


def build_scalar(frame: Frame) -> None:
    """SOP1, SOP2, SOPC, SOPK and SOPP, as their pseudocode says."""
    instruction = frame.instruction
    lowering = Lowering(frame.builder, ScalarEnvironment(frame))
    target = instruction.operands.get("sd")
    if target is not None:
        bits = max(32, target.bits)
        variable = lowering.declare("D0", "u", bits)
        frame.builder.store(frame.load(frame.operand_place("sd"), bits), variable.place)
    lowering.run(meaning(instruction.family, instruction.name, instruction.format))
    if target is not None and not instruction.name.startswith(("S_CMPK", "S_SETREG")):
        frame.store(frame.builder.load(variable.place, typ=ir.IntType(variable.bits)), frame.operand_place("sd"))
    frame.finish()


def build_scalar_load(frame: Frame) -> None:
    """SMEM: the number in the record is the offset."""
    match = _LOAD.match(frame.instruction.name)
    if match is None:
        raise UnknownInstruction(frame.instruction.name)
    builder = frame.builder
    address = builder.add(frame.load(frame.operand_place("base"), 64), frame.number(layout.FIRST_NUMBER))
    if "soffset" in frame.roles:
        address = builder.add(address, builder.zext(frame.load(frame.operand_place("soffset")), LONG))
    if match[4]:
        _load_part(frame, address, int(match[4]), match[3] == "I")
        return
    words = int(match[2]) // 32 if match[2] else int(match[1] or 1)
    address = builder.and_(address, long(~3 & (1 << 64) - 1))
    frame.require(address, 4 * words)
    source, target = builder.inttoptr(address, POINTER), frame.operand_place("sd")
    parts = [frame.load(builder.gep(source, [long(i)], source_etype=WORD)) for i in range(words)]
    for i, part in enumerate(parts):
        frame.store(part, builder.gep(target, [long(i)], source_etype=WORD))
    frame.finish()


def _load_part(frame: Frame, address: ir.Value, bits: int, has_sign: bool) -> None:
    builder = frame.builder
    frame.require(address, bits // 8)
    part = builder.load(builder.inttoptr(address, POINTER), typ=ir.IntType(bits), align=1)
    frame.store(builder.sext(part, WORD) if has_sign else builder.zext(part, WORD), frame.operand_place("sd"))
    frame.finish()


def reads_memory(instruction: Instruction) -> bool:
    return _LOAD.match(instruction.name) is not None
