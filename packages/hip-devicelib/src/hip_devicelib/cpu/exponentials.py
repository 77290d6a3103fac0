"""exp, exp2, exp10, expm1.

The argument is split into n ln 2 + r with \\|r\\| <= ln 2 / 2 (Cody and Waite, "Software Manual for the Elementary
Functions", 1980), e**r is a polynomial, 2**n two factors of which the second is there for results that are denormal or
next to overflow.
"""

from __future__ import annotations

from hip_devicelib.cpu.expressions import Code, Real, Word, choose, fma, select
from hip_devicelib.cpu.pairs import Pair


def scale(code: Code, value: Real, exponent: Word, small: Real) -> Real:
    """value * 2**exponent for value in [1/2, 2), rounded once more where the result is denormal.

    *exponent* may have anything above its low bits; *small*, a number near the exponent, tells the sign of those bits.
    """
    shift = 2 * code.format.fraction
    low = small < float(shift - code.format.bias)
    raised = exponent + select(low, code.word(shift), code.word(-1))
    return value * code.power_of_two(raised) * choose(low, 2.0**-shift, 2.0)


def limits(code: Code) -> tuple[float, float]:
    """Powers of two below which all is 0 and above which all is infinite."""
    return (-151.0, 129.0) if code.single else (-1076.0, 1025.0)


def reduce(code: Code, x: Real) -> tuple[Real, Word, Pair]:
    """n, its bits, and x - n ln 2 in twice the precision."""
    ln2 = code.constant("ln2")
    n, bits = code.nearest(x, code.constant("log2_e")[0])
    exact = fma(n, -ln2[0], x)
    high = fma(n, -ln2[1], exact)
    return n, bits, Pair(high, fma(n, -ln2[1], exact - high))


def exp(code: Code, x: Real) -> Real:
    low, high = (limit * code.constant("ln2")[0] for limit in limits(code))
    ln2 = code.constant("ln2")
    x = x.at_least(low).at_most(high)
    n, bits = code.nearest(x, code.constant("log2_e")[0])
    r = fma(n, -ln2[1], fma(n, -ln2[0], x))
    tail = fma(r * r, code.polynomial(r, "exp"), r)
    return scale(code, tail + 1.0, bits, n)


def exp2(code: Code, x: Real) -> Real:
    low, high = limits(code)
    x = x.at_least(low).at_most(high)
    n, bits = code.nearest(x, 1.0)
    r = x - n
    return scale(code, fma(r, code.polynomial(r, "exp2"), 1.0), bits, n)


def exp10(code: Code, x: Real) -> Real:
    step = code.constant("log10_2")
    low, high = (limit * step[0] for limit in limits(code))
    x = x.at_least(low).at_most(high)
    n, bits = code.nearest(x, code.constant("log2_10")[0])
    r = fma(n, -step[1], fma(n, -step[0], x))
    return scale(code, fma(r, code.polynomial(r, "exp10"), 1.0), bits, n)


def expm1(code: Code, x: Real) -> Real:
    """2**n (e**r - 1) + (2**n - 1), the largest terms summed first: each rounding is of the size of the result."""
    bias = float(code.format.bias)
    high = (bias + 1.4) * code.constant("ln2")[0]  # infinite already
    clamped = x.at_least(-code.format.fraction * 0.85).at_most(high)
    n, bits, r = reduce(code, clamped)
    tail = fma(r.high * r.high, code.polynomial(r.high, "exp"), r.low)
    last = n > bias
    power = code.power_of_two(bits - select(last, code.word(1), code.word(0)))
    total = fma(power, tail, fma(power, r.high, power - choose(last, 0.5, 1.0)))
    return (total * choose(last, 2.0, 1.0)).with_sign_of(x)
