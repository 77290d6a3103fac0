"""What older processors of x86 have no instructions for: rounding to integers, and the fused multiply-add of float32.

LLVM would call the C library for each lane. These have the same results for all numbers, with their signs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hip_devicelib.cpu.expressions import Code, Real, select


def rint(code: Code, x: Real) -> Real:
    """The nearest integer, ties to even."""
    limit = 2.0**code.format.fraction  # from here on all are integers, and units are 1
    shift = code.real(limit).with_sign_of(x)
    return select(abs(x) < limit, ((x + shift) - shift).with_sign_of(x), x)


def floor(code: Code, x: Real) -> Real:
    nearest = rint(code, x)
    return select(nearest > x, nearest - 1.0, nearest)


def ceil(code: Code, x: Real) -> Real:
    nearest = rint(code, x)
    return select(nearest < x, nearest + 1.0, nearest).with_sign_of(x)


def trunc(code: Code, x: Real) -> Real:
    return floor(code, abs(x)).with_sign_of(x)


def round_away(code: Code, x: Real) -> Real:
    """The nearest integer, ties away from 0."""
    magnitude = abs(x)
    whole = floor(code, magnitude)
    return select(magnitude - whole >= 0.5, whole + 1.0, whole).with_sign_of(x)


def fma(code: Code, x: Real, y: Real, z: Real) -> Real:
    """x * y + z of float32, rounded once: see `fma_by_wider`."""
    return fma_by_wider(x.widened(), y.widened(), z.widened()).narrowed(code)


def fma_by_wider(x: Real, y: Real, z: Real) -> Real:
    """x * y + z of numbers with so few bits that the product is exact, such that rounding it to their format is
    correct: the sum is rounded to odd, that is, if it is inexact, its last bit is set."""
    product = x * y
    total = product + z
    shadow = total - product
    error = (product - (total - shadow)) + (z - shadow)
    bits = total.word()
    away = ~((error > 0.0) ^ (total > 0.0))
    neighbour = select(away, bits + 1, bits - 1)
    inexact = (error < 0.0) | (error > 0.0)
    return select(inexact & ~bits.odd(), neighbour, bits).real()


ROUNDINGS: Mapping[str, Callable[[Code, Real], Real]] = {
    "ceil": ceil, "floor": floor, "nearbyint": rint, "rint": rint, "round": round_away, "roundeven": rint,
    "trunc": trunc,
}  # fmt: skip
"""By the names of LLVM's intrinsics; for both formats."""
