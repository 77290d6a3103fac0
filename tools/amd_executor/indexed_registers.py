"""Registers with computed numbers: V_MOVREL*, S_MOVREL*, and CDNA's indexing by M0 (S_SET_GPR_IDX_ON).

The number in M0 is added to a register's own number. If the sum is not a register, the wave ends with a fault.
"""

from __future__ import annotations

import re

from llvmlite import ir

from tools.amd_executor import layout
from tools.amd_executor.decoding import Instruction, UnknownInstruction
from tools.amd_executor.instruction_frame import LONG, WORD, Frame, long, word

SOURCE_BIT, TARGET_BIT = 1, 8
"""Bits of the mode of S_SET_GPR_IDX_ON: which operands are counted from M0."""

_LAST_SCALAR = 105
_VECTOR_MOVE = re.compile(r"V_MOVREL(S|D|SD|SD_2)_B32$")
_SCALAR_MOVE = re.compile(r"S_MOVREL(S|D|SD_2)_B(32|64)$")


def is_indexed(instruction: Instruction) -> bool:
    """Whether the instruction, or the mode in which it is executed, has registers with computed numbers."""
    name = instruction.name
    found = name.startswith(("V_MOVREL", "S_MOVREL")) or name == "S_SET_GPR_IDX_ON"
    return found or bool(instruction.fields.get("gpr_idx"))


def index_mode(instruction: Instruction) -> int | None:
    """The mode after the instruction; None if it does not change. Raises if the mode does not support the
    instruction."""
    name = instruction.name
    if name == "S_SET_GPR_IDX_ON":
        return instruction.fields["gpr_idx"]
    if name == "S_SET_GPR_IDX_OFF":
        return 0
    if name.startswith("S_SET_GPR_IDX"):
        raise UnknownInstruction(name)
    return None


def build_indexed(frame: Frame) -> None:
    name = frame.instruction.name
    match = _VECTOR_MOVE.match(name)
    if match:
        _move_vectors(frame, match[1])
        return
    match = _SCALAR_MOVE.match(name)
    if match:
        _move_scalars(frame, match[1], int(match[2]))
    elif name == "S_SET_GPR_IDX_ON":
        _set_index(frame)
    elif name == "V_MOV_B32":
        _move_by_mode(frame)
    else:
        raise UnknownInstruction(f"{name} with registers counted from M0")


def _m0(frame: Frame) -> ir.Value:
    return frame.place(124 if frame.instruction.family == "cdna" else 125)


def _part(frame: Frame, first: int, bits: int) -> ir.Value:
    shifted = frame.builder.lshr(frame.load(_m0(frame)), word(first))
    return frame.builder.and_(shifted, word((1 << bits) - 1))


def _indices(frame: Frame, kind: str) -> tuple[ir.Value | None, ir.Value | None]:
    """The numbers that are added to those of the source and of the target."""
    if kind == "SD_2":
        return _part(frame, 0, 10), _part(frame, 16, 10)
    index = frame.load(_m0(frame))
    return (index if "S" in kind else None), (index if "D" in kind else None)


def _moved(frame: Frame, place: ir.Value, index: ir.Value | None, stride: int, first: int, last: int) -> ir.Value:
    """The address *index* registers of *stride* words after *place*, which must be between the words *first* and
    *last*."""
    if index is None:
        return place
    builder = frame.builder
    number = builder.ptrtoint(place, LONG)
    found = builder.add(number, builder.mul(builder.sext(index, LONG), long(4 * stride)))
    wave = builder.ptrtoint(frame.wave, LONG)
    offset = builder.sub(found, wave)
    low = builder.icmp_signed(">=", offset, long(4 * first))
    fine = builder.and_(low, builder.icmp_signed("<=", offset, long(4 * last)))
    frame.demand(fine, builder.sdiv(builder.sub(offset, long(4 * first)), long(4 * stride)), layout.REGISTER)
    return builder.inttoptr(found, frame.wave.type)


def _vector(frame: Frame, role: str, index: ir.Value | None) -> ir.Value:
    last = layout.ACCUMULATORS - layout.LANES
    return _moved(frame, frame.operand_place(role), index, layout.LANES, layout.VECTORS, last)


def _refuse_variants(frame: Frame) -> None:
    instruction = frame.instruction
    if instruction.variants:
        raise UnknownInstruction(f"{instruction.name} counted from M0 with {', '.join(instruction.variants)}")


def _move_vectors(frame: Frame, kind: str) -> None:
    _refuse_variants(frame)
    source, target = _indices(frame, kind)
    _copy(frame, source, target)


def _move_by_mode(frame: Frame) -> None:
    _refuse_variants(frame)
    mode, index = frame.instruction.fields["gpr_idx"], _part(frame, 0, 8)
    _copy(frame, index if mode & SOURCE_BIT else None, index if mode & TARGET_BIT else None)


def _copy(frame: Frame, source: ir.Value | None, target: ir.Value | None) -> None:
    operand = frame.instruction.operands["s0"]
    if operand.kind != "v" and source is not None:
        raise UnknownInstruction(f"{frame.instruction.name} of no vector register")
    start, end = _vector(frame, "s0", source), _vector(frame, "d", target)
    with frame.lanes(frame.exec_mask()) as lane:
        found = frame.uniform(operand, start) if operand.kind != "v" else frame.vector(operand, start, lane)
        frame.put_vector(found.llvm, end, lane)
    frame.finish()


def _move_scalars(frame: Frame, kind: str, bits: int) -> None:
    if kind != "D" and frame.instruction.operands["s0"].kind != "s":
        raise UnknownInstruction(f"{frame.instruction.name} of no scalar register")
    source, target = _indices(frame, kind)
    last = _LAST_SCALAR + 1 - bits // 32
    start, end = (
        _moved(frame, frame.operand_place(role), index, 1, 0, last) for role, index in (("s0", source), ("sd", target))
    )
    frame.store(frame.load(start, bits), end)
    frame.finish()


def _set_index(frame: Frame) -> None:
    builder = frame.builder
    kept = builder.and_(frame.load(_m0(frame)), word(~0xF0FF))
    index = builder.and_(frame.load(frame.operand_place("s0")), word(0xFF))
    mode = builder.or_(index, ir.Constant(WORD, frame.instruction.fields["gpr_idx"] << 12))
    frame.store(builder.or_(kept, mode), _m0(frame))
    frame.finish()
