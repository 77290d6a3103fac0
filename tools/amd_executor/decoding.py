"""Machine code of AMD GPUs as instructions: their names, operands and modifiers.

The encodings are tinygrad's tables, which are generated from AMD's descriptions of its instruction sets. This module
adds the meaning of operand numbers, registers or constants, and their widths.
"""

from __future__ import annotations

import re
import struct
import sys
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from typing import Any

from tools.amd_executor.pseudocode.parser import parse
from tools.amd_executor.pseudocode.tree import Statement

FAMILIES = {"gfx942": "cdna", "gfx1100": "rdna3", "gfx1201": "rdna4"}
"""The families of the supported targets."""

SHARED_HIGH, PRIVATE_HIGH = 0x20000, 0x10000
"""The high words of generic addresses of shared and private memory. No host address has them."""

NO_REGISTER = -1
"""The place to which ``null`` is written."""


class UnknownInstruction(Exception):
    """An instruction, or a form of one, that is not supported."""


@dataclass(frozen=True)
class Operand:
    """A register or a constant. ``kind`` is v for vector registers, s for scalar ones, c for a constant."""

    kind: str
    number: int
    bits: int
    format: str
    half: bool = False
    """Whether the high half of the register is meant."""


@dataclass(frozen=True)
class Instruction:
    """*name* is without the suffixes of encodings; *fields* are the numbers in the encoding."""

    family: str
    name: str
    format: str
    variants: frozenset[str]
    size: int
    fields: dict[str, int]
    operands: dict[str, Operand] = field(default_factory=dict)

    @property
    def wave(self) -> int:
        return 64 if self.family == "cdna" else 32


_INLINE = {240: 0.5, 241: -0.5, 242: 1.0, 243: -1.0, 244: 2.0, 245: -2.0, 246: 4.0, 247: -4.0, 248: 0.15915494309189535}
_FLOAT_BITS = {16: "<e", 32: "<f", 64: "<d"}
_SCC, _LITERAL = 253, 255
_SCC_PLACE = 128
_APERTURES = {235: SHARED_HIGH, 237: PRIVATE_HIGH}
_DPP8_FETCHES = 234
"""DPP of eight lanes that also reads inactive lanes."""

_NOT_DECODED = {233: "DPP8", 234: "DPP8", 249: "SDWA", 250: "DPP16", 251: "VCCZ", 252: "EXECZ", 254: "LDS_DIRECT"}


def decode(data: bytes, family: str) -> Instruction:
    """The instruction at the start of *data*; raises `UnknownInstruction`."""
    found = _find(data, family)
    kind = type(found)
    parts = kind.__name__.split("_")
    names = dict(kind._fields)
    fields = {name: (found._raw >> part.lo) & part.mask for name, part in names.items()}
    base = parts[0].removeprefix("V") if parts[0] in ("VFLAT", "VGLOBAL", "VSCRATCH") else parts[0]
    name = re.sub(r"_E(32|64)$", "", found.op.name) if hasattr(found, "op") else f"{found.opx.name}+{found.opy.name}"
    size = kind._base_size
    result = Instruction(family, name, base, frozenset(parts[1:]), size, fields)
    if "DPP8" in parts:
        fields["dpp8"] = sum(fields.pop(f"lane_sel_{place}") << 3 * place for place in range(8))
        fields["fi"] = int(fields["src0"] == _DPP8_FETCHES)
    if name == "S_SET_GPR_IDX_ON":
        fields["gpr_idx"] = fields["ssrc1"] & 15
    if base in ("SOP1", "SOP2", "SOPC", "SOPK", "VOP1", "VOP2", "VOP3", "VOPC", "VOP3SD", "VOP3P"):
        if name.startswith(("V_MFMA_", "V_WMMA_")):
            result.operands.update(_matrix_operands(found, result, data))
            return result
        if base == "VOP3P" and "MFMA" in parts:
            raise UnknownInstruction(name)
        result.operands.update(_operands(found, result, data))
        if name.startswith("V_ACCVGPR"):
            result.operands.update(_accumulators(result, data))
    elif base == "VOPD":
        result.operands.update(_dual_operands(found, result))
    elif base not in ("SOPP", "SMEM", "DS", "FLAT", "GLOBAL", "SCRATCH", "MUBUF"):
        raise UnknownInstruction(f"{name} ({base})")
    return result


