"""Functions of numbers that need no series: arithmetic, rounding, comparison, classification.

Operations work on float32 and float64. Those of ``__half`` are computed in float32 and rounded once more. Its 24 bits
are enough for the result to be correctly rounded (2 * 11 + 2 bits are, for sums, products, quotients and roots).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hip_devicelib.cpu.expressions import Flag, Real, Word, fma, select
from hip_devicelib.cpu.functions.function_builder import HALF, FunctionBuilder, Operation, number_of
from hip_devicelib.cpu.missing_instructions import fma_by_wider

INF = float("inf")


def _intrinsic(name: str) -> Operation:
    return lambda body, *operands: body.intrinsic(name, *operands)


def _from_c(name: str) -> Operation:
    """The C library's function *name*, whose result and arguments are numbers."""

    def operation(body: FunctionBuilder, *operands: Real) -> Real:
        spelled = f"{name}f" if body.single else name
        return Real(body, body.call_c(spelled, body.format.real, *(operand.value for operand in operands)))

    return operation


def _scale(body: FunctionBuilder, x: Real, exponent: Word) -> Real:
    """x * 2**exponent, rounded once."""
    builder = body.builder
    power = exponent.value
    if exponent.bits == 64:  # beyond these limits the result does not change any more
        limit = 1 << 14
        for name, bound in (("llvm.smin", limit), ("llvm.smax", -limit)):
            power = body.call_intrinsic(name, power.type, power, body.word(bound, 64).value)
        power = builder.trunc(power, body.word(0, 32).value.type)
    name = "ldexpf" if body.single else "ldexp"
    return Real(body, body.call_c(name, body.format.real, x.value, power))


def _extreme(greater: bool) -> Operation:
    """The larger or smaller one; if one is NaN, the other one. Of two zeros -0 is the smaller."""

    def operation(body: FunctionBuilder, x: Real, y: Real) -> Real:
        bits_x, bits_y = x.word(), y.word()
        zero = (bits_x & bits_y) if greater else (bits_x | bits_y)
        chosen = select(x > y, x, y) if greater else select(x < y, x, y)
        chosen = select(x.equals(y), zero.real(), chosen)
        return select(x.is_nan(), y, select(y.is_nan(), x, chosen))

    return operation


def _extreme_half(greater: bool, keeps_nan: bool) -> Operation:
    """As in HIP's header: y if both are equal (x for the minimum)."""

    def operation(body: FunctionBuilder, x: Real, y: Real) -> Real:
        chosen = select(x > y, x, y) if greater else select(x > y, y, x)
        if keeps_nan:
            return select(x.is_nan(), x, select(y.is_nan(), y, chosen))
        return select(x.is_nan(), y, select(y.is_nan(), x, chosen))

    return operation


def _positive_difference(body: FunctionBuilder, x: Real, y: Real) -> Real:
    return select(x.unordered(y), x + y, select(x > y, x - y, 0.0))


def _clamp(body: FunctionBuilder, x: Real) -> Real:
    """x between 0 and 1; NaN stays."""
    return select(x < 0.0, body.real(0.0), select(x > 1.0, body.real(1.0), x))


def _rounded_half(value: Real) -> Real:
    builder = value.code.builder
    return Real(value.code, builder.fpext(builder.fptrunc(value.value, HALF), value.value.type))


def _saturated(operation: Operation) -> Operation:
    return lambda body, *operands: _clamp(body, _rounded_half(operation(body, *operands)))


def _fma_half(body: FunctionBuilder, x: Real, y: Real, z: Real) -> Real:
    """x * y + z of three halves, such that rounding it to half is correct."""
    return fma_by_wider(x, y, z)


def _fma(body: FunctionBuilder, x: Real, y: Real, z: Real) -> Real:
    return _fma_half(body, x, y, z) if body.result_type == HALF else fma(x, y, z)


def _exponent(body: FunctionBuilder, x: Real) -> Word:
    """The unbiased exponent of a finite number other than 0, denormals included."""
    form = body.format
    magnitude = abs(x)
    small = magnitude < form.tiny
    bits = select(small, magnitude * 2.0**64, magnitude).word() >> form.fraction
    return bits - select(small, body.word(form.bias + 64), body.word(form.bias))


def _resized(x: Word, bits: int) -> Word:
    return x if x.bits == bits else x.resized(bits)


def _ilogb(body: FunctionBuilder, x: Real) -> Word:
    """The exponent; for 0 and NaN the smallest integer, for infinities the largest."""
    exponent = _resized(_exponent(body, x), 32)
    exponent = select(abs(x).equals(INF), body.word(0x7FFFFFFF, 32), exponent)
    return select(x.equals(0.0) | x.is_nan(), body.word(-0x80000000, 32), exponent)


