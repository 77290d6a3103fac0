"""pow: the logarithm as a pair that is not normalised, and what special arguments need behind a branch."""

from __future__ import annotations

from hip_devicelib.cpu.expressions import Code, Real, muladd
from hip_devicelib.cpu.logarithms import normalised
from hip_devicelib.cpu.pairs import (
    Pair,
    add_ordered,
    error_of_product,
    multiply,
    multiply_constant,
    remainder_of,
    square,
)
from hip_devicelib.cpu.powers import finish_power, power_of_logarithm
from hip_devicelib.cpu.ulp4.exponentials import times_power_of_two
from hip_devicelib.cpu.ulp4.logarithms import is_normal, split


def _log2_pair(code: Code, x: Real, shift: Real) -> Pair:
    """log2 of a normal positive number, less *shift*, to 2**-62; the low word is up to 2**-12 of the high one."""
    e, f = split(code, x)
    divisor = add_ordered(code.real(2.0), f)
    inverse = 1.0 / divisor.high
    s = f * inverse
    s_low = muladd(-s, divisor.low, remainder_of(f, s, divisor.high)) * inverse
    z = square(s)
    z_low = muladd(s + s, s_low, z.low)
    first, second = code.constant("two_over_ln2"), code.constant("two_thirds_over_ln2")
    term = multiply_constant(z.high, second)
    term_low = muladd(z_low, second[0], term.low)
    total = add_ordered(code.real(first[0]), term.high)
    series = code.plain_polynomial(z.high, "pow_log2_ulp4")
    low = total.low + muladd(z.high * z.high, series, term_low + first[1])
    product = multiply(s, total.high)
    product_low = muladd(s_low, total.high, muladd(s, low, product.low))
    result = add_ordered(e - shift, product.high)
    return Pair(result.high, result.low + product_low)


def pow(code: Code, x: Real, y: Real) -> Real:
    magnitude = abs(x)
    normal, shift = normalised(code, magnitude)
    logarithm = _log2_pair(code, normal, shift)
    product = y * logarithm.high
    rest = muladd(y, logarithm.low, error_of_product(y, logarithm.high, product))
    total = product + rest
    n, bits = code.nearest(total, 1.0)
    r = (product - n) + rest
    value = times_power_of_two(code, muladd(r, code.plain_polynomial(r, "exp2_ulp4"), 1.0), bits)

    def unusual() -> tuple[Real, ...]:
        exact = power_of_logarithm(code, magnitude, y, add_ordered(logarithm.high, logarithm.low))
        return (finish_power(code, x, y, exact),)

    usual = is_normal(code, x) & (abs(total) < code.format.bias - 2.0)
    finished: tuple[Real] = code.rarely(~usual, unusual, (value,))
    return finished[0]
