"""NumPy's universal functions in kernels: on numbers, and on arrays with an array for the result.

Numba has a table of loops: for each ufunc and each combination of types, a function that lowers it for one element.
Calls of math functions in them are replaced here by calls of the device's own functions, so that LLVM's AMDGPU backend
never sees one that it lacks.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError

from hip_runtime.said_names import our
from numba_hip._numba.ufuncs import register_ufuncs, ufunc_table
from numba_hip.language.division import floor_divide_timedeltas_loop, remainder_of_timedeltas_loop
from numba_hip.language.integer_ufuncs import INTEGERS, Loop, integer_loop
from numba_hip.language.known_powers import write_known_power
from numba_hip.language.math import scale_by_power_of_two
from numba_hip.language.registry import lowering

UNARY: dict[np.ufunc, str] = {
    np.sin: "sin", np.cos: "cos", np.tan: "tan", np.arcsin: "asin", np.arccos: "acos", np.arctan: "atan",
    np.sinh: "sinh", np.cosh: "cosh", np.tanh: "tanh", np.arcsinh: "asinh", np.arccosh: "acosh", np.arctanh: "atanh",
    np.exp: "exp", np.exp2: "exp2", np.expm1: "expm1", np.log: "log", np.log2: "log2", np.log10: "log10",
    np.log1p: "log1p", np.sqrt: "sqrt", np.cbrt: "cbrt", np.fabs: "fabs", np.floor: "floor", np.ceil: "ceil",
    np.trunc: "trunc", np.rint: "rint", np.absolute: "fabs",
}  # fmt: skip
"""Ufuncs of one real number, by the name of the function in the C math library."""

BINARY: dict[np.ufunc, str] = {
    np.arctan2: "atan2", np.hypot: "hypot", np.copysign: "copysign", np.nextafter: "nextafter",
}  # fmt: skip
"""Ufuncs of two real numbers, likewise."""

FACTORS = {np.deg2rad: math.pi / 180, np.radians: math.pi / 180, np.rad2deg: 180 / math.pi, np.degrees: 180 / math.pi}
"""Ufuncs that multiply by a number."""

LN2, LN10 = math.log(2.0), math.log(10.0)


def _complex_exp2(z: complex) -> complex:
    return cmath.exp(complex(z.real * LN2, z.imag * LN2))


def _complex_log2(z: complex) -> complex:
    logarithm = cmath.log(z)
    return complex(logarithm.real / LN2, logarithm.imag / LN2)  # a complex division would not preserve infinities


def _complex_log10(z: complex) -> complex:
    logarithm = cmath.log(z)
    return complex(logarithm.real / LN10, logarithm.imag / LN10)


def _complex_expm1(z: complex) -> complex:
    # e^x cos y - 1 = expm1(x) - 2 e^x sin(y/2)^2, in which nothing cancels for small z
    half = math.sin(z.imag / 2)
    grown = math.exp(z.real)
    return complex(math.expm1(z.real) - 2 * grown * half * half, grown * math.sin(z.imag))


def _complex_log1p(z: complex) -> complex:
    # |1 + z|^2 = 1 + x (2 + x) + y^2; far from 1 the plain logarithm is as good and does not overflow
    x, y = z.real, z.imag
    if abs(x) + abs(y) < 0.5:
        return complex(math.log1p(x * (2 + x) + y * y) / 2, math.atan2(y, 1 + x))
    return cmath.log(complex(1 + x, y))


def _complex_rint(z: complex) -> complex:
    return complex(np.rint(z.real), np.rint(z.imag))


COMPLEX: dict[np.ufunc, Callable[[complex], complex]] = {
    np.sinh: lambda z: cmath.sinh(z), np.cosh: lambda z: cmath.cosh(z), np.tanh: lambda z: cmath.tanh(z),
    np.arccosh: lambda z: cmath.acosh(z), np.exp2: _complex_exp2, np.log2: _complex_log2, np.log10: _complex_log10,
    np.expm1: _complex_expm1, np.log1p: _complex_log1p, np.rint: _complex_rint,
}  # fmt: skip
"""Ufuncs of a complex number that Numba's table makes of real math functions of its own."""


