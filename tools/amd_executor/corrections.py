"""Corrections of the manuals' pseudocode, where it is not exact or not what the hardware does.

Each concerns rounding, a number out of range, or a slip that would break the instruction sequences of compilers.
"""

from __future__ import annotations

import re

_REPLACED: tuple[tuple[str, str], ...] = (
    # It would round half of an odd number up, and change large numbers.
    (r"V_RNDNE_(F\d+)", "D0.{0} = rint(S0.{0})"),
    # A power of two that no float can represent would become infinite before it is used.
    (r"V_LDEXP_(F16)", "D0.{0} = ldexp(S0.{0}, S1.i16)"),
    (r"V_LDEXP_(F\d+)", "D0.{0} = ldexp(S0.{0}, S1.i32)"),
    # Denormal numbers have a fraction and an exponent like all other numbers.
    (r"V_FREXP_EXP_I32_(F\d+)", "D0.i32 = frexp_exponent(S0.{0})"),
    (r"V_FREXP_EXP_I16_(F\d+)", "D0.i16 = frexp_exponent(S0.{0})"),
    (r"V_FREXP_MANT_(F\d+)", "D0.{0} = frexp_mantissa(S0.{0})"),
    # Quotients out of range, or below the smallest normal number, need more digits than the manual's steps keep: the
    # last instruction of a division, which gets the numbers themselves, computes the rounded quotient.
    (r"V_DIV_FIXUP_(F\d+)", "D0.{0} = S2.{0} / S1.{0}"),
    (
        r"[SV]_CVT_PK_?RTZ_F16_(F32)",
        "D0[15 : 0].f16 = f32_to_f16_towards_zero(S0.{0});\nD0[31 : 16].f16 = f32_to_f16_towards_zero(S1.{0})",
    ),
)

_SMALL_FLOAT = re.compile(r"\b(f32_to_(?:fp8|bf8)|(?:fp8|bf8)_to_f32)\b")

_CHANGED: tuple[tuple[str, str, str], ...] = (
    # In bytes, the branch's distance has more than 16 bits.
    (r"S_", r"SIMM16\.i16 \* 16'4", "SIMM16.i32 * 4"),
    (
        r"V_CVT_PK_(B?F16|FP8|BF8)_F32",
        r"prev_mode = ROUND_MODE;\nROUND_MODE = ROUND_NEAREST_EVEN;|;\nROUND_MODE = prev_mode",
        "",
    ),
    # Values that are not scaled are passed on.
    (r"V_DIV_SCALE_F32", r"^VCC = 0x0LL;", "VCC = 0x0LL;\nD0.f32 = S0.f32;"),
    (r"V_DIV_SCALE_F64", r"^VCC = 0x0LL;", "VCC = 0x0LL;\nD0.f64 = S0.f64;"),
    # The quotient is scaled back as the operands were scaled.
    (r"V_DIV_FMAS_F32", r"2\.0F \*\* 32 \*", "(exponent(S2.f32) > 127 ? 2.0F ** 64 : 2.0F ** -64) *"),
    (r"V_DIV_FMAS_F64", r"2\.0 \*\* 64 \*", "(exponent(S2.f64) > 1023 ? 2.0 ** 128 : 2.0 ** -128) *"),
    (
        r"V_TRIG_PREOP_F64",
        r"64'F\(\(1201'B\(2\.0 / PI\)\[1200 : 0\] << shift\.u32\) & 1201'0x1fffffffffffff\)",
        "two_over_pi(shift)",
    ),
    # The executor chooses the byte of an operand by SDWA and the half of a result by itself.
    (r"V_CVT_F32_(?:FP8|BF8)", r"(?s)^if SDWA.*BYTE0 implied\n(.*)\nendif$", r"\1"),
    (r"V_CVT_(F32|PK)_(?:FP8|BF8)", r"VGPR\[laneId\]\[SRC0\.u32\]", "S0"),
    (r"V_CVT_F32_(?:FP8|BF8)", r"\.(?:fp8|bf8)\b", ".u8"),
    (
        r"V_CVT_PK_(?:FP8|BF8)_F32",
        r"(?s)^\s*if OPSEL.*then\nVGPR\[laneId\]\[VDST\.u32\]\[15 : 0\](.*?\}).*",
        r"D0[15 : 0]\1",
    ),
    # Either half of 64 bits can be meant.
    (r"V_PK_MOV_B32", r"(S[01])\.u32", r"\1"),
    # Its intermediate result is not rounded, unlike on earlier processors.
    (r"V_MAD_MIX", r"in\[0\] \* in\[1\] \+ in\[2\]", "fma(in[0], in[1], in[2])"),
)


ADDED = dict.fromkeys(("V_ACCVGPR_READ", "V_ACCVGPR_WRITE", "V_ACCVGPR_MOV_B32"), "D0.b32 = S0.b32")
"""Instructions that the manuals describe only in words."""


def correct(name: str, text: str, family: str) -> str:
    """*text*, or its replacement."""
    for pattern, replacement in _REPLACED:
        match = re.fullmatch(pattern, name)
        if match:
            return replacement.format(*(part.lower() for part in match.groups()))
    for pattern, wrong, right in _CHANGED:
        if re.match(pattern, name):
            text = re.sub(wrong, right, text)
    # CDNA's floats of 8 bits are those of gfx942, which have no infinities and no negative zero.
    return _SMALL_FLOAT.sub(r"\1_fnuz", text) if family == "cdna" else text
