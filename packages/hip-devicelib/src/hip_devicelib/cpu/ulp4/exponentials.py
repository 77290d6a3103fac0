"""exp, exp2, tanh: 2**n is added to the exponent of the polynomial's value, which is right for normal results."""

from __future__ import annotations

from hip_devicelib.cpu.exponentials import limits, scale
from hip_devicelib.cpu.expressions import Code, Flag, Real, Word, muladd, select


def times_power_of_two(code: Code, value: Real, n: Word) -> Real:
    """value * 2**n for value in [1/2, 2), if neither it nor the result is other than normal."""
    return (value.word() + (n << code.format.fraction)).real()


def _finish(code: Code, x: Real, usual: Flag, step: float, value: Real, n: Real, bits: Word) -> Real:
    """value * 2**n; where not *usual* also for results that overflow or underflow, *step* for each power of two."""

    def unusual() -> tuple[Real, ...]:
        low, high = (limit * step for limit in limits(code))
        scaled = scale(code, value, bits, n)
        return (select(x > high, code.real(float("inf")), select(x < low, code.real(0.0), scaled)),)

    finished: tuple[Real] = code.rarely(~usual, unusual, (times_power_of_two(code, value, bits),))
    return finished[0]


def reduced(code: Code, x: Real) -> tuple[Real, Word, Real]:
    """n, its bits, and x - n ln 2."""
    ln2 = code.constant("ln2")
    n, bits = code.nearest(x, code.constant("log2_e")[0])
    return n, bits, muladd(n, -ln2[1], muladd(n, -ln2[0], x))


def exp(code: Code, x: Real) -> Real:
    n, bits, r = reduced(code, x)
    value = muladd(r * r, code.plain_polynomial(r, "exp_ulp4"), r) + 1.0
    ln2 = code.constant("ln2")[0]
    return _finish(code, x, abs(x) < (code.format.bias - 2.0) * ln2, ln2, value, n, bits)


def exp2(code: Code, x: Real) -> Real:
    n, bits = code.nearest(x, 1.0)
    r = x - n
    value = muladd(r, code.plain_polynomial(r, "exp2_ulp4"), 1.0)
    return _finish(code, x, abs(x) < code.format.bias - 2.0, 1.0, value, n, bits)


def tanh(code: Code, x: Real) -> Real:
    """t / (t + 2), where t = e**(2 \\|x\\|) - 1."""
    magnitude = abs(x).at_most(code.format.fraction * 0.4)
    _, bits, r = reduced(code, magnitude + magnitude)
    tail = muladd(r * r, code.plain_polynomial(r, "expm1_ulp4"), r)
    power = code.power_of_two(bits)
    t = muladd(power, tail, power - 1.0)
    return (t / (t + 2.0)).with_sign_of(x)
