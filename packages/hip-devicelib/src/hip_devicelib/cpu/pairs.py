"""Sums and products with their rounding errors: numbers of twice the precision as unevaluated sums of two.

The error-free transformations of Dekker (1971), Knuth and Møller. The error of a product is a fused multiply-add, or
where the processor has none the sum of the products of halves (Dekker). Numbers are halved by their bits rather than
by Veltkamp's product, which would overflow: of float32 both halves have 12 bits; the 53 bits of float64 make two of 26
only if the larger one is rounded, as the smaller one has a sign.
"""

from __future__ import annotations

import math
import struct
from typing import NamedTuple

from hip_devicelib.cpu.expressions import Format, Real, RealLike, fma, muladd


class Pair(NamedTuple):
    """``high + low``, where low is at most half a unit in the last place of high."""

    high: Real
    low: Real


def add(a: Real, b: Real) -> Pair:
    """a + b exactly."""
    total = a + b
    shadow = total - a
    return Pair(total, (a - (total - shadow)) + (b - shadow))


def add_ordered(a: Real, b: Real) -> Pair:
    """a + b exactly, for \\|a\\| >= \\|b\\| or a = 0."""
    total = a + b
    return Pair(total, b - (total - a))


def multiply(a: Real, b: RealLike) -> Pair:
    """a * b exactly, unless the error underflows; see `error_of_product`."""
    product = a * b
    return Pair(product, error_of_product(a, b, product))


def square(a: Real) -> Pair:
    """a * a exactly, unless the error underflows."""
    product = a * a
    if a.code.fused:
        return Pair(product, fma(a, a, -product))
    high, low = halves(a, rounded=True)
    return Pair(product, ((high * high - product) + high * (low + low)) + low * low)


def sum_of_squares(large: Real, small: Real) -> Real:
    """large * large + small * small for \\|large\\| >= \\|small\\|, with the rounding error of the larger square
    nearly gone."""
    if large.code.fused:
        return fma(large, large, small * small)
    high, low = halves(large)
    return high * high + (low * (large + high) + small * small)


def multiply_constant(a: Real, words: tuple[float, ...]) -> Pair:
    """a times a constant of two words, not normalised: low is good to a few units of its last place."""
    product = a * words[0]
    return Pair(product, muladd(a, words[1], error_of_product(a, words[0], product)))


def divide(high: Real, low: Real, divisor: Real, rest: Real) -> Pair:
    """(high + low) / (divisor + rest), the quotient's error to first order."""
    quotient = high / divisor
    remainder = remainder_of(high, quotient, divisor) + muladd(-quotient, rest, low)
    return Pair(quotient, remainder / divisor)


def error_of_product(a: Real, b: RealLike, product: Real) -> Real:
    """a * b - *product*, which is a * b rounded, exactly, unless that underflows.

    Without a fused multiply-add NaN for a *b* that is next to overflow.
    """
    if a.code.fused:
        return fma(a, b, -product)
    high, low = halves(a)
    other_high, other_low = halves(b, rounded=True) if isinstance(b, Real) else constant_halves(a.code.format, b)
    return ((high * other_high - product) + high * other_low + low * other_high) + low * other_low


def error_of_short_product(a: Real, b: Real, product: Real) -> Real:
    """The same for a *b* that has half of the format's bits at most."""
    if a.code.fused:
        return fma(a, b, -product)
    high, low = halves(a)
    return (high * b - product) + low * b


def remainder_of(total: Real, quotient: Real, divisor: RealLike) -> Real:
    """*total* - *quotient* * *divisor*, exactly where the product is so close to *total* that their difference is."""
    if total.code.fused:
        return fma(-quotient, divisor, total)
    product = quotient * divisor
    return (total - product) - error_of_product(quotient, divisor, product)


def halves(a: Real, *, rounded: bool = False) -> tuple[Real, Real]:
    """The upper half of the bits of *a*, cut off or, for float64, *rounded*; and what is left of *a*."""
    lower = _lower_bits(a.code.format)
    word = a.word() + (1 << (lower - 1)) if rounded and not a.code.single else a.word()
    high = (word & -(1 << lower)).real()
    return high, a - high


def constant_halves(form: Format, value: float) -> tuple[float, float]:
    """The halves of a constant, the upper one rounded."""
    if form.bits == 32:
        (value,) = struct.unpack("f", struct.pack("f", value))
    significand, exponent = math.frexp(value)
    upper = form.fraction + 1 - _lower_bits(form)
    high = math.ldexp(round(math.ldexp(significand, upper)), exponent - upper)
    return high, value - high


def _lower_bits(form: Format) -> int:
    return (form.fraction + 2) // 2