def _find(data: bytes, family: str) -> Any:
    amd = _tables("tinygrad.renderer.amd")
    try:
        return _with_other_lanes(amd.decode_inst(data, family), data, family)
    except (ValueError, AssertionError):
        pass
    kind = _tables(f"tinygrad.runtime.autogen.amd.{family}.ins").MUBUF if family != "rdna4" else None
    if kind is not None and amd._matches(data, kind):
        return kind.from_bytes(data)
    raise UnknownInstruction(f"the {family} encoding {data[:8].hex()}")


def _with_other_lanes(found: Any, data: bytes, family: str) -> Any:
    """*found*, or its variant with a first operand from other lanes, which tinygrad's decoder does not always look
    for."""
    name, first = type(found).__name__, int.from_bytes(data[:4], "little") & 0x1FF
    if name.startswith("VOP3"):
        first = int.from_bytes(data[4:8], "little") & 0x1FF
    variant = _NOT_DECODED.get(first, "")
    if family == "cdna" or not name.startswith("VOP") or not variant.startswith("DPP") or name.endswith(variant):
        return found
    kind = getattr(_tables(f"tinygrad.runtime.autogen.amd.{family}.ins"), f"{name.split('_')[0]}_{variant}", None)
    return found if kind is None else kind.from_bytes(data)


def _operands(found: Any, instruction: Instruction, data: bytes) -> dict[str, Operand]:
    shapes = {_role(name): (shape[0].name.removeprefix("FMT_NUM_"), shape[1]) for name, shape in found.operands.items()}
    scalars = {
        _role(name) for name, shape in found.operands.items() if shape[2].name.startswith(("OPR_SREG", "OPR_SDST"))
    }
    result = {}
    for name, part in type(found)._fields:
        role = _role(name)
        if role is None or (role == "s0" and name == "src0" and "vsrc0" in instruction.fields) or name in ("s0", "s1"):
            continue
        if role not in shapes and role not in ("d", "sd"):
            continue
        if role == "sd" and instruction.fields.get("sd") == 0:  # SDWA without a mask of its own uses VCC
            continue
        format_, bits = shapes.get(role, ("B64", 64))
        number = instruction.fields[name] + part._valid_range[0]
        scalar = f"s{role[1:]}" if role[1:] else ""
        is_scalar = (
            instruction.fields.get(scalar) if "SDWA" in instruction.variants else role == "d" and role in scalars
        )
        if is_scalar and number >= 256:
            number -= 256
        half = _is_high(instruction, role, bits, number)
        if half and instruction.format in ("VOP1", "VOP2", "VOPC"):
            number -= 128
        result[role] = _operand(instruction, number, bits, format_, half, data)
    if "literal" in instruction.fields:
        result["simm32"] = Operand("c", instruction.fields["literal"], 32, "B32")
    return result


def _accumulators(instruction: Instruction, data: bytes) -> dict[str, Operand]:
    """The operands of a move from or to the second half of CDNA's vector registers."""
    fields = instruction.fields
    target = Operand("v", fields["vdst"] + (0 if "READ" in instruction.name else 256), 32, "B32")
    source = _operand(instruction, fields["src0"], 32, "B32", False, data)
    if "WRITE" not in instruction.name:
        source = replace(source, number=source.number + 256)
    return {"d": target, "s0": source}


def _matrix_operands(found: Any, instruction: Instruction, data: bytes) -> dict[str, Operand]:
    """The matrices of a product: in vector registers, or their second half; the third can be a constant."""
    fields = instruction.fields
    second = {"s0": fields.get("acc", 0) & 1, "s1": fields.get("acc", 0) >> 1, "s2": fields.get("acc_cd", 0)}
    result = {"d": Operand("v", fields["vdst"] + 256 * second["s2"], found.operands["vdst"][1], "MATRIX")}
    for role in ("s0", "s1", "s2"):
        number, bits = fields[f"src{role[1]}"], found.operands[f"src{role[1]}"][1]
        if number >= 256:
            result[role] = Operand("v", number - 256 + 256 * second[role], bits, "MATRIX")
        else:
            kind = instruction.name.split("_")[2]  # of one element: F32, I32 or F64
            result[role] = _operand(instruction, number, int(kind[1:]), kind, False, data)
            if role != "s2" or result[role].kind != "c":
                raise UnknownInstruction(f"{instruction.name} with {role} in no vector register")
    return result


def _role(name: str) -> str | None:
    match = re.match(r"[sv]?src(\d)$", name)
    if match:
        return "s" + match[1]
    return {"vdst": "d", "sdst": "sd"}.get(name)


