"""Sums and products with their rounding errors: numbers of twice the precision as unevaluated sums of two.

The error-free transformations of Dekker (1971), Knuth and Møller; products use a fused multiply-add.
"""

from __future__ import annotations

from typing import NamedTuple

from hip_devicelib.cpu.expressions import Real, RealLike, fma


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
    """a * b exactly, unless the error underflows."""
    product = a * b
    return Pair(product, fma(a, b, -product))


def multiply_constant(a: Real, words: tuple[float, ...]) -> Pair:
    """a times a constant of two words, not normalised: low is good to a few units of its last place."""
    product = a * words[0]
    return Pair(product, fma(a, words[1], fma(a, words[0], -product)))


def divide(high: Real, low: Real, divisor: Real, rest: Real) -> Pair:
    """(high + low) / (divisor + rest), the quotient's error to first order."""
    quotient = high / divisor
    remainder = fma(-quotient, divisor, high) + fma(-quotient, rest, low)
    return Pair(quotient, remainder / divisor)
