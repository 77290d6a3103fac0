"""sinh, cosh, tanh and their inverses.

x = n ln 2 + r, and with A = (2**n - 2**-n) / 2, B = (2**n + 2**-n) / 2 the addition theorems give
sinh x = A cosh r + B sinh r and cosh x = B cosh r + A sinh r: two short polynomials, no division, and no cancellation
next to 0, where A is 0 and B is 1. The inverses are logarithms of numbers of twice the precision.
"""

from __future__ import annotations

from typing import NamedTuple

from hip_devicelib.cpu.exponentials import reduce
from hip_devicelib.cpu.expressions import Code, Real, choose, muladd, select
from hip_devicelib.cpu.logarithms import log_one_plus, log_pair
from hip_devicelib.cpu.pairs import Pair, add, add_ordered, divide, multiply, remainder_of, square


class _Parts(NamedTuple):
    a: Pair
    b: Pair
    r: Real
    sine: Real
    """sinh of the reduced argument less `r`, the reduced argument."""
    cosine: Real
    """cosh of the reduced argument less 1."""
    factor: Real


def _split(code: Code, magnitude: Real) -> _Parts:
    n, bits, r = reduce(code, magnitude)
    large = n > code.format.bias - 1.0
    exponent = bits - select(large, code.word(3), code.word(0))
    up = code.power_of_two(exponent) * 0.5
    down = code.power_of_two(code.word(0) - exponent) * 0.5
    r_square = r.high * r.high
    sine = muladd(r.high * r_square, code.polynomial(r_square, "sinh"), r.low)
    cosine = r_square * code.polynomial(r_square, "cosh")
    return _Parts(add_ordered(up, -down), add_ordered(up, down), r.high, sine, cosine, choose(large, 8.0, 1.0))


def _limit(code: Code) -> float:
    """Above this, sinh and cosh are infinite."""
    return (code.format.bias + 3.0) * code.constant("ln2")[0]


def _sum(first: Pair, second: Pair, p: _Parts) -> Pair:
    """first * cosh r + second * sinh r, where first is 0 or at least as large as the rest."""
    product = multiply(second.high, p.r)
    total = add_ordered(first.high, product.high)
    low = (total.low + product.low) + muladd(second.low, p.r, first.low)
    rest = muladd(second.high, p.sine, muladd(first.high, p.cosine, low))
    return add_ordered(total.high, rest)


def _sinh(p: _Parts) -> Pair:
    return _sum(p.a, p.b, p)


def _cosh(p: _Parts) -> Pair:
    return _sum(p.b, p.a, p)


def sinh(code: Code, x: Real) -> Real:
    parts = _split(code, abs(x).at_most(_limit(code)))
    return (_sinh(parts).high * parts.factor).with_sign_of(x)


def cosh(code: Code, x: Real) -> Real:
    parts = _split(code, abs(x).at_most(_limit(code)))
    return _cosh(parts).high * parts.factor


def tanh(code: Code, x: Real) -> Real:
    parts = _split(code, abs(x).at_most(code.format.fraction * 0.4))
    sine, cosine = _sinh(parts), _cosh(parts)
    inverse = 1.0 / cosine.high
    quotient = sine.high * inverse
    remainder = remainder_of(sine.high, quotient, cosine.high) + muladd(-quotient, cosine.low, sine.low)
    return muladd(remainder, inverse, quotient).with_sign_of(x)


def _root(total: Pair) -> Pair:
    """The square root of a number of twice the precision; 0 of 0."""
    root = total.high.sqrt()
    remainder = remainder_of(total.high, root, root) + total.low
    return Pair(root, select(root > 0.0, remainder * 0.5 / root, 0.0))


def _logarithm_of_sum(code: Code, x: Real, total: Pair) -> Real:
    """log(total), or log(2 x) if x is so large that its square may overflow."""
    far = x > 2.0 ** (code.format.bias // 2)
    high, low = select(far, x, total.high), select(far, code.real(0.0), total.low)
    return log_pair(code, Pair(high, low), choose(far, 1.0, 0.0))


def asinh(code: Code, x: Real) -> Real:
    magnitude = abs(x)
    squared = square(magnitude)
    above = add(squared.high, code.real(1.0))
    root = _root(Pair(above.high, above.low + squared.low))
    total = add_ordered(root.high, magnitude)
    outer = _logarithm_of_sum(code, magnitude, Pair(total.high, total.low + root.low))
    inner = muladd(magnitude * squared.high, code.polynomial(squared.high, "asinh"), magnitude)
    result = select(magnitude > 0.5, outer, inner)
    return select(magnitude < float("inf"), result, x).with_sign_of(x)


def acosh(code: Code, x: Real) -> Real:
    squared = square(x)
    root = _root(add_ordered(squared.high - 1.0, squared.low))
    total = add_ordered(x, root.high)
    result = _logarithm_of_sum(code, x, Pair(total.high, total.low + root.low))
    result = select(x < float("inf"), result, x)
    return select(x < 1.0, code.real(float("nan")), result)


def atanh(code: Code, x: Real) -> Real:
    magnitude = abs(x)
    divisor = add_ordered(code.real(1.0), -magnitude)
    quotient = divide(magnitude * 2.0, code.real(0.0), divisor.high, divisor.low)
    result = log_one_plus(code, quotient.high, quotient.low) * 0.5
    edge = select(magnitude.equals(1.0), code.real(float("inf")), code.real(float("nan")))
    return select(magnitude < 1.0, result, edge).with_sign_of(x)