def _is_high(instruction: Instruction, role: str, bits: int, number: int) -> bool:
    """Whether a 16-bit operand is the high half of its register."""
    if bits != 16 or instruction.format == "VOP3P":
        return False
    if "opsel" in instruction.fields:
        place = 3 if role == "d" else int(role[1:])
        return bool(instruction.fields["opsel"] >> place & 1)
    return instruction.family != "cdna" and number >= 256 + 128


def _operand(instruction: Instruction, number: int, bits: int, format_: str, half: bool, data: bytes) -> Operand:
    if number >= 256:
        return Operand("v", number - 256, bits, format_, half)
    if number == 124 and instruction.family != "cdna":
        return Operand("s", NO_REGISTER, bits, format_, half)
    if number < 128:
        return Operand("s", number, bits, format_, half)
    if number == _SCC:
        return Operand("s", _SCC_PLACE, bits, format_)
    if number in _NOT_DECODED:
        raise UnknownInstruction(f"{instruction.name} with {_NOT_DECODED[number]}")
    literal = instruction.fields.get("literal")
    if number == _LITERAL and literal is None:
        literal = int.from_bytes(data[instruction.size : instruction.size + 4], "little")
        raise UnknownInstruction(f"{instruction.name} ({instruction.format}) with the literal {literal:#x}")
    return Operand("c", _constant(number, bits, format_, literal or 0), bits, format_, half and number == _LITERAL)


def _constant(number: int, bits: int, format_: str, literal: int) -> int:
    """The bits of a constant."""
    wide = format_ in ("F64", "PK2_B64") and bits == 64
    if number == _LITERAL:
        if wide:
            return literal << 32
        negative = format_ == "I64" and literal >> 31
        return literal - (1 << 32) & (1 << 64) - 1 if negative else literal
    if 128 <= number <= 192:
        return number - 128
    if 193 <= number <= 208:
        return (1 << max(bits, 32)) - (number - 192)
    if number in _APERTURES:
        return _APERTURES[number] << (32 if bits == 64 else 0)
    if number in _INLINE:
        size = 16 if "16" in format_ else 32 if format_.startswith("PK2") else bits
        return int.from_bytes(struct.pack(_FLOAT_BITS[size], _INLINE[number]), "little")
    raise UnknownInstruction(f"the constant {number}")


def _dual_operands(found: Any, instruction: Instruction) -> dict[str, Operand]:
    """Operands of two instructions in one: the second's are called ``y0``, ``y1`` and ``yd``."""
    fields = instruction.fields
    other = (fields["vdsty"] << 1) | (fields["vdstx"] & 1 ^ 1)
    result = {"d": Operand("v", fields["vdstx"], 32, "B32"), "yd": Operand("v", other, 32, "B32")}
    for role, name in (("s0", "srcx0"), ("y0", "srcy0")):
        result[role] = _operand(instruction, fields[name], 32, _dual_format(found, role), False, b"")
    result["s1"] = Operand("v", fields["vsrcx1"], 32, "B32")
    result["y1"] = Operand("v", fields["vsrcy1"], 32, "B32")
    if "literal" in fields:
        result["simm32"] = Operand("c", fields["literal"], 32, "B32")
    return result


def _dual_format(found: Any, role: str) -> str:
    name = (found.opx if role == "s0" else found.opy).name
    return "PK2_F16" if "DOT2" in name else "B32"


def _tables(name: str) -> Any:
    """One of tinygrad's modules. Importing them changes Python's recursion limit."""
    limit = sys.getrecursionlimit()
    try:
        return import_module(name)
    finally:
        sys.setrecursionlimit(limit)


@cache
def _texts(family: str) -> dict[str, dict[str, str]]:
    """Pseudocode by name, then by encoding."""
    found: dict[str, dict[str, str]] = {}
    for key, text in _tables(f"tinygrad.runtime.autogen.amd.{family}.str_pcode").PCODE.items():
        name = re.sub(r"_E(32|64)$", "", key.name)
        found.setdefault(name, {})[type(key).__name__.removesuffix("Op")] = text
    return found


@cache
def meaning(family: str, name: str, format_: str) -> tuple[Statement, ...]:
    """The pseudocode of an instruction; raises `UnknownInstruction` if the manual has none."""
    from tools.amd_executor.corrections import ADDED, correct

    if name in ADDED:
        return parse(ADDED[name])
    texts = _texts(family).get(name) or _texts(family).get(name.replace("V_DUAL_", "V_"))
    if not texts:
        raise UnknownInstruction(f"{name}: no pseudocode")
    text = texts.get(format_) or next(iter(texts.values()))
    return parse(correct(name, text, family))