def _logb(body: FunctionBuilder, x: Real) -> Real:
    exponent = number_of(body, _exponent(body, x))
    exponent = select(abs(x).equals(INF), body.real(INF), exponent)
    return select(x.is_nan(), x, select(x.equals(0.0), body.real(-INF), exponent))


def _is_finite(body: FunctionBuilder, x: Real) -> Flag:
    return abs(x) < INF


def _is_normal(body: FunctionBuilder, x: Real) -> Flag:
    magnitude = abs(x)
    return (magnitude < INF) & (magnitude >= body.format.tiny)


def _sign(body: FunctionBuilder, x: Real) -> Flag:
    return ~(x.word() >> (body.format.bits - 1)).equals(0)


def _frexp(body: FunctionBuilder, x: Real, exponent: Any) -> Real:
    regular = _is_finite(body, x) & ~x.equals(0.0)
    power = _resized(select(regular, _exponent(body, x) + 1, body.word(0)), 32)
    body.builder.store(power.value, _typed(body, exponent, power.value.type))
    fraction = _scale(body, x, Word(body, body.builder.neg(power.value)))
    return select(regular, fraction, x)


def _typed(body: FunctionBuilder, pointer: Any, kind: Any) -> Any:
    """*pointer* as one to *kind*, for llvmlite's own types."""
    return body.builder.bitcast(pointer, kind.as_pointer())


def _modf(body: FunctionBuilder, x: Real, whole: Any) -> Real:
    integer = body.intrinsic("llvm.trunc", x)
    body.builder.store(integer.value, _typed(body, whole, body.format.real))
    infinite = abs(x).equals(INF)
    return select(infinite, body.real(0.0), x - integer).with_sign_of(x)


def _remquo(body: FunctionBuilder, x: Real, y: Real, quotient: Any) -> Real:
    spelled = "remquof" if body.single else "remquo"
    return Real(body, body.call_c(spelled, body.format.real, x.value, y.value, quotient))


def _nearest_reciprocal(body: FunctionBuilder, x: Real) -> Real:
    return 1.0 / x


def _compare(ordered: Callable[[Real, Real], Flag]) -> Operation:
    return lambda body, x, y: ordered(x, y)


def _less_or_greater(x: Real, y: Real) -> Flag:
    return (x < y) | (x > y)


_add, _subtract = (lambda body, x, y: x + y), (lambda body, x, y: x - y)
_multiply, _divide = (lambda body, x, y: x * y), (lambda body, x, y: x / y)
_square_root = _intrinsic("llvm.sqrt")
_is_nan: Operation = lambda body, x: x.is_nan()  # noqa: E731
_is_infinite: Operation = lambda body, x: abs(x).equals(INF)  # noqa: E731

REALS: Mapping[str, Operation] = {
    **{name: _intrinsic(f"llvm.{name}") for name in "fabs ceil floor trunc rint nearbyint round copysign".split()},
    **{name: _from_c(name) for name in "fmod remainder nextafter".split()},
    "add": _add,
    "sub": _subtract,
    "mul": _multiply,
    "div": _divide,
    "fma": _fma,
    "sqrt": _square_root,
    "reciprocal": _nearest_reciprocal,
    "negate": lambda body, x: -x,
    "fmax": _extreme(True),
    "fmin": _extreme(False),
    "fdim": _positive_difference,
    "saturate": _clamp,
    "scalbn": _scale,
    "ilogb": _ilogb,
    "logb": _logb,
    "frexp": _frexp,
    "modf": _modf,
    "remquo": _remquo,
    "isnan": _is_nan,
    "isinf": _is_infinite,
    "isfinite": _is_finite,
    "isnormal": _is_normal,
    "signbit": _sign,
    "isgreater": _compare(Real.__gt__),
    "isgreaterequal": _compare(Real.__ge__),
    "isless": _compare(Real.__lt__),
    "islessequal": _compare(Real.__le__),
    "islessgreater": _compare(_less_or_greater),
    "isunordered": _compare(Real.unordered),
    "equal": _compare(Real.equals),
    "different": _compare(lambda x, y: ~x.equals(y)),
    "equal or unordered": _compare(lambda x, y: ~_less_or_greater(x, y)),
    "less or unordered": _compare(lambda x, y: ~(x >= y)),
    "less, equal or unordered": _compare(lambda x, y: ~(x > y)),
    "greater or unordered": _compare(lambda x, y: ~(x <= y)),
    "greater, equal or unordered": _compare(lambda x, y: ~(x < y)),
    "half maximum": _extreme_half(True, False),
    "half minimum": _extreme_half(False, False),
    "half maximum or NaN": _extreme_half(True, True),
    "half minimum or NaN": _extreme_half(False, True),
    "saturated add": _saturated(_add),
    "saturated sub": _saturated(_subtract),
    "saturated mul": _saturated(_multiply),
    "saturated fma": _saturated(_fma_half),
}
"""By operation; `hip_devicelib.cpu.functions.implementations` has HIP's names for them."""
