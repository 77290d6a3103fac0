"""erf, erfc: erf far from 0 has a polynomial of its own, short as its error counts less in 1 - erfc."""

from __future__ import annotations

from hip_devicelib.cpu.exponentials import scale
from hip_devicelib.cpu.expressions import Code, Real, Word, muladd, select
from hip_devicelib.cpu.pairs import remainder_of, square
from hip_devicelib.cpu.ulp4.exponentials import reduced, times_power_of_two

UNDERFLOW = 27.3
"""From here on erfc is 0."""


def _abscissa(code: Code, x: Real) -> tuple[Real, Real, Real]:
    """t = (x - 4) / (x + 4); 1 / (2 x + 1) to two units, and its divisor."""
    divisor, denominator = x + 4.0, muladd(x, 2.0, 1.0)
    inverse = 1.0 / (divisor * denominator)
    return (x - 4.0) * (inverse * denominator), inverse * divisor, denominator


def _near(code: Code, x: Real, x_square: Real) -> Real:
    """erf of a number next to 0."""
    return muladd(x, code.plain_polynomial(x_square, "erf_ulp4"), x)


def _exponential(code: Code, r: Real, factor: Real) -> Real:
    """e**r * factor."""
    return muladd(muladd(r * r, code.plain_polynomial(r, "expm1_ulp4"), r), factor, factor)


def erf(code: Code, x: Real) -> Real:
    magnitude = abs(x)
    near = _near(code, magnitude, x * x)
    bounded = magnitude.at_most(6.0)
    t, factor, _ = _abscissa(code, bounded)
    _, bits, r = reduced(code, -(bounded * bounded))
    value = _exponential(code, r, code.plain_polynomial(t, "erf_far_ulp4") * factor)
    far = 1.0 - times_power_of_two(code, value, bits)
    return select(magnitude >= 0.85, far, near).with_sign_of(x)


def erfc(code: Code, x: Real) -> Real:
    magnitude = abs(x)
    squared = square(x)
    t, factor, denominator = _abscissa(code, magnitude)
    factor = muladd(remainder_of(code.real(1.0), factor, denominator), factor, factor)
    n, bits, r = reduced(code, -squared.high)
    value = _exponential(code, r - squared.low, code.plain_polynomial(t, "erfc_ulp4") * factor)

    def unusual() -> tuple[Real | Word, ...]:
        return (select(magnitude > UNDERFLOW, code.real(0.0), scale(code, value, bits, n)),)

    (far,) = code.rarely(~(magnitude < 26.0), unusual, (times_power_of_two(code, value, bits),))
    near = 1.0 - _near(code, x, squared.high)
    return select(magnitude < 0.65, near, select(x < 0.0, 2.0 - far, far))
