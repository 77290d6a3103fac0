"""Conversions between numbers, and between numbers and their bits.

Numbers out of an integer's range become its nearest value, and NaN becomes 0, as on AMD GPUs. As in HIP, conversions
between ``__half`` and integers ignore the rounding mode in their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from llvmlite import ir

from hip_devicelib.cpu.functions.function_builder import HALF, FunctionBuilder, Operation
from hip_devicelib.cpu.saturation import saturate

_ROUNDINGS = {"rn": "llvm.rint", "rz": "llvm.trunc", "rd": "llvm.floor", "ru": "llvm.ceil"}
_OCML_ROUNDINGS = {"rtz": "rz", "rtn": "rd", "rtp": "ru"}
_SIGNED = {"int": True, "uint": False, "ll": True, "ull": False, "short": True, "ushort": False}
_FLOATS: tuple[Any, ...] = (HALF, ir.FloatType(), ir.DoubleType())


def _width(kind: Any) -> int:
    return (16, 32, 64)[_FLOATS.index(kind)]


def to_integer(rounding: str | None, signed: bool) -> Operation:
    """A number to an integer, rounded first by an intrinsic."""

    def operation(body: FunctionBuilder, x: Any) -> Any:
        value = x.value
        if rounding is not None:
            value = body.call_intrinsic(rounding, value.type, value)
        return saturate(body.builder, value, body.result_type, signed)

    return operation


def _from_integer(rounding: str, signed: bool) -> Operation:
    """An integer to a number; to ``__half`` via float32, which represents every integer that is finite in half
    precision."""

    def operation(body: FunctionBuilder, _: Any) -> Any:
        builder, (x,) = body.builder, body.arguments
        convert = builder.sitofp if signed else builder.uitofp
        if body.result_type == HALF:
            return builder.fptrunc(convert(x, ir.FloatType()), HALF)
        nearest = convert(x, body.result_type)
        if rounding == "rn":
            return nearest
        # The nearest number is compared with x as an integer. Only at the end of the range can it lie outside of the
        # range.
        integer = saturate(builder, nearest, x.type, signed)
        end = ir.Constant(nearest.type, 2.0 ** (x.type.width - signed))
        outside = builder.fcmp_ordered(">=", nearest, end)
        compare = builder.icmp_signed if signed else builder.icmp_unsigned
        above = builder.or_(outside, compare(">", integer, x))
        below = builder.and_(builder.not_(outside), compare("<", integer, x))
        negative = compare("<", x, ir.Constant(x.type, 0))
        return _directed(body, nearest, above, below, negative, rounding)

    return operation


def _narrow(rounding: str) -> Operation:
    """A number to a narrower format."""

    def operation(body: FunctionBuilder, _: Any) -> Any:
        builder, (x,) = body.builder, body.arguments
        nearest = builder.fptrunc(x, body.result_type)
        if rounding == "rn":
            return nearest
        back = builder.fpext(nearest, x.type)
        above, below = builder.fcmp_ordered(">", back, x), builder.fcmp_ordered("<", back, x)
        negative = builder.fcmp_ordered("<", x, ir.Constant(x.type, 0.0))
        return _directed(body, nearest, above, below, negative, rounding)

    return operation


def _directed(body: FunctionBuilder, nearest: Any, above: Any, below: Any, negative: Any, rounding: str) -> Any:
    """*nearest*, which lies *above* or *below* the exact number, or its neighbour on the side of *rounding*."""
    builder = body.builder
    if rounding == "rz":
        step_down, step_up = builder.and_(above, builder.not_(negative)), builder.and_(below, negative)
    elif rounding == "rd":
        step_down, step_up = above, ir.Constant(ir.IntType(1), 0)
    else:
        step_down, step_up = ir.Constant(ir.IntType(1), 0), below
    word = ir.IntType(_width(nearest.type))
    bits = builder.bitcast(nearest, word)
    sign = ir.Constant(word, 1 << (word.width - 1))
    magnitude = builder.and_(bits, ir.Constant(word, ~sign.constant))
    zero = builder.icmp_unsigned("==", magnitude, ir.Constant(word, 0))
    minus = builder.icmp_signed("<", bits, ir.Constant(word, 0))
    one = ir.Constant(word, 1)
    # Numbers of one sign are ordered as their bits are; from a zero the way up is to the least positive number.
    more, less = builder.add(bits, one), builder.sub(bits, one)
    up = builder.select(zero, one, builder.select(minus, less, more))
    down = builder.select(zero, builder.or_(sign, one), builder.select(minus, more, less))
    result = builder.select(step_up, up, builder.select(step_down, down, bits))
    return builder.bitcast(result, nearest.type)


def _reinterpret(body: FunctionBuilder, _: Any) -> Any:
    return body.builder.bitcast(body.arguments[0], body.result_type)


def _widen(body: FunctionBuilder, x: Any) -> Any:
    return x


def _part_of_double(shift: int) -> Operation:
    return lambda body, x: x.word() >> shift


def _double_of_parts(body: FunctionBuilder, high: Any, low: Any) -> Any:
    return ((high.resized(64) << 32) | low.resized(64)).real()


def _table() -> dict[str, Operation]:
    table: dict[str, Operation] = {}
    for (name, signed), (mode, intrinsic) in product(_SIGNED.items(), _ROUNDINGS.items()):
        table[f"__half2{name}_{mode}"] = to_integer(None, signed)
        table[f"__{name}2half_{mode}"] = _from_integer("rn", signed)
        for number in ("float", "double"):
            table[f"__{number}2{name}_{mode}"] = to_integer(intrinsic, signed)
            table[f"__{name}2{number}_{mode}"] = _from_integer(mode, signed)
    for mode in _ROUNDINGS:
        table[f"__double2float_{mode}"] = table[f"__float2half_{mode}"] = _narrow(mode)
    for ocml, mode in _OCML_ROUNDINGS.items():
        table[f"__ocml_cvt{ocml}_f32_f64"] = table[f"__ocml_cvt{ocml}_f16_f32"] = _narrow(mode)
        for width, bits, sign in product((32, 64), (32, 64), "su"):
            table[f"__ocml_cvt{ocml}_f{width}_{sign}{bits}"] = _from_integer(mode, sign == "s")
    for prefix, suffix in product(("l", "ll"), ("", "f")):
        table[f"{prefix}rint{suffix}"] = to_integer("llvm.rint", True)
        table[f"{prefix}round{suffix}"] = to_integer("llvm.round", True)
    pairs = "float_as_int float_as_uint double_as_longlong int_as_float uint_as_float longlong_as_double"
    halves = "half_as_short half_as_ushort short_as_half ushort_as_half"
    table.update({f"__{name}": _reinterpret for name in f"{pairs} {halves}".split()})
    table.update(
        {
            "__half2float": _widen,
            "__float2half": _narrow("rn"),
            "__double2hiint": _part_of_double(32),
            "__double2loint": _part_of_double(0),
            "__hiloint2double": _double_of_parts,
        }
    )
    return table


CONVERSIONS: Mapping[str, Operation] = _table()
"""By name."""
