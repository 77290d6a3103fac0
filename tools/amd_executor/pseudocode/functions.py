"""The functions that pseudocode calls without defining them."""

from __future__ import annotations

import re
from collections.abc import Callable

from llvmlite import ir

from tools.amd_executor.pseudocode import small_floats
from tools.amd_executor.pseudocode.tree import PseudocodeError
from tools.amd_executor.pseudocode.values import Value, Values, constant, real

_FIELDS = {16: (10, 5), 32: (23, 8), 64: (52, 11)}
"""Bits of the fraction and of the exponent of each float."""

_CONVERSION = re.compile(r"(bf|[uif])(\d+)_to_(bf|[uif])(\d+)$")
_EXTREME = re.compile(r"v_(min|max)(3?)(?:_num)?_([uif])(\d+)$")

Function = Callable[..., Value]


def call(values: Values, name: str, arguments: list[Value]) -> Value:
    """``name(arguments)``."""
    function = _FUNCTIONS.get(name)
    if function is not None:
        return function(values, *arguments)
    match = _CONVERSION.match(name)
    if match:
        return _convert(values, arguments[0], match[1], int(match[2]), match[3], int(match[4]))
    match = _EXTREME.match(name)
    if match:
        result = arguments[0]
        for other in arguments[1:]:
            result = _extreme(values, match[1], match[3], result, other)
        return result
    raise PseudocodeError(f"the function {name}")


def _convert(values: Values, value: Value, source: str, width: int, kind: str, bits: int) -> Value:
    value = values.view(value, source, width) if not value.is_float else value
    if kind == "f":
        return values.real(value, bits)
    if kind == "bf":
        return values.bfloat(value)
    return values.whole(value, kind, bits) if value.is_float else values.resize(value, bits, kind)


def _extreme(values: Values, which: str, kind: str, left: Value, right: Value) -> Value:
    if kind == "f":
        return values.named("minimumnum" if which == "min" else "maximumnum", *values.meet(left, right))
    bits = max(left.bits, right.bits)
    left, right = values.resize(left, bits, kind), values.resize(right, bits, kind)
    chosen = values.compare("<" if which == "min" else ">", left, right).llvm
    return Value(values.builder.select(chosen, left.llvm, right.llvm), kind, bits)


def _raw(values: Values, value: Value) -> tuple[ir.Value, int, int]:
    fraction, exponent = _FIELDS[value.bits]
    return values.pattern(value).llvm, fraction, exponent


def _exponent_field(values: Values, value: Value) -> ir.Value:
    raw, fraction, width = _raw(values, value)
    shifted = values.builder.lshr(raw, ir.Constant(raw.type, fraction))
    return values.builder.and_(shifted, ir.Constant(raw.type, (1 << width) - 1))


def exponent(values: Values, value: Value) -> Value:
    """The biased exponent."""
    field = _exponent_field(values, value)
    return values.resize(Value(field, "u", value.bits), 32, "i")


def is_denormal(values: Values, value: Value) -> Value:
    raw, fraction, _ = _raw(values, value)
    low = values.builder.and_(raw, ir.Constant(raw.type, (1 << fraction) - 1))
    some = values.builder.icmp_unsigned("!=", low, ir.Constant(raw.type, 0))
    none = values.builder.icmp_unsigned("==", _exponent_field(values, value), ir.Constant(raw.type, 0))
    return values.flag(values.builder.and_(some, none))


def _is_nan(values: Values, value: Value) -> Value:
    return values.flag(values.builder.fcmp_unordered("uno", value.llvm, value.llvm))


def _quiet_bit(values: Values, value: Value) -> ir.Value:
    raw, fraction, _ = _raw(values, value)
    bit = values.builder.and_(raw, ir.Constant(raw.type, 1 << (fraction - 1)))
    return values.builder.icmp_unsigned("!=", bit, ir.Constant(raw.type, 0))


def _is_signalling(values: Values, value: Value) -> Value:
    quiet = values.builder.not_(_quiet_bit(values, value))
    return values.flag(values.builder.and_(_is_nan(values, value).llvm, quiet))


def _is_quiet(values: Values, value: Value) -> Value:
    return values.flag(values.builder.and_(_is_nan(values, value).llvm, _quiet_bit(values, value)))


