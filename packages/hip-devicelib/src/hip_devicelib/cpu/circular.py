"""sin, cos, sincos, tan.

On \\|r\\| <= pi/4 (see `reduction`) sin and cos are polynomials, in which the largest term is added last and the
rounding error of 1 - r*r/2 is kept.
"""

from __future__ import annotations

from hip_devicelib.cpu.argument_reduction import reduce
from hip_devicelib.cpu.expressions import Code, Real, Word, muladd, select
from hip_devicelib.cpu.pairs import Pair


def _sine(code: Code, r: Pair, square: Real) -> Real:
    return r.high + muladd(r.high * square, code.polynomial(square, "sin"), r.low)


def _cosine(code: Code, r: Pair, square: Real) -> Real:
    half = square * 0.5
    first = 1.0 - half
    rest = muladd(square * square, code.polynomial(square, "cos"), -(r.high * r.low))
    return first + (((1.0 - first) - half) + rest)


def _both(code: Code, x: Real) -> tuple[Word, Real, Real]:
    """The quadrant of \\|x\\|, and sin and cos of the rest."""
    quadrant, r = reduce(code, abs(x))
    square = r.high * r.high
    return quadrant, _sine(code, r, square), _cosine(code, r, square)


def flipped(value: Real, sign: Word) -> Real:
    return (value.word() ^ sign).real()


def sign_of(x: Real) -> Word:
    return x.word() & (1 << (x.code.format.bits - 1))


def _second_bit(code: Code, quadrant: Word) -> Word:
    """The second bit, moved to the place of the sign."""
    return (quadrant & 2) << (code.format.bits - 2)


def _sin_from(code: Code, x: Real, quadrant: Word, sine: Real, cosine: Real) -> Real:
    return flipped(select(quadrant.odd(), cosine, sine), _second_bit(code, quadrant) ^ sign_of(x))


def _cos_from(code: Code, quadrant: Word, sine: Real, cosine: Real) -> Real:
    return flipped(select(quadrant.odd(), sine, cosine), _second_bit(code, quadrant + 1))


def sin(code: Code, x: Real) -> Real:
    return _sin_from(code, x, *_both(code, x))


def cos(code: Code, x: Real) -> Real:
    return _cos_from(code, *_both(code, x))


def sincos(code: Code, x: Real) -> tuple[Real, Real]:
    quadrant, sine, cosine = _both(code, x)
    return _sin_from(code, x, quadrant, sine, cosine), _cos_from(code, quadrant, sine, cosine)


def tan(code: Code, x: Real) -> Real:
    quadrant, sine, cosine = _both(code, x)
    odd = quadrant.odd()
    quotient = select(odd, cosine, sine) / select(odd, sine, cosine)
    return flipped(quotient, ((quadrant & 1) << (code.format.bits - 1)) ^ sign_of(x))
