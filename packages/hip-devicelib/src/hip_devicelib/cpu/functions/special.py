"""Inverse error functions, the scaled complementary error function and modified Bessel functions, in float64.

They have no table of their own: the inverses are Newton's method from a closed formula that is good to three digits
(Winitzki, "A handy approximation for the error function and its inverse", 2008), the Bessel functions their power
series up to 20 and their asymptotic series beyond (Abramowitz and Stegun, 9.6.10 and 9.7.1).
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import factorial, inf, nan, pi, sqrt

from hip_devicelib.cpu.error_functions import scaled_complement
from hip_devicelib.cpu.expressions import Real, muladd, select
from hip_devicelib.cpu.functions.function_builder import call_math
from hip_devicelib.cpu.pairs import multiply_constant, square

_HALF_SQRT_PI = sqrt(pi) / 2
_SQRT_TWO = (1.4142135623730951, -9.667293313452913e-17)
_WINITZKI = 0.147
_SERIES_END = 20.0
"""Up to here a Bessel function is its power series; from here on the asymptotic one has terms that are small enough."""
_POWER_TERMS, _ASYMPTOTIC_TERMS = 52, 26


def erfcx(x: Real) -> Real:
    """exp(x*x) erfc(x)."""
    magnitude = abs(x)
    near, near_low = scaled_complement(x.code, magnitude.at_most(27.0))
    near = near + near_low
    inverse = 1.0 / (magnitude * magnitude).at_least(1.0)
    tail = x.code.horner(inverse, _complement_tail())
    far = tail / magnitude.at_least(1.0)
    positive = select(magnitude < 27.0, near, far)
    positive = select(magnitude.equals(inf), x.code.real(0.0), positive)
    squared = square(x)
    growth = call_math("exp", squared.high)
    growth = select(growth.equals(inf), growth, muladd(growth, squared.low, growth) * 2.0 - positive)
    return select(x.is_nan(), x, select(x < 0.0, growth, positive))


@cache
def _complement_tail() -> tuple[float, ...]:
    """Coefficients of x erfcx(x) in 1/x**2, for large x."""
    terms = [Fraction(1)]
    for k in range(1, 7):
        terms.append(terms[-1] * -(2 * k - 1) / 2)
    return tuple(float(term) / sqrt(pi) for term in terms)


def _guess(logarithm: Real) -> Real:
    """The inverse error function of *x*, roughly, from log(1 - x*x)."""
    half = muladd(logarithm, 0.5, 2.0 / (pi * _WINITZKI))
    under = muladd(half, half, logarithm * (-1.0 / _WINITZKI))
    # the difference of two numbers that are close for a small x, as a quotient
    upper = select(half < 0.0, under.sqrt() - half, logarithm * (-1.0 / _WINITZKI) / (under.sqrt() + half))
    return upper.sqrt()


def _centre(x: Real) -> Real:
    """The inverse error function for numbers from 0 to 1/2."""
    y = _guess(call_math("log1p", -(x * x)))
    for _ in range(2):
        step = (call_math("erf", y) - x) * _HALF_SQRT_PI * call_math("exp", y * y)
        y = y - step / muladd(step, y, 1.0)  # of third order (Halley)
    # The error function is 2/sqrt(pi) times a number that is so small that its cube vanishes.
    return select(x < 1e-9, x * _HALF_SQRT_PI, y)


def _tail(z: Real) -> Real:
    """The inverse complementary error function for numbers from 0 to 1/2.

    By logarithms: log erfc(y) = log erfcx(y) - y*y has neither underflow nor a large relative error.
    """
    logarithm = call_math("log", z)
    y = _guess(logarithm + call_math("log1p", 1.0 - z)).at_most(27.25)
    for _ in range(3):
        scaled, scaled_low = scaled_complement(z.code, y)
        scaled = scaled + scaled_low
        squared = square(y)
        excess = ((call_math("log", scaled) - squared.high) - logarithm) - squared.low
        step = excess * scaled * _HALF_SQRT_PI
        y = (y + step).at_most(27.25)
    return y


def erfcinv(z: Real) -> Real:
    """The inverse of erfc, for numbers from 0 to 2."""
    code = z.code
    lower = select(z <= 1.0, z, 2.0 - z)  # exact, as is 1 - lower from a half on
    middle = lower > 0.5
    size = select(
        middle, _centre(select(middle, 1.0 - lower, code.real(0.25))), _tail(lower.at_least(code.format.least))
    )
    size = select(lower.equals(0.0), code.real(inf), size)
    signed = select(z <= 1.0, size, -size)
    return select((z >= 0.0) & (z <= 2.0), signed, code.real(nan))


def erfinv(x: Real) -> Real:
    """The inverse of erf, for numbers from -1 to 1."""
    code = x.code
    magnitude = abs(x)
    middle = magnitude <= 0.5
    outer = _tail((1.0 - magnitude).at_least(code.format.least))
    size = select(middle, _centre(select(middle, magnitude, code.real(0.25))), outer)
    size = select(magnitude.equals(1.0), code.real(inf), size)
    return select(magnitude <= 1.0, size.with_sign_of(x), code.real(nan))


def normal_quantile(p: Real) -> Real:
    """The inverse of the normal distribution function: -sqrt(2) erfcinv(2 p)."""
    y = -erfcinv(p * 2.0)
    product, rest = multiply_constant(y, _SQRT_TWO)
    return select(abs(y).equals(inf), y, product + rest)


def bessel_i0(x: Real) -> Real:
    """The modified Bessel function of the first kind of order 0."""
    return _bessel(x, 0)


def bessel_i1(x: Real) -> Real:
    """The modified Bessel function of the first kind of order 1, which is odd."""
    return _bessel(x, 1).with_sign_of(x)


def _bessel(x: Real, order: int) -> Real:
    """The function of ``abs(x)``."""
    code = x.code
    magnitude = abs(x)
    small = magnitude.at_most(_SERIES_END)
    powers = code.horner(small * small * 0.25, _power_series(order))
    near = powers * small * 0.5 if order else powers
    large = magnitude.at_least(_SERIES_END).at_most(1e6)
    root = (large * (2.0 * pi)).sqrt()
    growth = call_math("exp", large * 0.5)  # the square of this may overflow where the result does not
    far = growth * (code.horner(1.0 / large, _asymptotic_series(order)) / root) * growth
    return select(magnitude < _SERIES_END, near, far)


@cache
def _power_series(order: int) -> tuple[float, ...]:
    return tuple(float(Fraction(1, factorial(k) * factorial(k + order))) for k in range(_POWER_TERMS))


@cache
def _asymptotic_series(order: int) -> tuple[float, ...]:
    terms = [Fraction(1)]
    for k in range(1, _ASYMPTOTIC_TERMS):
        terms.append(-terms[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return tuple(map(float, terms))
