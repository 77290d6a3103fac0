"""log, log2, log10, log1p, and the logarithm of a number of twice the precision.

The argument is 2**e m with m in [sqrt(1/2), sqrt(2)), and log m = f + g, f = m - 1 exact: for float32 g is f*f times a
polynomial, for float64, where that would be long, g = s (h + R(s*s)) - h with s = f / (2 + f), h = f*f / 2: the series
of atanh (Cody and Waite, "Software Manual for the Elementary Functions", 1980).
"""

from __future__ import annotations

import math

from hip_devicelib.cpu.expressions import Code, Real, Word, muladd, select
from hip_devicelib.cpu.pairs import Pair, add, add_ordered, error_of_product


def pattern(code: Code, value: float) -> int:
    """The bits of a positive constant, its significand cut to the format."""
    significand, exponent = math.frexp(value)
    form = code.format
    return ((exponent - 2 + form.bias) << form.fraction) + int(significand * 2.0 ** (form.fraction + 1))


def normalised(code: Code, x: Real) -> tuple[Real, Real]:
    """A positive x as 2**(-second) first, where first is normal."""
    shift = float(code.format.fraction + 1)
    small = x < code.format.tiny
    return select(small, x * 2.0**shift, x), select(small, code.real(shift), 0.0)


def exponent_of(code: Code, field: Word) -> Real:
    """A biased exponent as a number, without a conversion: an integer in the low bits of 2**fraction."""
    form = code.format
    magic = 2.0**form.fraction
    return (field | pattern(code, magic)).real() - (magic + form.bias)


def split(code: Code, x: Real) -> tuple[Real, Real, Word]:
    """e, m and the bits of 2**e, for a normal positive x = 2**e m with sqrt(1/2) <= m < sqrt(2)."""
    form = code.format
    one = form.bias << form.fraction
    moved = x.word() + (one - pattern(code, math.sqrt(0.5)))
    field = moved >> form.fraction
    step = field << form.fraction
    return exponent_of(code, field), (x.word() - (step - one)).real(), step


def tail(code: Code, f: Real) -> Real:
    """g of log(1 + f) = f + g."""
    if code.single:
        return f * f * code.polynomial(f, "log")
    s = f / (f + 2.0)
    z = s * s
    half = f * f * 0.5
    return muladd(s, muladd(z, code.polynomial(z, "log"), half), -half)


def finish(code: Code, x: Real, result: Real) -> Real:
    """*result* for positive finite x; minus infinity for zeros, NaN for negative numbers; x for infinity and NaN."""
    inf = float("inf")
    odd = select(x.equals(0.0), code.real(-inf), select(x < 0.0, code.real(float("nan")), x))
    return select((x > 0.0) & (x < inf), result, odd)


def log(code: Code, x: Real) -> Real:
    normal, shift = normalised(code, x)
    e, m, _ = split(code, normal)
    e = e - shift
    f = m - 1.0
    ln2 = code.constant("ln2")
    return finish(code, x, muladd(e, ln2[0], f + muladd(e, ln2[1], tail(code, f))))


def _scaled(code: Code, x: Real, name: str, step: tuple[float, ...]) -> Real:
    """log(x) times the constant *name*, where *step* is that constant times ln 2, the first word exact times e."""
    normal, shift = normalised(code, x)
    e, m, _ = split(code, normal)
    e = e - shift
    f = m - 1.0
    factor = code.constant(name)
    product = f * factor[0]
    error = error_of_product(f, factor[0], product)
    total = add_ordered(e * step[0], product)
    rest = total.low + muladd(f, factor[1], error)
    if len(step) > 1:
        rest = muladd(e, step[1], rest)
    if code.single:  # the tail times the factor, with few roundings
        rest = muladd(f * product, code.plain_polynomial(f, "log"), rest)
    else:
        rest = muladd(tail(code, f), factor[0], rest)
    return finish(code, x, total.high + rest)


def log2(code: Code, x: Real) -> Real:
    return _scaled(code, x, "log2_e", (1.0,))


def log10(code: Code, x: Real) -> Real:
    return _scaled(code, x, "log10_e", code.constant("log10_2"))


def log_pair(code: Code, total: Pair, doublings: Real | None = None) -> Real:
    """log(total * 2**doublings), with no loss where the total is close to 1; its high word is normal and positive."""
    e, m, step = split(code, total.high)
    # 2**(1 - e), which exists for the largest e
    inverse = (code.word((2 * code.format.bias + 1) << code.format.fraction) - step).real()
    shifted = add(m - 1.0, total.low * inverse * 0.5)
    if doublings is not None:
        e = e + doublings
    ln2 = code.constant("ln2")
    rest = muladd(e, ln2[1], shifted.low) + tail(code, shifted.high)
    return muladd(e, ln2[0], shifted.high + rest)


def log_one_plus(code: Code, high: Real, low: Real) -> Real:
    """log(1 + high + low) for high > -1 and finite, with low small compared to it."""
    total = add(code.real(1.0), high)
    return log_pair(code, Pair(total.high, total.low + low))


def log1p(code: Code, x: Real) -> Real:
    inf = float("inf")
    result = log_one_plus(code, x, code.real(0.0)).with_sign_of(x)
    odd = select(x.equals(-1.0), code.real(-inf), select(x < -1.0, code.real(float("nan")), x))
    return select((x > -1.0) & (x < inf), result, odd)
