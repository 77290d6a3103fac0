"""pow, cbrt, rsqrt, hypot.

pow is 2**(y log2 x). For float64 the logarithm has twice the precision (its series in s = (m - 1) / (m + 1), the first
two terms as pairs); float32 computes in float64, which has the bits that float32 would need pairs for. cbrt refines a
polynomial for m**(-1/3) by a Newton-like step of higher order, which has no division, and corrects the root by its
exact remainder.
"""

from __future__ import annotations

from hip_devicelib.cpu.coefficients import POLYNOMIALS
from hip_devicelib.cpu.exponentials import limits, scale
from hip_devicelib.cpu.expressions import Code, Real, choose, muladd, select
from hip_devicelib.cpu.logarithms import exponent_of, normalised, split
from hip_devicelib.cpu.pairs import (
    Pair,
    add_ordered,
    error_of_product,
    multiply,
    multiply_constant,
    remainder_of,
    square,
    sum_of_squares,
)

INF = float("inf")


def _log2_single(x: Real) -> Real:
    """log2 of a normal positive number of float64, to 2**-37."""
    code = x.code
    e, m, _ = split(code, x)
    f = m - 1.0
    s = f / (f + 2.0)
    return muladd(s, code.series(s * s, POLYNOMIALS["pow_log2", 32]), e)


def _log2_pair(code: Code, x: Real) -> Pair:
    """log2 of a positive number of float64, to 2**-66."""
    normal, shift = normalised(code, x)
    e, m, _ = split(code, normal)
    f = m - 1.0
    divisor = add_ordered(code.real(2.0), f)
    inverse = 1.0 / divisor.high
    s = f * inverse
    s_low = muladd(-s, divisor.low, remainder_of(f, s, divisor.high)) * inverse
    z = square(s)
    z_low = muladd(s + s, s_low, z.low)
    first, second = code.constant("two_over_ln2"), code.constant("two_thirds_over_ln2")
    term = multiply_constant(z.high, second)
    term_low = muladd(z_low, second[0], term.low)
    tail = add_ordered(term.high, z.high * z.high * code.polynomial(z.high, "pow_log2"))
    total = add_ordered(code.real(first[0]), tail.high)
    total_low = total.low + (tail.low + (term_low + first[1]))
    product = multiply(s, total.high)
    product_low = muladd(s_low, total.high, muladd(s, total_low, product.low))
    result = add_ordered(e - shift, product.high)
    return add_ordered(result.high, result.low + product_low)


def _magnitude_single(code: Code, x: Real, y: Real) -> Real:
    wide, exponent = x.widened(), y.widened()
    logarithm = _extended(x, _log2_single(wide))
    product = (exponent * logarithm).at_least(-200.0).at_most(200.0)
    n, bits = wide.code.nearest(product, 1.0)
    value = wide.code.series(product - n, POLYNOMIALS["pow_exp2", 32])
    return (value * wide.code.power_of_two(bits)).narrowed(code)


def _extended(x: Real, logarithm: Real) -> Real:
    """*logarithm* of x > 0, with its limits for 0 and infinity."""
    return select(x.equals(0.0), logarithm.code.real(-INF), select(x.equals(INF), logarithm.code.real(INF), logarithm))


def power_of_logarithm(code: Code, x: Real, y: Real, logarithm: Pair) -> Real:
    """2**(y * logarithm) for float64, where *logarithm* is log2 of x > 0; its limits for 0 and infinity."""
    high = _extended(x, logarithm.high)
    product = y * high
    low, top = limits(code)
    inside = (product > low) & (product < top)
    rest = select(inside, muladd(y, logarithm.low, error_of_product(y, high, product)), 0.0)
    product = product.at_least(low).at_most(top)
    n, bits = code.nearest(product, 1.0)
    r = add_ordered(product - n, rest)
    tail = muladd(r.high, code.polynomial(r.high, "exp2"), r.low * code.constant("ln2")[0])
    return scale(code, tail + 1.0, bits, n)


def pow(code: Code, x: Real, y: Real) -> Real:
    magnitude = abs(x)
    if code.single:
        return finish_power(code, x, y, _magnitude_single(code, magnitude, y))
    return finish_power(code, x, y, power_of_logarithm(code, magnitude, y, _log2_pair(code, magnitude)))


def finish_power(code: Code, x: Real, y: Real, value: Real) -> Real:
    """x**y, where *value* is \\|x\\|**y unless that is special."""
    magnitude = abs(x)
    value = select(magnitude.equals(1.0), code.real(1.0), value)
    integral = y.rint().equals(y)
    half = y * 0.5
    odd = integral & ~half.rint().equals(half)
    sign_bit = 1 << (code.format.bits - 1)
    sign = select(odd, x.word() & sign_bit, code.word(0))
    signed = (value.word() ^ sign).real()
    undefined = (x < 0.0) & (x > -INF) & ~integral
    result = select(undefined | x.unordered(y), code.real(float("nan")), signed)
    return select(y.equals(0.0) | x.equals(1.0), code.real(1.0), result)


def cbrt(code: Code, x: Real) -> Real:
    form = code.format
    magnitude = abs(x)
    shift = 24 if code.single else 54
    small = magnitude < form.tiny
    bits = select(small, magnitude * 2.0**shift, magnitude).word()
    e = exponent_of(code, bits >> form.fraction)
    third, third_bits = code.nearest(e, 1.0 / 3.0)
    rest = muladd(third, -3.0, e)  # -1, 0 or 1
    one = form.bias << form.fraction
    m = ((bits & ((1 << form.fraction) - 1)) | one).real()
    up, down = rest > 0.0, rest < 0.0
    z = m * select(up, code.real(2.0), choose(down, 0.5, 1.0))
    factor = select(up, code.real(code.constant("cbrt_4")[0] / 2), choose(down, code.constant("cbrt_2")[0], 1.0))
    inverse = code.polynomial(m, "rcbrt") * factor
    error = muladd(-(z * inverse), inverse * inverse, 1.0)
    # (1 - h) ** (-1/3) = 1 + h/3 + 2/9 h*h + 14/81 h*h*h + ...
    inverse = muladd(inverse * error, code.horner(error, (1 / 3, 2 / 9, 14 / 81)), inverse)
    root = z * inverse * inverse
    squared = square(root)
    remainder = remainder_of(z, squared.high, root) - squared.low * root
    root = muladd(remainder * (1.0 / 3.0), inverse * inverse, root)
    power = code.power_of_two(third_bits - select(small, code.word(shift // 3), code.word(0)))
    finite = (magnitude > 0.0) & (magnitude < INF)
    return select(finite, root * power, magnitude).with_sign_of(x)


def rsqrt(code: Code, x: Real) -> Real:
    return 1.0 / x.sqrt()


def hypot(code: Code, x: Real, y: Real) -> Real:
    """Infinity if either is infinite, even if the other is NaN."""
    across, up = abs(x), abs(y)
    infinite = across.equals(INF) | up.equals(INF)
    if code.single:
        first, second = across.widened(), up.widened()
        result = muladd(first, first, second * second).sqrt().narrowed(code)  # squares are exact
    else:
        swap = up > across
        large, small = select(swap, up, across), select(swap, across, up)
        high, low = large > 2.0**510, large < 2.0**-400
        factor = select(high, code.real(2.0**-600), choose(low, 2.0**600, 1.0))
        back = select(high, code.real(2.0**600), choose(low, 2.0**-600, 1.0))
        large, small = large * factor, small * factor
        result = sum_of_squares(large, small).sqrt() * back
    return select(infinite, code.real(INF), result)
