"""Floats of 8 bits: the numbers that they are, and conversions."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from llvmlite import ir

from tools.amd_executor.pseudocode.values import Value, Values

FLOAT, BYTE, WORD, LONG = ir.FloatType(), ir.IntType(8), ir.IntType(32), ir.IntType(64)


def numbers(kind: str, *, fnuz: bool) -> list[float]:
    """The values of all numbers of the format, FP8 or BF8, in the order of their bits."""
    fraction, bias = (3, 7) if kind == "FP8" else (2, 15)
    return [_number(bits, fraction, bias + fnuz, fnuz=fnuz) for bits in range(256)]


def _number(bits: int, fraction: int, bias: int, *, fnuz: bool) -> float:
    sign = -1.0 if bits & 0x80 else 1.0
    magnitude = bits & 0x7F
    exponent, steps = magnitude >> fraction, magnitude & (1 << fraction) - 1
    if fnuz and bits == 0x80:
        return math.nan
    if not fnuz and fraction == 3 and magnitude == 0x7F:
        return math.nan
    if not fnuz and fraction == 2 and exponent == 31:
        return math.nan if steps else sign * math.inf
    whole = steps + (1 << fraction if exponent else 0)
    return sign * whole * 2.0 ** (max(exponent, 1) - bias - fraction)


def number_table(module: ir.Module, kind: str, *, fnuz: bool) -> ir.GlobalVariable:
    """`numbers` as a constant array in *module*."""
    name = f"numbers.{kind}{'.fnuz' if fnuz else ''}"
    found = module.globals.get(name)
    if found is None:
        array = ir.ArrayType(FLOAT, 256)
        found = ir.GlobalVariable(module, array, name)
        found.initializer = ir.Constant(array, [ir.Constant(FLOAT, number) for number in numbers(kind, fnuz=fnuz)])
        found.global_constant, found.linkage = True, "internal"
    return found


def widen(kind: str, values: Values, value: Value, *, fnuz: bool) -> Value:
    """The float32 that 8 bits are."""
    builder = values.builder
    table = number_table(builder.module, kind, fnuz=fnuz)
    byte = builder.zext(values.resize(values.pattern(value), 8, "u").llvm, LONG)
    return Value(builder.load(builder.gep(table, [byte], source_etype=FLOAT), typ=FLOAT), "f", 32)


def narrow(kind: str, values: Values, value: Value, *, fnuz: bool) -> Value:
    """A float32 as 8 bits, as with MODE.FP16_OVFL off: the number is as many steps from zero as there are middles of
    two neighbours below it, or at it and before an even one; what is too large is infinite, or NaN."""
    builder = values.builder
    positive = [number for number in numbers(kind, fnuz=fnuz)[:128] if math.isfinite(number)]
    size = values.named("fabs", value).llvm
    steps: ir.Value = ir.Constant(WORD, 0)
    last = 2 * positive[-1] - positive[-2]  # would be the next number
    for index, (low, high) in enumerate(zip(positive, [*positive[1:], last], strict=True)):
        ordering = ">=" if index % 2 else ">"
        is_above = builder.fcmp_ordered(ordering, size, ir.Constant(FLOAT, (low + high) / 2))
        steps = builder.add(steps, builder.zext(is_above, WORD))
    sign = builder.shl(builder.lshr(values.pattern(value).llvm, ir.Constant(WORD, 31)), ir.Constant(WORD, 7))
    is_nan = builder.fcmp_unordered("uno", size, size)
    found = builder.or_(builder.select(is_nan, ir.Constant(WORD, 0x7F), steps), sign)
    if fnuz:
        special = builder.or_(is_nan, builder.icmp_unsigned(">", steps, ir.Constant(WORD, len(positive) - 1)))
        found = builder.select(special, ir.Constant(WORD, 0x80), found)
        is_zero = builder.icmp_unsigned("==", found, ir.Constant(WORD, 0x80))
        found = builder.select(builder.and_(is_zero, builder.not_(special)), ir.Constant(WORD, 0), found)
    return Value(builder.trunc(found, BYTE), "u", 8)


CONVERSIONS: dict[str, Callable[..., Value]] = {
    f"{name}{'_fnuz' if fnuz else ''}": partial(way, kind.upper(), fnuz=fnuz)
    for kind in ("fp8", "bf8")
    for name, way in ((f"{kind}_to_f32", widen), (f"f32_to_{kind}", narrow))
    for fnuz in (False, True)
}
"""By their names in pseudocode; those of the formats without infinities have an ending that it has not."""
