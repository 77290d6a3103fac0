"""The order of numbers where a caller gives none: that of sorts, in which NaN and NaT come last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import types

from numba_hip.cooperative.operators import in_kernels, kept
from numba_hip.cooperative.value_parts import is_date
from numba_hip.cooperative.values import deciding
from numba_hip.decorators import jit
from numba_hip.errors import AlgorithmError

Operator = Callable[[Any, Any], Any]


def order_of(kind: types.Type, other: types.Type, argument: str, less: str = "less") -> Any:
    """A device function of a value of *kind* and one of *other*: whether the first comes before the second. Raises
    `AlgorithmError` for values without an order of their own; *argument* is where they come from, and *less* what a
    caller passes for these."""
    for one in (kind, other):
        if isinstance(one, (types.BaseTuple, types.Complex)):
            raise AlgorithmError(
                f"{argument} has values of type {one}, which have no order of their own: pass {less}=, which compares "
                "two"
            )
    if is_date(kind) != is_date(other) or (is_date(kind) and type(kind) is not type(other)):
        raise AlgorithmError(f"{argument} has values of type {kind} and {other}, which cannot be compared: convert one")
    return _order_of(kind, other)


def comparing(less: Operator, kinds: tuple[types.Type, types.Type], argument: str = "less") -> Any:
    """*less*, a caller's function of two values of *kinds* that tells whether the first comes before the second, as
    kernels call it."""
    return deciding(in_kernels(less, argument), kinds, argument)


@kept
def _order_of(kind: types.Type, other: types.Type) -> Any:
    """What `order_of` returns. Numba compares int64 with uint64 as float64."""
    if isinstance(kind, types.Integer) and isinstance(other, types.Integer) and kind.signed != other.signed:
        if kind.signed:
            return jit(device=True)(lambda a, b: a < 0 or types.uint64(a) < types.uint64(b))
        return jit(device=True)(lambda a, b: b >= 0 and types.uint64(a) < types.uint64(b))
    if isinstance(kind, types.Float) or isinstance(other, types.Float) or is_date(kind):
        return jit(device=True)(lambda a, b: (a < b) | ((a == a) & (b != b)))
    return jit(device=True)(lambda a, b: a < b)
