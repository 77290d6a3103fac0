"""The functions whose polynomials are fitted: their intervals, weights and numbers of coefficients."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mpmath import mp, mpf

mp.dps = 60
Real = Callable[[mpf], mpf]

LN2 = mp.log(2)
LOG2_10 = mp.log(10, 2)
HALF = mpf(1) / 2
ERFC_POLE = 4
"""erfc maps [0, inf) to [-1, 1) by (x - 4) / (x + 4)."""


class Fit(NamedTuple):
    """P of `terms[bits]` coefficients such that weight(t) * (target(t) - P(t)) is small for t in [low, high]."""

    name: str
    target: Real
    weight: Real
    low: mpf
    high: mpf
    terms: dict[int, int]
    """Number of coefficients for float32 and for float64."""
    formats: dict[int, int] = {}
    """The bits of the format of the coefficients, if it is not that of the function."""


def _logarithm_tail(z: mpf) -> mpf:
    """Q of atanh(s) * 2 = s * (2 + z * Q(z)), z = s * s."""
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) / s - 2) / z


def _power_tail(z: mpf) -> mpf:
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) / s / LN2 - 2 / LN2 - 2 / (3 * LN2) * z) / z**2


def _power_single(z: mpf) -> mpf:
    s = mp.sqrt(z)
    return 2 * mp.atanh(s) / s / LN2


def _odd_tail(function: Real) -> Real:
    """P of function(x) = x + x * z * P(z), z = x * x."""

    def tail(z: mpf) -> mpf:
        x = mp.sqrt(z)
        return (function(x) - x) / (x * z)

    return tail


def _odd_weight(function: Real) -> Real:
    def weight(z: mpf) -> mpf:
        x = mp.sqrt(z)
        return x * z / function(x)

    return weight


def _odd(name: str, function: Real, high: mpf, single: int, double: int) -> Fit:
    return Fit(name, _odd_tail(function), _odd_weight(function), mpf(0), mpf(high), {32: single, 64: double})


def _erfc_abscissa(t: mpf) -> mpf:
    return ERFC_POLE * (1 + t) / (1 - t)


def _erfc_scaled(t: mpf) -> mpf:
    """(1 + 2 x) * exp(x * x) * erfc(x)."""
    x = _erfc_abscissa(t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def _exp_tail(r: mpf) -> mpf:
    """P of e**r = 1 + r + r*r*P(r)."""
    return (mp.expm1(r) - r) / r**2


def _quarter(z: mpf) -> mpf:
    return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2


def _erf_near(z: mpf) -> mpf:
    """P of erf(x) = x + x * P(z), z = x * x."""
    return mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1


def _erf_near_weight(z: mpf) -> mpf:
    return mp.sqrt(z) / mp.erf(mp.sqrt(z))


_LN2_HALF = LN2 / 2 * mpf("1.01")
_OCTANT = (mp.pi / 4 * mpf("1.01")) ** 2
_LOG_Z = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mpf("1.001")
_QUARTER_TURN = (mp.pi / 2 * mpf("1.001")) ** 2

FITS: tuple[Fit, ...] = (
    # e**r = 1 + r + r*r*P(r); the weight is that of expm1, which needs more
    Fit(
        "exp",
        _exp_tail,
        lambda r: r**2 / abs(mp.expm1(r)),
        -_LN2_HALF,
        _LN2_HALF,
        {32: 6, 64: 11},
    ),
    # 2**r = 1 + r*P(r)
    Fit(
        "exp2",
        lambda r: mp.expm1(r * LN2) / r,
        lambda r: abs(r) / 2**r,
        -HALF * mpf("1.01"),
        HALF * mpf("1.01"),
        {32: 7, 64: 13},
    ),
    Fit(
        "exp10",
        lambda r: mp.expm1(r * mp.log(10)) / r,
        lambda r: abs(r) / mpf(10) ** r,
        -HALF / LOG2_10 * mpf("1.01"),
        HALF / LOG2_10 * mpf("1.01"),
        {32: 7, 64: 13},
    ),
    # log(1 + f) = f + f*f*P(f), for float32
    Fit(
        "log",
        lambda f: (mp.log1p(f) - f) / f**2,
        lambda f: f**2 / abs(mp.log1p(f)),
        mp.sqrt(HALF) - 1,
        mp.sqrt(2) - 1,
        {32: 9},
    ),
    # log(1 + f) = s * (2 + z*P(z)), s = f / (2 + f), z = s*s, for float64
    Fit("log", _logarithm_tail, lambda z: z / 2, mpf(0), _LOG_Z, {64: 7}),
    # log2(m) = s * (2/ln2 + z*2/(3 ln2) + z*z*P(z)) for pow of float64
    Fit("pow_log2", _power_tail, lambda z: z**2 * LN2 / 2, mpf(0), _LOG_Z, {64: 9}),
    # log2(m) = s * P(z) and 2**r = P(r) for pow of float32, in float64
    Fit("pow_log2", _power_single, lambda z: LN2 / 2, mpf(0), _LOG_Z, {32: 5}, {32: 64}),
    Fit("pow_exp2", lambda r: 2**r, lambda r: 1 / 2**r, -HALF * mpf("1.01"), HALF * mpf("1.01"), {32: 8}, {32: 64}),
    _odd("sin", mp.sin, _OCTANT, 4, 6),
    # cos(x) = 1 - z/2 + z*z*P(z)
    Fit("cos", _quarter, lambda z: z**2 / mp.cos(mp.sqrt(z)), mpf(0), _OCTANT, {32: 3, 64: 6}),
    _odd("asin", mp.asin, mpf("0.2501"), 5, 12),
    _odd("atan", mp.atan, mpf(1), 9, 20),
    _odd("asinh", mp.asinh, mpf("0.2501"), 5, 12),
    _odd("sinh", mp.sinh, _LN2_HALF**2, 3, 6),
    # cosh(r) = 1 + z * P(z)
    Fit(
        "cosh",
        lambda z: (mp.cosh(mp.sqrt(z)) - 1) / z,
        lambda z: z,
        mpf(0),
        _LN2_HALF**2,
        {32: 3, 64: 6},
    ),
    # m ** (-1/3), refined afterwards
    Fit("rcbrt", lambda m: m ** (-mpf(1) / 3), lambda m: m ** (mpf(1) / 3), mpf(1), mpf(2), {32: 5, 64: 6}),
    # erf(x) = x + x * P(z)
    Fit(
        "erf",
        _erf_near,
        _erf_near_weight,
        mpf(0),
        mpf("0.7225"),
        {32: 7, 64: 13},
    ),
    # t = (x - 4) / (x + 4), x up to where erfc underflows
    Fit(
        "erfc",
        _erfc_scaled,
        lambda t: 1 / _erfc_scaled(t),
        mpf(-1),
        mpf("0.5"),
        {32: 12},
    ),
    Fit("erfc", _erfc_scaled, lambda t: 1 / _erfc_scaled(t), mpf(-1), mpf("0.75"), {64: 24}),
    # shorter ones, for functions within 4 units in the last place
    Fit("sin_ulp4", _odd_tail(mp.sin), _odd_weight(mp.sin), mpf(0), _QUARTER_TURN, {64: 8}),
    Fit("cos_ulp4", _quarter, lambda z: z**2 / mp.cos(mp.sqrt(z)), mpf(0), _OCTANT, {64: 5}),
    Fit("exp_ulp4", _exp_tail, lambda r: r**2 / mp.exp(r), -_LN2_HALF, _LN2_HALF, {64: 9}),
    Fit("expm1_ulp4", _exp_tail, lambda r: r**2 / abs(mp.expm1(r)), -_LN2_HALF, _LN2_HALF, {64: 10}),
    Fit(
        "exp2_ulp4",
        lambda r: mp.expm1(r * LN2) / r,
        lambda r: abs(r) / 2**r,
        -HALF * mpf("1.01"),
        HALF * mpf("1.01"),
        {64: 10},
    ),
    Fit("pow_log2_ulp4", _power_tail, lambda z: z**2 * LN2 / 2, mpf(0), _LOG_Z, {64: 7}),
    Fit("asin_ulp4", _odd_tail(mp.asin), _odd_weight(mp.asin), mpf(0), mpf("0.2501"), {64: 11}),
    Fit("atan_ulp4", _odd_tail(mp.atan), _odd_weight(mp.atan), mpf(0), mpf(1), {64: 18}),
    Fit("erf_ulp4", _erf_near, _erf_near_weight, mpf(0), mpf("0.7225"), {64: 11}),
    Fit("erfc_ulp4", _erfc_scaled, lambda t: 1 / _erfc_scaled(t), mpf(-1), mpf("0.75"), {64: 22}),
    # erfc where it is subtracted from 1: x from 0.85 to 6
    Fit(
        "erf_far_ulp4",
        _erfc_scaled,
        lambda t: mp.erfc(_erfc_abscissa(t)) / _erfc_scaled(t),
        mpf("-0.65"),
        mpf("0.2"),
        {64: 12},
    ),
)
