"""asin, acos, atan, atan2: sums with pi/2 or pi are rounded as they are."""

from __future__ import annotations

from hip_devicelib.cpu.expressions import Code, Flag, Real, choose, muladd, select


def _odd(code: Code, x: Real, square: Real, name: str) -> Real:
    """x + x**3 P(x**2)."""
    return muladd(x * square, code.plain_polynomial(square, name), x)


def _arcsine(code: Code, x: Real, name: str) -> tuple[Flag, Real]:
    """Whether \\|x\\| > 1/2; and the asin of \\|x\\|, or of sqrt((1 - \\|x\\|) / 2)."""
    magnitude = abs(x)
    big = magnitude > 0.5
    square = select(big, muladd(magnitude, -0.5, 0.5), x * x)
    return big, _odd(code, select(big, square.sqrt(), magnitude), square, name)


def asin(code: Code, x: Real) -> Real:
    big, part = _arcsine(code, x, "asin")
    outer = muladd(part, -2.0, code.real(code.constant("half_pi")[0]))
    return select(big, outer, part).with_sign_of(x)


def acos(code: Code, x: Real) -> Real:
    half_pi = code.constant("half_pi")[0]
    big, part = _arcsine(code, x, "asin_ulp4")
    part = part.with_sign_of(x)
    outer = muladd(part, 2.0, choose(x < 0.0, 2.0 * half_pi, 0.0))
    return select(big, outer, half_pi - part)


def atan(code: Code, x: Real) -> Real:
    magnitude = abs(x)
    big = magnitude > 1.0
    ratio = select(big, 1.0 / magnitude, magnitude)
    part = _odd(code, ratio, ratio * ratio, "atan_ulp4")
    return select(big, code.constant("half_pi")[0] - part, part).with_sign_of(x)


def atan2(code: Code, y: Real, x: Real) -> Real:
    half_pi = code.constant("half_pi")[0]
    form = code.format
    across, up = abs(x), abs(y)
    steep = up > across
    smaller, larger = select(steep, across, up), select(steep, up, across)
    inf = float("inf")
    infinity = (2 * form.bias + 1) << form.fraction
    usual = (larger.word() - 1) < (infinity - 1)  # neither 0 nor infinite nor NaN

    def unusual() -> tuple[Real, ...]:
        ratio = select(larger.equals(0.0) & smaller.equals(0.0), code.real(0.0), smaller / larger)
        return (select(smaller.equals(inf) & larger.equals(inf), code.real(1.0), ratio),)

    (ratio,) = code.rarely(~usual, unusual, (smaller / larger,))
    part = _odd(code, ratio, ratio * ratio, "atan_ulp4")
    left = ~(x.word() < (1 << (form.bits - 1)))
    base = select(steep, code.real(half_pi), choose(left, 2.0 * half_pi, 0.0))
    return (base + select(left ^ steep, -part, part)).with_sign_of(y)
