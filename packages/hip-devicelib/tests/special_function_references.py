"""Inverse error functions, erfcx and modified Bessel functions by mpmath, as long doubles."""

from __future__ import annotations

import mpmath
import numpy as np

_CONTEXT = mpmath.MPContext()
_CONTEXT.dps = 40
_ROOT_PI = _CONTEXT.sqrt(_CONTEXT.pi)


def _inverse(z):
    """y > 0 with erfc(y) = z < 1: Newton's method for the logarithm, from a bound of the tail."""
    y = _CONTEXT.sqrt(-_CONTEXT.log(z * (2 - z)))
    for _ in range(60):
        value = _CONTEXT.erfc(y)
        step = _CONTEXT.log(value / z) * value * _ROOT_PI / 2 * _CONTEXT.exp(y * y)
        y += step
        if abs(step) < abs(y) * _CONTEXT.mpf(10) ** -30:
            break
    return y


def _erfcinv(z):
    if not 0 <= z <= 2:
        return None
    if z in (0, 1, 2):
        return {0: _CONTEXT.inf, 1: _CONTEXT.mpf(0), 2: -_CONTEXT.inf}[int(z)]
    return _inverse(z) if z < 1 else -_inverse(2 - z)


def _erfinv(x):
    if abs(x) < 1e-15:
        return x * _ROOT_PI / 2
    found = _erfcinv(1 - abs(x))
    return found if found is None or x > 0 else -found


def _normcdfinv(p):
    found = _erfcinv(2 * p)
    return None if found is None else -_CONTEXT.sqrt(2) * found


def _erfcx(x):
    if x > 1e6:
        return 1 / (x * _ROOT_PI) * (1 - 1 / (2 * x * x))
    return _CONTEXT.inf if x < -30 else _CONTEXT.exp(x * x) * _CONTEXT.erfc(x)


def _bessel(order):
    def value(x):
        if abs(x) > 800:
            return _CONTEXT.inf if x > 0 or not order else -_CONTEXT.inf
        return _CONTEXT.besseli(order, x)

    return value


def _of_arrays(function):
    def one(x):
        if np.isnan(x):
            return np.longdouble(np.nan)
        if np.isinf(x) and function is not _erfcx:
            return np.longdouble(x if function not in (_erfcinv, _erfinv, _normcdfinv) else np.nan)
        value = function(_CONTEXT.mpf(float(x)))
        if value is None:
            return np.longdouble(np.nan)
        high = float(value)
        return np.longdouble(high) + (np.longdouble(float(value - high)) if np.isfinite(high) else 0)

    return lambda array: np.array([one(x) for x in array], np.longdouble)


SPECIAL = {
    "erfinv": (_of_arrays(_erfinv), 3.0),
    "erfcinv": (_of_arrays(_erfcinv), 3.5),
    "normcdfinv": (_of_arrays(_normcdfinv), 4.0),
    "erfcx": (_of_arrays(_erfcx), 4.0),
    "cyl_bessel_i0": (lambda array: _of_arrays(_bessel(0))(abs(array)), 9.0),
    "cyl_bessel_i1": (_of_arrays(_bessel(1)), 9.0),
}
"""By HIP's name: the function of an array, and how many units in the last place a result may be off."""
