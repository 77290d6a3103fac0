"""Functions that need series: those of the CPU device's math library, functions built on them, and those of the C math
library.

Fast variants (``__sinf``) are the accurate ones, as they cost the same on this device.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hip_devicelib.cpu.catalog import FUNCTIONS, PREFIX
from hip_devicelib.cpu.expressions import FLOAT64, Real, Word, choose, muladd, select
from hip_devicelib.cpu.functions import special
from hip_devicelib.cpu.functions.function_builder import FunctionBuilder, Operation, call_math, number_of
from hip_devicelib.cpu.pairs import multiply_constant

_PI = (3.141592653589793, 1.2246467991473532e-16)
_SQRT_HALF = (0.7071067811865476, -4.833646656726457e-17)
_TWO_OVER_SQRT_PI = 1.1283791670955126


def _library(name: str) -> Operation:
    return lambda body, *operands: call_math(name, *operands)


def _wide(operation: Operation) -> Operation:
    """*operation* computed in float64, also for float32."""

    def build(body: FunctionBuilder, *operands: Any) -> Any:
        return operation(body, *(x.widened() if isinstance(x, Real) and body.single else x for x in operands))

    return build


def _from_c(name: str) -> Operation:
    """The C library's function *name*; integers among its arguments are ``int``."""

    def operation(body: FunctionBuilder, *operands: Any) -> Real:
        spelled = f"{name}f" if body.single else name
        return Real(body, body.call_c(spelled, body.format.real, *(operand.value for operand in operands)))

    return operation


def _power(body: FunctionBuilder, x: Real, exponent: Word) -> Real:
    """x to an integer, which float64 holds exactly."""
    return call_math("pow", x, number_of(x.code, exponent))


def _length(body: FunctionBuilder, *operands: Real) -> Real:
    """The root of the sum of the squares, without overflow in between; infinite if any of them is."""
    first, *rest = operands
    total = abs(first)
    for operand in rest:
        total = call_math("hypot", total, operand)
    return total


def _inverse_length(body: FunctionBuilder, *operands: Real) -> Real:
    """1 / the length, even if the length overflows."""
    large = abs(operands[0]) > 1.0
    for operand in operands[1:]:
        large = large | (abs(operand) > 1.0)
    factor = choose(large, 0.25, 1.0)
    return 1.0 / _length(body, *(operand * factor for operand in operands)) * factor


def _length_of_array(body: FunctionBuilder, count: Word, address: Any) -> Real:
    """The root of the sum of the squares of *count* numbers, without overflow in between, for float64; 0 of none."""
    builder, code = body.builder, body.widened()
    elements = builder.bitcast(address, body.format.real.as_pointer())
    before = builder.block
    head, step, after = (builder.append_basic_block(name) for name in ("length", "length.step", "length.end"))
    builder.branch(head)
    builder.position_at_end(head)
    index, total = builder.phi(count.value.type), builder.phi(FLOAT64.real)
    index.add_incoming(count.value.type(0), before)
    total.add_incoming(FLOAT64.real(0.0), before)
    builder.cbranch(builder.icmp_signed("<", index, count.value), step, after)
    builder.position_at_end(step)
    element = Real(body, builder.load(builder.gep(elements, [index])))
    following = call_math("hypot", Real(code, total), element.widened() if body.single else element)
    index.add_incoming(builder.add(index, index.type(1)), builder.block)
    total.add_incoming(following.value, builder.block)
    builder.branch(head)
    builder.position_at_end(after)
    return Real(code, total)


def _inverse_length_of_array(body: FunctionBuilder, count: Word, address: Any) -> Real:
    """1 / the length, infinite for 0."""
    return 1.0 / _length_of_array(body, count, address)


