"""Rows of functions of numbers: `math`, `cmath` and NumPy's ufuncs."""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np

from tools.supported.model import ABOVE_ONE, COMPLEX, FLOATS, INTEGERS, SIGNED, row, rows_of

rows_of("`math`", "acos asin atan cos sin tan cosh sinh tanh asinh atanh exp expm1 log log1p log2 log10 sqrt "
        "erf erfc gamma lgamma degrees radians", math, FLOATS, "math")  # fmt: skip
rows_of("`math`", "acosh", math, ABOVE_ONE, "math")
rows_of("`math`", "ceil floor trunc fabs isfinite isinf isnan", math, SIGNED, "math")


@row("`math`", "`math.atan2`, `math.copysign`, `math.fmod`, `math.hypot`, `math.pow`, `math.ldexp`", FLOATS, close=True)
def math_of_two(x: Any) -> Any:
    first = math.atan2(x, 2.0) + math.copysign(x, -1.0) + math.fmod(x, 0.3)
    return first + math.hypot(x, 3.0) + math.pow(x, 2.5) + math.ldexp(x, 3)


@row("`math`", "`math.frexp`, `math.modf`", ABOVE_ONE, close=True)
def math_of_parts(x: Any) -> Any:
    mantissa, exponent = math.frexp(x)
    fraction, whole = math.modf(x)
    return mantissa + 10 * exponent + fraction + 100 * whole


@row("`math`", "`math.gcd`", INTEGERS)
def common_divisor(x: Any) -> Any:
    return math.gcd(x, 12)


@row("`math`", "`math.pi`, `math.e`, `math.tau`, `math.inf`, `math.nan`", FLOATS, close=True)
def constants(x: Any) -> Any:
    return x * math.pi + math.e + math.tau + (1 if x < math.inf else 0) + (1 if math.nan != math.nan else 0)


rows_of("`cmath`", "acos asin atan cos sin tan cosh sinh tanh acosh asinh atanh exp log sqrt phase isfinite isinf "
        "isnan", cmath, COMPLEX[:2], "cmath")  # fmt: skip

rows_of("NumPy's ufuncs, of numbers", "sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arctanh exp exp2 expm1 "
        "log log2 log10 log1p sqrt cbrt square reciprocal absolute fabs negative positive sign rint floor ceil trunc "
        "degrees radians deg2rad rad2deg conjugate isfinite isinf isnan signbit spacing logical_not", np, FLOATS,
        "np")  # fmt: skip
rows_of("NumPy's ufuncs, of numbers", "arccosh", np, ABOVE_ONE, "np")
rows_of("NumPy's ufuncs, of numbers", "invert", np, INTEGERS, "np")

OF_TWO = ("add subtract multiply divide true_divide floor_divide remainder mod fmod power float_power hypot arctan2 "
          "logaddexp logaddexp2 maximum minimum fmax fmin copysign nextafter greater greater_equal less less_equal "
          "equal not_equal logical_and logical_or logical_xor")  # fmt: skip
OF_TWO_INTEGERS = "bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd lcm"


def _with(function: Any, other: Any) -> Any:
    def of_one(x: Any) -> Any:
        return function(x, other)

    of_one.__module__ = __name__
    return of_one


def _rows_of_two() -> None:
    for names, inputs, other in ((OF_TWO, FLOATS, 0.5), (OF_TWO_INTEGERS, INTEGERS, 2)):
        for name in names.split():
            title = f"np.{name}"
            row("NumPy's ufuncs, of numbers", title, inputs, close=True)(_with(getattr(np, name), other))


_rows_of_two()
