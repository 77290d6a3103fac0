"""Instructions that concern the wave as a whole: its end, barriers, traps, waits, clocks and hardware registers."""

from __future__ import annotations

import re

from llvmlite import ir

from tools.amd_executor import layout
from tools.amd_executor.decoding import Instruction, UnknownInstruction
from tools.amd_executor.instruction_frame import LONG, WORD, Frame, long, word
from tools.amd_executor.pseudocode.values import Values

_NOTHING = re.compile(
    r"BUFFER_(WBL2|INV|INVL2|GL[01]_INV|WBINVL1(_VOL)?)|GLOBAL_(INV|WB|WBINV)|S_DCACHE_\w+|S_ICACHE_INV|S_GL1_INV|S_PREFETCH_\w+|S_SET_GPR_IDX_OFF"
    r"|S_(CLAUSE|DELAY_ALU|NOP|SLEEP|SETPRIO|WAIT\w*|TTRACEDATA\w*|INST_PREFETCH|SET_INST_PREFETCH_DISTANCE)"
    r"|S_(BARRIER_SIGNAL|SETHALT|VERSION|CODE_END|WAKEUP|SENDMSG|INCPERFLEVEL|DECPERFLEVEL|SETKILL)|DS_NOP"
)
"""Instructions without an effect here: all waves see the same memory at once, and nothing takes time."""

FLOAT_MODE, FLOAT_BITS = 0xF0, 0xFF
"""The mode of float arithmetic, and its bits: round to nearest, keep denormal numbers, for all widths."""

_ENDS = {"S_ENDPGM": layout.END, "S_BARRIER": layout.BARRIER, "S_BARRIER_WAIT": layout.BARRIER, "S_TRAP": layout.TRAP}
_DEBUGGER_TRAP = 3
"""The number of the debugger's trap. If there is no debugger, ROCm's handler lets the wave continue."""

_CLOCKS = ("S_MEMTIME", "S_MEMREALTIME", "S_SENDMSG_RTN_B32", "S_SENDMSG_RTN_B64")
_MODE, _CYCLES, _HIGH_CYCLES = 1, 29, 30
_MODES = {"S_ROUND_MODE": FLOAT_MODE & 15, "S_DENORM_MODE": FLOAT_MODE >> 4}


def is_control(instruction: Instruction) -> bool:
    name = instruction.name
    registers = name in ("S_GETREG_B32", *_MODES) or name.startswith("S_SETREG")
    return bool(_NOTHING.fullmatch(name)) or name in _ENDS or name in _CLOCKS or registers


def stops(instruction: Instruction) -> bool:
    """Whether the wave ends at *instruction*, or does not continue at once."""
    return instruction.name in _ENDS and not (
        instruction.name == "S_TRAP" and instruction.fields["simm16"] == _DEBUGGER_TRAP
    )


def build_control(frame: Frame) -> None:
    name = frame.instruction.name
    if stops(frame.instruction):
        frame.finish(_ENDS[name])
        return
    if name in _CLOCKS:
        _build_clock(frame)
    elif name == "S_GETREG_B32":
        _build_read(frame)
    elif name.startswith("S_SETREG"):
        _check_write(frame)
    elif name in _MODES:
        _check_mode(frame)
    frame.finish()


def _cycles(frame: Frame) -> ir.Value:
    return Values(frame.builder).intrinsic("llvm.readcyclecounter", result=LONG)


def _build_clock(frame: Frame) -> None:
    clock = _cycles(frame)
    if frame.instruction.name.endswith("B32"):
        clock = frame.builder.trunc(clock, WORD)
    frame.store(clock, frame.operand_place("sd"))


def _parts(frame: Frame) -> tuple[int, int, int]:
    """The hardware register that is meant, and its bits."""
    number = frame.instruction.fields["simm16"]
    return number & 63, number >> 6 & 31, (number >> 11 & 31) + 1


def _build_read(frame: Frame) -> None:
    register, first, size = _parts(frame)
    builder = frame.builder
    value = frame.load(frame.place(layout.HARDWARE + register))
    if register == _CYCLES and frame.instruction.family != "cdna":
        value = builder.trunc(_cycles(frame), WORD)
    elif register == _HIGH_CYCLES and frame.instruction.family == "rdna4":
        value = builder.trunc(builder.lshr(_cycles(frame), long(32)), WORD)
    part = builder.and_(builder.lshr(value, word(first)), word((1 << size) - 1))
    frame.store(part, frame.operand_place("sd"))


def _check_write(frame: Frame) -> None:
    """Whether a value written to the mode changes nothing that is executed. It is not stored."""
    register, first, size = _parts(frame)
    name, written = frame.instruction.name, frame.instruction.fields.get("written")
    touched = ((1 << size) - 1) << first
    if register != _MODE or (touched & FLOAT_BITS and written is None):
        raise UnknownInstruction(f"{name} of the hardware register {register}, bits {touched:#x}")
    if written is not None and (written << first ^ FLOAT_MODE) & touched & FLOAT_BITS:
        raise UnknownInstruction(f"{name}: the mode {written << first & touched:#x} of bits {touched:#x} for floats")


def _check_mode(frame: Frame) -> None:
    name, mode = frame.instruction.name, frame.instruction.fields["simm16"] & 15
    if mode != _MODES[name]:
        raise UnknownInstruction(f"{name} {mode:#x}")