def _sincospi(x: Real) -> tuple[Real, Real]:
    """sin and cos of pi x, for float64: x is reduced by quarters exactly before it is multiplied."""
    code = x.code
    turn = muladd((x * 0.5).rint(), -2.0, x)  # from -1 to 1
    doubled = (turn + turn).rint()
    r = muladd(doubled, -0.5, turn)
    angle, rest = multiply_constant(r, _PI)
    sine, cosine = call_math("sin", angle), call_math("cos", angle)
    sine, cosine = muladd(rest, cosine, sine), muladd(-rest, sine, cosine)
    odd = abs(doubled).equals(1.0)
    turned = abs(doubled).equals(2.0)
    first = select(odd, cosine, sine)
    second = select(odd, sine, cosine)
    negative_sine = turned | doubled.equals(-1.0)
    negative_cosine = turned | doubled.equals(1.0)
    first = select(negative_sine, -first, first)
    second = select(negative_cosine, -second, second)
    # The sine of pi times an integer is 0 with the integer's sign; the cosine of pi times half an odd number is +0.
    exact = r.equals(0.0)
    first = select(exact & ~odd, code.real(0.0).with_sign_of(x), first)
    second = select(exact & odd, code.real(0.0), second)
    return first, second


def _sincos(x: Real) -> tuple[Real, Real]:
    return call_math("sin", x), call_math("cos", x)


def _both(pair: Any, wide: bool) -> Operation:
    """A function that stores both results through its pointers."""

    def operation(body: FunctionBuilder, x: Real, first: Any, second: Any) -> None:
        results = pair(x.widened() if wide and body.single else x)
        for pointer, result in zip((first, second), results, strict=True):
            value = result.narrowed(body) if result.code.format != body.format else result
            body.builder.store(value.value, body.builder.bitcast(pointer, body.format.real.as_pointer()))

    return operation


def _normal_cdf(body: FunctionBuilder, x: Real) -> Real:
    """erfc(-x / sqrt(2)) / 2, for float64, corrected by the rounding error of the argument."""
    scaled, rest = multiply_constant(-x, _SQRT_HALF)
    slope = call_math("exp", -(scaled * scaled)) * _TWO_OVER_SQRT_PI
    value = call_math("erfc", scaled)
    corrected = muladd(-rest, slope, value)
    return select(abs(x) < 40.0, corrected, value) * 0.5


def _inverse_root(body: FunctionBuilder, x: Real) -> Real:
    return 1.0 / call_math("cbrt", x)


_NAMES = {entry.name for entry in FUNCTIONS.values() if entry.symbol.startswith(PREFIX)} - {"sincos"}
_C_NAMES = "lgamma tgamma j0 j1 jn y0 y1 yn"

MATHEMATICS: Mapping[str, Operation] = {
    **{name: _library(name) for name in sorted(_NAMES)},
    **{name: _from_c(name) for name in _C_NAMES.split()},
    "pown": _wide(_power),
    "rcbrt": _wide(_inverse_root),
    "rhypot": _wide(_inverse_length),
    "len3": _wide(_length),
    "len4": _wide(_length),
    "rlen3": _wide(_inverse_length),
    "rlen4": _wide(_inverse_length),
    "sinpi": _wide(lambda body, x: _sincospi(x)[0]),
    "cospi": _wide(lambda body, x: _sincospi(x)[1]),
    "sincos": _both(_sincos, False),
    "sincospi": _both(_sincospi, True),
    "ncdf": _wide(_normal_cdf),
    "ncdfinv": _wide(lambda body, p: special.normal_quantile(p)),
    "erfinv": _wide(lambda body, x: special.erfinv(x)),
    "erfcinv": _wide(lambda body, x: special.erfcinv(x)),
    "erfcx": _wide(lambda body, x: special.erfcx(x)),
    "i0": _wide(lambda body, x: special.bessel_i0(x)),
    "i1": _wide(lambda body, x: special.bessel_i1(x)),
}
"""By the name that OCML has for them."""

OF_ARRAYS: Mapping[str, Operation] = {
    "norm": _length_of_array,
    "normf": _length_of_array,
    "rnorm": _inverse_length_of_array,
    "rnormf": _inverse_length_of_array,
}
"""Functions of how many numbers an array has, and of its address, by the names that HIP has for them."""
