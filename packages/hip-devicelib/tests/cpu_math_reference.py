"""Reference values of the CPU device's math: NumPy's float64 for float32, mpmath for float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
from cpu_math_loops import Array

NUMPY_NAMES = {
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "pow": "power",
}
_OTHERS: dict[str, Callable[..., Any]] = {
    "erf": lambda x: np.array([math.erf(value) for value in x]),
    "erfc": lambda x: np.array([math.erfc(value) for value in x]),
    "exp10": lambda x: np.power(10.0, x),
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
}


def double(name: str, *arguments: Array) -> Array:
    """The function in float64, good to a few units of that: what float32 is measured against."""
    with np.errstate(all="ignore"):
        wide = [argument.astype(np.float64) for argument in arguments]
        function = _OTHERS.get(name) or getattr(np, NUMPY_NAMES.get(name, name))
        return np.asarray(function(*wide))


_PRECISE: dict[str, Callable[..., Any]] = {
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "exp2": lambda x: mpmath.power(2, x),
    "exp10": lambda x: mpmath.power(10, x),
    "log2": lambda x: mpmath.log(x) / mpmath.ln2,
    "log10": mpmath.log10,
    "pow": mpmath.power,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
}


def precise(name: str, *arguments: Array) -> tuple[Array, Array]:
    """The function of float64 arguments as float64 and what that lacks, from mpmath.

    Where an argument or the float64 result is special (zero, infinite, NaN), the platform's function tells value and
    sign; mpmath has neither signed zeros nor overflow.
    """
    high = double(name, *arguments)
    low = np.zeros_like(high)
    function = _PRECISE.get(name) or getattr(mpmath, name)
    ordinary = np.isfinite(high)
    for argument in arguments:
        ordinary &= np.isfinite(argument) & (argument != 0)
    if name in ("atan2", "hypot"):
        ordinary &= high != 0
    with mpmath.workprec(160):
        for index in np.flatnonzero(ordinary & (np.abs(high) > 0)):
            value = function(*(mpmath.mpf(float(argument[index])) for argument in arguments))
            nearest = float(value)
            if nearest != 0 and math.isfinite(nearest):
                high[index], low[index] = nearest, float(value - nearest)
    return high, low
