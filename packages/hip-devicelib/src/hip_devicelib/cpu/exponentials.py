"""exp, exp2, exp10, expm1.

The argument is split into n ln 2 + r with \\|r\\| <= ln 2 / 2 (Cody and Waite, "Software Manual for the Elementary
Functions", 1980), e**r is a polynomial, 2**n two factors of which the second is there for results that are denormal or
next to overflow.
"""

from __future__ import annotations

from hip_devicelib.cpu.coefficients import POLYNOMIALS
from hip_devicelib.cpu.expressions import Code, Real, Word, choose, muladd, select
from hip_devicelib.cpu.pairs import Pair, constant_halves, halves


def scale(code: Code, value: Real, exponent: Word, small: Real) -> Real:
    """value * 2**exponent for value in [1/2, 2), rounded once more where the result is denormal.

    *exponent* may have anything above its low bits; *small*, a number near the exponent, tells the sign of those bits.
    """
    shift = 2 * code.format.fraction
    low = small < float(shift - code.format.bias)
    raised = exponent + select(low, code.word(shift), code.word(-1))
    return value * code.power_of_two(raised) * choose(low, 2.0**-shift, 2.0)


def limits(code: Code) -> tuple[float, float]:
    """Powers of two below which all is 0 and above which all is infinite.

    Below the least denormal number a product underflows, which takes x86 150 cycles; with the lower limit, the first
    factor of `scale` is 0.
    """
    raised = 2 * code.format.fraction + code.format.bias
    return -float(raised), 129.0 if code.single else 1025.0


def reduce(code: Code, x: Real) -> tuple[Real, Word, Pair]:
    """n, its bits, and x - n ln 2 in twice the precision."""
    ln2 = code.constant("ln2")
    n, bits = code.nearest(x, code.constant("log2_e")[0])
    exact = muladd(n, -ln2[0], x)
    high = muladd(n, -ln2[1], exact)
    return n, bits, Pair(high, muladd(n, -ln2[1], exact - high))


def exp(code: Code, x: Real) -> Real:
    low, high = (limit * code.constant("ln2")[0] for limit in limits(code))
    ln2 = code.constant("ln2")
    x = x.at_least(low).at_most(high)
    n, bits = code.nearest(x, code.constant("log2_e")[0])
    r = muladd(n, -ln2[1], muladd(n, -ln2[0], x))
    tail = muladd(r * r, code.polynomial(r, "exp"), r)
    return scale(code, tail + 1.0, bits, n)


def _one_and_more(code: Code, r: Real, name: str) -> Real:
    """1 + r P(r), where the product of r and the first coefficient of P is not rounded."""
    if code.fused:
        return muladd(r, code.polynomial(r, name), 1.0)
    first, *rest = POLYNOMIALS[name, code.format.bits]
    (high, low), (first_high, first_low) = halves(r), constant_halves(code.format, first)
    return (high * first_high + (low * first_high + (r * first_low + r * r * code.series(r, rest)))) + 1.0


def exp2(code: Code, x: Real) -> Real:
    low, high = limits(code)
    x = x.at_least(low).at_most(high)
    n, bits = code.nearest(x, 1.0)
    r = x - n
    return scale(code, _one_and_more(code, r, "exp2"), bits, n)


def exp10(code: Code, x: Real) -> Real:
    step = code.constant("log10_2")
    low, high = (limit * step[0] for limit in limits(code))
    x = x.at_least(low).at_most(high)
    n, bits = code.nearest(x, code.constant("log2_10")[0])
    r = muladd(n, -step[1], muladd(n, -step[0], x))
    return scale(code, _one_and_more(code, r, "exp10"), bits, n)


def expm1(code: Code, x: Real) -> Real:
    """2**n (e**r - 1) + (2**n - 1), the largest terms summed first: each rounding is of the size of the result."""
    bias = float(code.format.bias)
    high = (bias + 1.4) * code.constant("ln2")[0]  # infinite already
    clamped = x.at_least(-code.format.fraction * 0.85).at_most(high)
    n, bits, r = reduce(code, clamped)
    tail = muladd(r.high * r.high, code.polynomial(r.high, "exp"), r.low)
    last = n > bias
    power = code.power_of_two(bits - select(last, code.word(1), code.word(0)))
    total = muladd(power, tail, muladd(power, r.high, power - choose(last, 0.5, 1.0)))
    return (total * choose(last, 2.0, 1.0)).with_sign_of(x)
