"""log, log2, log10: as elsewhere log m = s (2 + z P(z)), s = f / (2 + f), z = s*s, but summed in one word."""

from __future__ import annotations

import math

from hip_devicelib.cpu.coefficients import POLYNOMIALS
from hip_devicelib.cpu.expressions import Code, Flag, Real, muladd
from hip_devicelib.cpu.logarithms import exponent_of, finish, normalised, pattern


def is_normal(code: Code, x: Real) -> Flag:
    """Whether x is positive, normal and finite."""
    smallest, infinity = pattern(code, code.format.tiny), (2 * code.format.bias + 1) << code.format.fraction
    return (x.word() - smallest) < (infinity - smallest)


def split(code: Code, x: Real) -> tuple[Real, Real]:
    """e and m - 1 for a normal positive x = 2**e m with sqrt(1/2) <= m < sqrt(2)."""
    form = code.format
    lowest = pattern(code, math.sqrt(0.5))
    moved = x.word() + ((form.bias << form.fraction) - lowest)
    m = ((moved & ((1 << form.fraction) - 1)) + lowest).real()
    return exponent_of(code, moved >> form.fraction), m - 1.0


def _logarithm(code: Code, x: Real, name: str | None, step: float) -> Real:
    """log(x) times the constant *name*, where *step* is that constant times ln 2."""
    usual = is_normal(code, x)
    normal, shift = normalised(code, x)
    e, f = split(code, normal)
    s = f / (f + 2.0)
    z = s * s
    factor = 1.0 if name is None else code.constant(name)[0]
    tail = code.horner(z, [factor * term for term in (2.0, *POLYNOMIALS["log", code.format.bits])])
    result = muladd(e, step, s * tail) if name != "log2_e" else muladd(s, tail, e)
    finished: tuple[Real] = code.rarely(~usual, lambda: (finish(code, x, muladd(shift, -step, result)),), (result,))
    return finished[0]


def log(code: Code, x: Real) -> Real:
    return _logarithm(code, x, None, math.fsum(code.constant("ln2")))


def log2(code: Code, x: Real) -> Real:
    return _logarithm(code, x, "log2_e", 1.0)


def log10(code: Code, x: Real) -> Real:
    return _logarithm(code, x, "log10_e", math.fsum(code.constant("log10_2")))
