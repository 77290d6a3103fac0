"""The operators of ``hip_bfloat16``, which compute in float32 and round to the nearest, ties to even."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hip_devicelib.cpu.expressions import Flag, Real, Word, select
from hip_devicelib.cpu.functions.function_builder import Operation


def _number(x: Word) -> Real:
    return (x.resized(32) << 16).real()


def _rounded(x: Real) -> Word:
    """The upper half of the bits, rounded; NaN stays NaN."""
    bits = x.word()
    special = bits & 0x7F800000
    finite = bits + (((bits >> 16) & 1) + 0x7FFF)
    quiet = select((bits & 0xFFFF).equals(0), bits, bits | 0x10000)
    return (select(special.equals(0x7F800000), quiet, finite) >> 16).resized(16)


def _arithmetic(operation: Callable[[Real, Real], Real]) -> Operation:
    return lambda body, x, y: _rounded(operation(_number(x), _number(y)))


def _sign(negate: bool) -> Operation:
    return lambda body, x: x ^ (0x8000 if negate else 0)


def _one_or_two(one: Operation, two: Operation) -> Operation:
    """In C++, negation and subtraction, and unary and binary plus, have the same names."""
    return lambda body, *operands: (one if len(operands) == 1 else two)(body, *operands)


def _compare(operation: Callable[[Real, Real], Flag]) -> Operation:
    return lambda body, x, y: operation(_number(x), _number(y))


def _is(test: Callable[[Real], Flag]) -> Operation:
    return lambda body, x: test(_number(x))


BFLOATS: Mapping[str, Operation] = {
    "operator+": _one_or_two(_sign(False), _arithmetic(lambda x, y: x + y)),
    "operator-": _one_or_two(_sign(True), _arithmetic(lambda x, y: x - y)),
    "operator*": _arithmetic(lambda x, y: x * y),
    "operator/": _arithmetic(lambda x, y: x / y),
    "operator==": _compare(Real.equals),
    "operator!=": _compare(lambda x, y: ~x.equals(y)),
    "operator<": _compare(Real.__lt__),
    "operator<=": _compare(Real.__le__),
    "operator>": _compare(Real.__gt__),
    "operator>=": _compare(Real.__ge__),
    "isnan": _is(Real.is_nan),
    "isinf": _is(lambda x: abs(x).equals(float("inf"))),
    "iszero": _is(lambda x: x.equals(0.0)),
}
"""By name, for declarations whose parameters are ``hip_bfloat16``."""