def _call(name: str) -> Loop:
    def loop(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        return context.call_math(builder, name, args)

    return loop


def _power(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    del sig
    known = write_known_power(context, builder, *args)
    return context.call_math(builder, "pow", args) if known is None else known


def _scaled(factor: float) -> Loop:
    def loop(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        return builder.fmul(args[0], ir.Constant(args[0].type, factor))

    return loop


def _compiled(function: Callable[..., Any]) -> Loop:
    def loop(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        return context.compile_internal(builder, function, sig, args)

    return loop


def _spacing(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    """Distance to the next number away from zero."""
    (value,) = args
    away = context.call_math(builder, "copysign", [ir.Constant(value.type, math.inf), value])
    distance = builder.fsub(context.call_math(builder, "nextafter", [value, away]), value)
    infinite = builder.fcmp_ordered("==", value, away)
    return builder.select(infinite, ir.Constant(value.type, math.nan), distance)


def _ldexp(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    value, exponent = args
    limit = ir.Constant(exponent.type, _MOST_EXPONENT)
    if exponent.type.width > types.int32.bitwidth:
        low = builder.icmp_signed("<", exponent, builder.neg(limit))
        exponent = builder.select(low, builder.neg(limit), exponent)
        exponent = builder.select(builder.icmp_signed(">", exponent, limit), limit, exponent)
    return scale_by_power_of_two(context, builder, value, context.cast(builder, exponent, sig.args[1], types.int32))


_MOST_EXPONENT = 1 << 30
"""Of a power of two that a number is scaled by: the result is 0 or infinite long before."""


def _floor_of_quotient(dividend: float, divisor: float) -> float:
    """The largest whole number that is not above the exact quotient, as NumPy computes it."""
    if divisor == 0:  # a quotient would raise ZeroDivisionError
        return dividend * math.copysign(math.inf, divisor)
    rest = math.fmod(dividend, divisor)
    quotient = (dividend - rest) / divisor
    if rest != 0 and (rest < 0) != (divisor < 0):
        quotient -= 1
    if quotient == 0:
        return math.copysign(0.0, dividend / divisor)
    whole = float(np.floor(quotient))
    return whole + 1.0 if quotient - whole > 0.5 else whole


TIMEDELTA_DIVISIONS: dict[tuple[np.ufunc, str], Loop] = {
    (np.floor_divide, "mm->q"): floor_divide_timedeltas_loop,
    (np.remainder, "mm->m"): remainder_of_timedeltas_loop,
}


def _check_extents(context: Any, builder: ir.IRBuilder, sig: Any, args: Any, result: int) -> None:
    """Raise a ValueError in the kernel if an array does not broadcast to argument *result*.

    Numba only looks at the shape of the result; without this check a kernel would read beyond the end of an array.
    """
    result_type = sig.args[result]
    if not isinstance(result_type, types.Array):
        return
    extents = cgutils.unpack_tuple(builder, context.make_array(result_type)(context, builder, args[result]).shape)
    for kind, value in zip(sig.args, args, strict=True):
        if not isinstance(kind, types.Array):
            continue
        if kind.ndim > result_type.ndim:
            raise TypingError(f"an array of {kind.ndim} dimensions does not broadcast to one of {result_type.ndim}")
        array = context.make_array(kind)(context, builder, value)
        own = cgutils.unpack_tuple(builder, array.shape)
        for extent, wanted in zip(own, extents[result_type.ndim - kind.ndim :], strict=True):
            other = builder.icmp_unsigned("!=", extent, wanted)
            many = builder.icmp_unsigned("!=", extent, ir.Constant(extent.type, 1))
            with builder.if_then(builder.and_(other, many), likely=False):
                message = "operands could not be broadcast together with the array for the result"
                context.call_conv.return_user_exc(builder, ValueError, (message,))


def _without_halves(
    context: Any, builder: ir.IRBuilder, kinds: Any, args: Any
) -> tuple[tuple[Any, ...], list[ir.Value]]:
    """Numbers of type float16 as float32: Numba has no loops for them."""
    if any(isinstance(kind, types.Array) and kind.dtype == types.float16 for kind in kinds):
        raise TypingError(f"ufuncs do not take arrays of float16 in kernels; use {our('fp16')} on the elements")
    values = [
        context.cast(builder, value, kind, types.float32) if kind == types.float16 else value
        for value, kind in zip(args, kinds, strict=True)
    ]
    return tuple(types.float32 if kind == types.float16 else kind for kind in kinds), values


_OF_NEIGHBOURS = (np.nextafter, np.spacing)
"""Ufuncs of how far apart numbers of a type are, which their values in float32 do not tell."""


def _lower(function: Any, *kinds: Any) -> Callable[[Loop], Loop]:
    """Enter Numba's lowering of a ufunc, after a check of what it does not check."""

    def register(lower: Loop) -> Loop:
        @lowering.lower(function, *kinds)
        def _checked(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
            if not isinstance(function, np.ufunc):
                _check_extents(context, builder, sig, args, 0)  # an operator in place
            elif len(args) > function.nin:
                _check_extents(context, builder, sig, args, -1)
            if function in _OF_NEIGHBOURS and types.float16 in sig.args:
                name = function.__name__
                raise TypingError(f"np.{name} does not take numbers of float16 in kernels: convert them to float32")
            kinds, values = _without_halves(context, builder, sig.args, args)
            return lower(context, builder, sig.replace(args=kinds), values)

        return lower

    return register


register_ufuncs(_lower)


@cache
def ufunc_loops(ufunc: np.ufunc) -> dict[str, Loop]:
    """The lowering of each loop of *ufunc*, by its types as NumPy writes them (``"dd->d"``)."""
    loops: dict[str, Loop] = ufunc_table(ufunc)
    for types_of_loop in loops:
        replaced = _device_loop(ufunc, types_of_loop)
        if replaced is not None:
            loops[types_of_loop] = replaced
    return loops


def _device_loop(ufunc: np.ufunc, types_of_loop: str) -> Loop | None:
    if types_of_loop in ("f->f", "d->d"):
        if ufunc is np.spacing:
            return _spacing
        if ufunc in FACTORS:
            return _scaled(FACTORS[ufunc])
        return _call(UNARY[ufunc]) if ufunc in UNARY else None
    if types_of_loop in ("ff->f", "dd->d"):
        if ufunc in (np.power, np.float_power):
            return _power
        if ufunc is np.floor_divide:
            return _compiled(_floor_of_quotient)
        return _call(BINARY[ufunc]) if ufunc in BINARY else None
    if types_of_loop in ("F->F", "D->D"):
        return _compiled(COMPLEX[ufunc]) if ufunc in COMPLEX else None
    if ufunc is np.ldexp:
        return _ldexp
    if set(types_of_loop) <= INTEGERS | set("->"):
        return integer_loop(ufunc)
    return TIMEDELTA_DIVISIONS.get((ufunc, types_of_loop))