def _quieten(values: Values, value: Value) -> Value:
    raw, fraction, _ = _raw(values, value)
    return values.view(
        Value(values.builder.or_(raw, ir.Constant(raw.type, 1 << (fraction - 1))), "u", value.bits), "f", value.bits
    )


def _sign(values: Values, value: Value) -> Value:
    return values.bit(value, constant(value.bits - 1))


def _library(name: str) -> Function:
    """A function of the C library, which has variants for floats and doubles."""

    def function(values: Values, *arguments: Value) -> Value:
        bits = max(32, *(argument.bits for argument in arguments))
        wide = [values.real(argument, bits).llvm for argument in arguments]
        result = Value(values.intrinsic(name + ("f" if bits == 32 else ""), *wide), "f", bits)
        return values.real(result, arguments[0].bits)

    return function


def _named(name: str) -> Function:
    return lambda values, *arguments: values.named(name, *arguments)


def _fma(values: Values, first: Value, second: Value, third: Value) -> Value:
    bits = max(value.bits for value in (first, second, third))
    return values.named("fma", *(values.real(value, bits) for value in (first, second, third)))


def _absolute(values: Values, value: Value) -> Value:
    if value.is_float:
        return values.named("fabs", value)
    negative = values.compare("<", value, constant(0, value.bits, value.kind)).llvm
    return Value(values.builder.select(negative, values.builder.neg(value.llvm), value.llvm), value.kind, value.bits)


def _power(values: Values, base: Value, power: Value) -> Value:
    if str(base.llvm.constant) != "2.0":
        raise PseudocodeError("a power of something else than 2")
    return _library("exp2")(values, power)


def _fract(values: Values, value: Value) -> Value:
    return values.operate("-", value, values.named("floor", value))


def _is_even(values: Values, value: Value) -> Value:
    half = values.operate("*", value, real(0.5, value.bits))
    return values.compare("==", half, values.named("floor", half))


def _fraction_and_exponent(values: Values, value: Value) -> tuple[Value, Value]:
    """The result of C's frexp for any number that is not zero."""
    raw, fraction, width = _raw(values, value)
    lifted = values.ldexp(value, constant(fraction + 2))
    denormal = is_denormal(values, value).llvm
    chosen = Value(values.builder.select(denormal, values.pattern(lifted).llvm, raw), "u", value.bits)
    power = exponent(values, values.view(chosen, "f", value.bits)).llvm
    less = values.builder.select(denormal, ir.Constant(power.type, fraction + 2), ir.Constant(power.type, 0))
    bias = (1 << (width - 1)) - 2
    found = values.builder.sub(values.builder.sub(power, less), ir.Constant(power.type, bias))
    kept = values.builder.and_(
        chosen.llvm, ir.Constant(raw.type, ((1 << value.bits) - 1) ^ (((1 << width) - 1) << fraction))
    )
    scaled = values.builder.or_(kept, ir.Constant(raw.type, bias << fraction))
    return values.view(Value(scaled, "u", value.bits), "f", value.bits), Value(found, "i", 32)


def _is_ordinary(values: Values, value: Value) -> ir.Value:
    """Neither zero, infinite nor NaN."""
    zero = values.builder.fcmp_ordered("==", value.llvm, ir.Constant(value.llvm.type, 0.0))
    width = _FIELDS[value.bits][1]
    field = _exponent_field(values, value)
    special = values.builder.icmp_unsigned("==", field, ir.Constant(field.type, (1 << width) - 1))
    return values.builder.not_(values.builder.or_(zero, special))


def _frexp_mantissa(values: Values, value: Value) -> Value:
    fraction, _ = _fraction_and_exponent(values, value)
    return Value(values.builder.select(_is_ordinary(values, value), fraction.llvm, value.llvm), "f", value.bits)


def _frexp_exponent(values: Values, value: Value) -> Value:
    _, power = _fraction_and_exponent(values, value)
    return Value(
        values.builder.select(_is_ordinary(values, value), power.llvm, ir.Constant(power.llvm.type, 0)), "i", 32
    )


