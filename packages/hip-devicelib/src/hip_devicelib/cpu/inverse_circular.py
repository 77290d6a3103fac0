"""asin, acos, atan, atan2.

asin of \\|x\\| <= 1/2 is an odd polynomial; above, asin x = pi/2 - 2 asin(sqrt((1 - x) / 2)). atan uses the reciprocal
of arguments above 1 and is an odd polynomial on [0, 1]: one long polynomial costs less than a second reduction with its
rounding errors.
"""

from __future__ import annotations

from hip_devicelib.cpu.expressions import Code, Flag, Real, choose, muladd, select
from hip_devicelib.cpu.pairs import add_ordered


def _arcsine_parts(code: Code, x: Real) -> tuple[Flag, Real, Real]:
    """Whether \\|x\\| > 1/2; and the asin of \\|x\\|, or of sqrt((1 - \\|x\\|) / 2), as large and small part."""
    magnitude = abs(x)
    big = magnitude > 0.5
    square = select(big, muladd(magnitude, -0.5, 0.5), x * x)
    root = select(big, square.sqrt(), magnitude)
    return big, root, root * square * code.polynomial(square, "asin")


def asin(code: Code, x: Real) -> Real:
    high, low = code.constant("half_pi")[:2]
    big, root, rest = _arcsine_parts(code, x)
    difference = add_ordered(code.real(high), -2.0 * root)
    outer = difference.high + (difference.low - muladd(rest, 2.0, -low))
    return select(big, outer, root + rest).with_sign_of(x)


def acos(code: Code, x: Real) -> Real:
    high, low = code.constant("half_pi")[:2]
    big, root, rest = _arcsine_parts(code, x)
    signed_root, signed_rest = root.with_sign_of(x), rest.with_sign_of(x)
    inner = high - (signed_root - (low - signed_rest))
    # 2 asin(root), or pi less that
    first = choose(x < 0.0, 2.0 * high, 0.0)
    second = choose(x < 0.0, 2.0 * low, 0.0)
    outer = first + (2.0 * signed_root + muladd(signed_rest, 2.0, second))
    return select(big, outer, inner)


def _arctangent(code: Code, smaller: Real, larger: Real) -> tuple[Real, Real]:
    """atan(smaller / larger) for 0 <= smaller <= larger, as large and small part; 0/0 counts as 0, inf/inf as 1."""
    ratio = select(larger.equals(0.0), code.real(0.0), smaller / larger)
    ratio = select(smaller.equals(float("inf")), code.real(1.0), ratio)
    square = ratio * ratio
    return ratio, ratio * square * code.polynomial(square, "atan")


def atan(code: Code, x: Real) -> Real:
    high, low = code.constant("half_pi")[:2]
    magnitude = abs(x)
    big = magnitude > 1.0
    ratio = select(big, 1.0 / magnitude, magnitude)
    square = ratio * ratio
    rest = ratio * square * code.polynomial(square, "atan")
    difference = add_ordered(code.real(high), -ratio)
    outer = difference.high + (difference.low + (low - rest))
    return select(big, outer, ratio + rest).with_sign_of(x)


def atan2(code: Code, y: Real, x: Real) -> Real:
    high, low = code.constant("half_pi")[:2]
    across, up = abs(x), abs(y)
    steep = up > across
    ratio, rest = _arctangent(code, select(steep, across, up), select(steep, up, across))
    # the angle is base + sign * atan(ratio), base 0, pi/2 or pi
    left = ~(x.word() < (1 << (code.format.bits - 1)))
    sign = left ^ steep
    base_high = select(steep, code.real(high), choose(left, 2.0 * high, 0.0))
    base_low = select(steep, code.real(low), choose(left, 2.0 * low, 0.0))
    turned, turned_rest = select(sign, -ratio, ratio), select(sign, -rest, rest)
    total = add_ordered(base_high, turned)
    result = total.high + (total.low + (turned_rest + base_low))
    return select(y.unordered(x), y + x, result).with_sign_of(y)
