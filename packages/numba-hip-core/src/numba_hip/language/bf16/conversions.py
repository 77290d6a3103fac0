"""Conversions of bfloat16 by name: ``int32_to_bfloat16_ru``, ``bfloat16_to_uint8_rz``, ``bfloat16_as_int16``.

The last two letters give the rounding: to nearest (rn), to zero (rz), down (rd) or up (ru). Each conversion also has
its name from CUDA's and HIP's headers: ``int2bfloat16_ru``, ``bfloat162uchar_rz``, ``bfloat16_as_short``.
"""

from __future__ import annotations

from numba.core import types

from numba_hip.bfloat import Bfloat16, bfloat16
from numba_hip.language.bf16.bits import (
    DOWN,
    NEAREST,
    TO_ZERO,
    UP,
    from_integer,
    narrow,
    to_integer,
    to_odd,
    widen,
)
from numba_hip.language.stub import Operation, Stub, numeric_function

WORDS = {NEAREST: "to the nearest", TO_ZERO: "to zero", DOWN: "down", UP: "up"}


def _stub(name: str, source: types.Type, result: types.Type, meaning: str, operation: Operation) -> Stub:
    return numeric_function(
        f"bf16.{name}", "a", meaning, operation, operand=source, result=result,
        accepted=(Bfloat16, types.Float, types.Integer, types.Boolean), refusal=f"takes a {source}",
        module="numba_hip.language.bf16",
    )  # fmt: skip


def _from_integer(kind: types.Integer, direction: str) -> Stub:
    return _stub(
        f"{kind}_to_bfloat16_{direction}", kind, bfloat16, f"the {kind} as a bfloat16, rounded {WORDS[direction]}.",
        lambda context, builder, value: from_integer(builder, value, bool(kind.signed), direction),
    )  # fmt: skip


def _to_integer(kind: types.Integer, direction: str) -> Stub:
    return _stub(
        f"bfloat16_to_{kind}_{direction}", bfloat16, kind,
        f"the bfloat16 as an {kind}, rounded {WORDS[direction]}; the nearest that there is, and 0 for NaN.",
        lambda context, builder, value: to_integer(context, builder, value, kind, direction),
    )  # fmt: skip


def _from_float(direction: str) -> Stub:
    return _stub(
        f"float32_to_bfloat16_{direction}", types.float32, bfloat16,
        f"the float32 as a bfloat16, rounded {WORDS[direction]}.",
        lambda context, builder, value: narrow(builder, value, direction),
    )  # fmt: skip


def _same_bits(source: types.Type, result: types.Type) -> Stub:
    return _stub(
        f"{source}_as_{result}", source, result, f"the bits of the {source} as a {result}.",
        lambda context, builder, value: value,
    )  # fmt: skip


def _all() -> list[Stub]:
    wide = [types.int16, types.int32, types.int64, types.uint16, types.uint32, types.uint64]
    stubs = [make(kind, direction) for kind in wide for direction in WORDS for make in (_from_integer, _to_integer)]
    stubs += [_to_integer(kind, TO_ZERO) for kind in (types.int8, types.uint8)]
    stubs += [_from_float(direction) for direction in WORDS]
    for kind in (types.int16, types.uint16):
        stubs += [_same_bits(bfloat16, kind), _same_bits(kind, bfloat16)]
    stubs.append(
        _stub("float32_to_bfloat16", types.float32, bfloat16, "the float32 as a bfloat16, rounded to the nearest.",
              lambda context, builder, value: narrow(builder, value))
    )  # fmt: skip
    stubs.append(
        _stub("float64_to_bfloat16", types.float64, bfloat16, "the float64 as a bfloat16, rounded once.",
              lambda context, builder, value: narrow(builder, to_odd(builder, value)))
    )  # fmt: skip
    stubs.append(
        _stub("bfloat16_to_float32", bfloat16, types.float32, "the bfloat16 as a float32, which is exact.",
              lambda context, builder, value: widen(builder, value))
    )  # fmt: skip
    return stubs


C_NAMES = {
    "float32": "float", "float64": "double", "int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort",
    "int32": "int", "uint32": "uint", "int64": "ll", "uint64": "ull",
}  # fmt: skip
"""What the headers call the types."""


def _name_in_c(name: str) -> str:
    """The name in CUDA's and HIP's headers of the conversion *name*, without the underscores at its beginning."""
    source, separator, result = name.partition("_to_" if "_to_" in name else "_as_")
    result, _, direction = result.partition("_")
    joint = "2" if separator == "_to_" else separator
    return f"{C_NAMES.get(source, source)}{joint}{C_NAMES.get(result, result)}" + (f"_{direction}" if direction else "")


_BY_TYPE = {stub.__name__: stub for stub in _all()}

CONVERSIONS = _BY_TYPE | {_name_in_c(name): stub for name, stub in _BY_TYPE.items()}
"""Every conversion by its names."""