def _half_towards_zero(values: Values, value: Value) -> Value:
    """A float as a half, rounded towards zero."""
    near = values.real(value, 16)
    farther = values.compare(">", values.named("fabs", values.real(near, 32)), values.named("fabs", value)).llvm
    raw = values.pattern(near).llvm
    return values.view(
        Value(values.builder.select(farther, values.builder.sub(raw, ir.Constant(raw.type, 1)), raw), "u", 16), "f", 16
    )


def _sign_extend(values: Values, value: Value) -> Value:
    return values.resize(Value(value.llvm, "i", value.bits, value.known), 64 if value.bits > 16 else 32, "i")


def _sign_extend_from(values: Values, value: Value, width: Value) -> Value:
    """The low *width* bits as a signed number."""
    size = values.resize(width, value.bits, "u")
    rest = values.operate("-", constant(value.bits, value.bits, "u"), size)
    moved = values.shift("<<", values.pattern(value), rest)
    found = values.shift(">>", Value(moved.llvm, "i", value.bits), rest)
    empty = values.compare("==", size, constant(0, value.bits, "u")).llvm
    return Value(values.builder.select(empty, ir.Constant(found.llvm.type, 0), found.llvm), "i", value.bits)


def _first_bit(values: Values, value: Value) -> Value:
    """The index of the lowest bit that is set, -1 if there is none."""
    found = values.intrinsic(f"llvm.cttz.i{value.bits}", value.llvm, ir.Constant(ir.IntType(1), 0))
    some = values.truth(value)
    return values.resize(
        Value(values.builder.select(some, found, ir.Constant(found.type, -1)), "i", value.bits), 32, "i"
    )


def _count(values: Values, value: Value) -> Value:
    return values.resize(Value(values.intrinsic(f"llvm.ctpop.i{value.bits}", value.llvm), "u", value.bits), 32, "u")


def _two_over_pi(bits: int) -> int:
    """The first *bits* binary digits of 2/pi after the point."""
    scale = 1 << (bits + 64)

    def arctangent(inverse: int) -> int:
        total = term = scale // inverse
        number, sign = 3, -1
        while term:
            term //= inverse * inverse
            total += sign * (term // number)
            number, sign = number + 2, -sign
        return total

    pi = 4 * (4 * arctangent(5) - arctangent(239))
    return (2 * scale * scale // pi) >> 64


def _two_over_pi_part(values: Values, shift: Value) -> Value:
    """53 digits of 2/pi from *shift* on, as an integer in a double."""
    digits = 1201
    wide = ir.IntType(1280)
    table = Value(ir.Constant(wide, _two_over_pi(digits) << 53), "u", 1280)
    amount = values.operate("-", constant(digits, 32, "i"), values.resize(shift, 32, "i"))
    part = values.shift(">>", table, values.resize(amount, 1280, "u"))
    low = values.builder.and_(values.resize(part, 64, "u").llvm, ir.Constant(ir.IntType(64), (1 << 53) - 1))
    return values.real(Value(low, "u", 64), 64)


_FUNCTIONS: dict[str, Function] = {
    "abs": _absolute,
    "bitCount": _count,
    "ceil": _named("ceil"),
    "cos": _library("cos"),
    "cvtToQuietNAN": _quieten,
    "exponent": exponent,
    "f32_to_f16_towards_zero": _half_towards_zero,
    "f32_to_u8": lambda values, value: values.whole(value, "u", 8),
    "floor": _named("floor"),
    "fma": _fma,
    "fract": _fract,
    "frexp_exponent": _frexp_exponent,
    "frexp_mantissa": _frexp_mantissa,
    "isEven": _is_even,
    "isNAN": _is_nan,
    "isQuietNAN": _is_quiet,
    "isSignalNAN": _is_signalling,
    "ldexp": lambda values, value, power: values.ldexp(value, power),
    "log2": _library("log2"),
    "pow": _power,
    "rint": _named("rint"),
    "s_ff1_i32_b32": _first_bit,
    "s_ff1_i32_b64": _first_bit,
    "sign": _sign,
    "signext": _sign_extend,
    "signext_from_bit": _sign_extend_from,
    "sin": _library("sin"),
    "sqrt": _named("sqrt"),
    "trunc": _named("trunc"),
    "two_over_pi": _two_over_pi_part,
    **small_floats.CONVERSIONS,
}
"""Some are our own, for the text of `corrections`."""
