"""sin, cos, tan.

sin and cos are one polynomial on \\|r\\| <= pi/2 rather than two on half of that. Multiples of pi/2 are subtracted as
three words with a rounding each: the first difference is exact, so what is left of the others next to a multiple is
relative to the rest.
"""

from __future__ import annotations

from hip_devicelib.cpu.argument_reduction import USUAL_LIMIT, reduce_far
from hip_devicelib.cpu.circular import flipped, sign_of
from hip_devicelib.cpu.expressions import Code, Real, Word, muladd, select
from hip_devicelib.cpu.pairs import remainder_of


def _less_quarters(code: Code, magnitude: Real, quarters: Real, factor: float) -> Real:
    """magnitude - quarters * factor * pi/2."""
    first, second, third = (word * factor for word in code.constant("half_pi"))
    rest = remainder_of(magnitude, quarters, first)
    return muladd(quarters, -third, remainder_of(rest, quarters, second))


def _far(code: Code, magnitude: Real, first: int) -> tuple[Word, Real]:
    """n and r of magnitude = (2 n + first) pi/2 + r, where multiples cannot be subtracted."""
    quadrant, rest = reduce_far(code, magnitude)
    half_pi = code.constant("half_pi")[0]
    up = rest.high > 0.0
    moved = (quadrant + first).odd()
    to_next = (rest.high - select(up, code.real(half_pi), -half_pi)) + rest.low
    step = select(moved, select(up, code.word(1), code.word(-1)), 0)
    return (quadrant + step - first) >> 1, select(moved, to_next, rest.high)


def _sine_of_rest(code: Code, magnitude: Real, n: Real, bits: Word, first: int) -> tuple[Word, Real]:
    """n, of which the lowest bit counts, and sin(magnitude - (2 n + first) pi/2)."""
    if first:
        near = _less_quarters(code, magnitude, muladd(n, 2.0, 1.0), 1.0)
    else:
        near = _less_quarters(code, magnitude, n, 2.0)
    bits, r = code.rarely(magnitude > USUAL_LIMIT, lambda: _far(code, magnitude, first), (bits, near))
    square = r * r
    return bits, muladd(r * square, code.plain_polynomial(square, "sin_ulp4"), r)


def sin(code: Code, x: Real) -> Real:
    magnitude = abs(x)
    n, bits = code.nearest(magnitude, code.constant("two_over_pi")[0] / 2)
    bits, sine = _sine_of_rest(code, magnitude, n, bits, 0)
    return flipped(sine, (bits << (code.format.bits - 1)) ^ sign_of(x))


def cos(code: Code, x: Real) -> Real:
    magnitude = abs(x)
    n, bits = code.nearest(muladd(magnitude, code.constant("two_over_pi")[0] / 2, -0.5), 1.0)
    bits, sine = _sine_of_rest(code, magnitude, n, bits, 1)
    return flipped(sine, (bits + 1) << (code.format.bits - 1))


def tan(code: Code, x: Real) -> Real:
    magnitude = abs(x)
    n, bits = code.nearest(magnitude, code.constant("two_over_pi")[0])

    def far() -> tuple[Word, Real]:
        quadrant, rest = reduce_far(code, magnitude)
        return quadrant, rest.high

    near = _less_quarters(code, magnitude, n, 1.0)
    bits, r = code.rarely(magnitude > USUAL_LIMIT, far, (bits, near))
    square = r * r
    sine = muladd(r * square, code.plain_polynomial(square, "sin"), r)
    cosine = muladd(square, muladd(square, code.plain_polynomial(square, "cos_ulp4"), -0.5), 1.0)
    odd = bits.odd()
    quotient = select(odd, cosine, sine) / select(odd, sine, cosine)
    return flipped(quotient, ((bits & 1) << (code.format.bits - 1)) ^ sign_of(x))
