"""erf and erfc.

(1 + 2 x) exp(x*x) erfc(x) is smooth from 0 to infinity in t = (x - 4) / (x + 4): one polynomial (Shepherd and
Laframboise, "Chebyshev approximation of (1 + 2x) exp(x**2) erfc x in 0 <= x < infinity", 1981). The square in the
exponential keeps its rounding error. erf below 0.85 is an odd polynomial, then 1 - erfc; erfc next to 0 is 1 - erf.
"""

from __future__ import annotations

from hip_devicelib.cpu.coefficients import POLYNOMIALS
from hip_devicelib.cpu.exponentials import reduce, scale
from hip_devicelib.cpu.expressions import Code, Real, muladd, select
from hip_devicelib.cpu.pairs import Pair, add_ordered, remainder_of, square


def scaled_complement(code: Code, x: Real) -> Pair:
    """exp(x*x) erfc(x) of a number from 0 to where erfc underflows; low is less than a unit of high's last place."""
    # one division for two quotients, both corrected by their remainders
    divisor, denominator = x + 4.0, muladd(x, 2.0, 1.0)
    inverse = 1.0 / (divisor * denominator)
    reciprocal = inverse * denominator
    t = (x - 4.0) * reciprocal
    t = muladd(remainder_of(x - 4.0, t, divisor), reciprocal, t)
    factor = inverse * divisor
    factor = muladd(remainder_of(code.real(1.0), factor, denominator), factor, factor)
    constant, *rest = POLYNOMIALS["erfc", code.format.bits]
    scaled = add_ordered(code.real(constant), t * code.horner(t, rest))
    return Pair(scaled.high * factor, scaled.low * factor)


def _complement(code: Code, magnitude: Real) -> Real:
    """erfc of a number that is not negative."""
    x = magnitude.at_most(10.1 if code.single else 27.3)
    factor = scaled_complement(code, x)
    squared = square(x)
    n, bits, r = reduce(code, -squared.high)
    low = r.low - squared.low
    power = muladd(r.high * r.high, code.polynomial(r.high, "exp"), r.high)
    power = power + muladd(low, power, low)
    value = factor.high + muladd(power, factor.high, factor.low)
    return scale(code, value, bits, n)


def erfc(code: Code, x: Real) -> Real:
    far = _complement(code, abs(x))
    near = 1.0 - muladd(x, code.polynomial(x * x, "erf"), x)
    return select(abs(x) < 0.65, near, select(x < 0.0, 2.0 - far, far))


def erf(code: Code, x: Real) -> Real:
    magnitude = abs(x)
    inner = muladd(magnitude, code.polynomial(x * x, "erf"), magnitude)
    outer = 1.0 - _complement(code, magnitude)
    return select(magnitude < 0.85, inner, outer).with_sign_of(x)
