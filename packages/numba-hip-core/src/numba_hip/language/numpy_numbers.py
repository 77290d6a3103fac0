"""NumPy functions on numbers that are not ufuncs: ``np.round``, ``np.clip``, ``np.where``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.extending import overload

REAL = (types.Integer, types.Float, types.Boolean)


@overload(np.round, target="hip")
@overload(np.around, target="hip")
def _round(a, decimals=0):  # type: ignore[no-untyped-def]  # Numba compares annotations of this and of what it returns
    if isinstance(a, types.Float):
        real = a

        def of_float(a, decimals=0):  # type: ignore[no-untyped-def]
            if decimals == 0:
                return np.rint(a)
            if decimals > 0:  # as NumPy does it, which rounds three times; `round` does so once
                power = real(10.0**decimals)
                return np.rint(a * power) / power
            power = real(10.0**-decimals)
            return np.rint(a / power) * power

        return of_float
    if isinstance(a, types.Integer) and (decimals == 0 or isinstance(decimals, types.Omitted)):
        return lambda a, decimals=0: a
    return None


@overload(np.clip, target="hip")
def _clip(a, a_min, a_max):  # type: ignore[no-untyped-def]
    if not all(isinstance(types.unliteral(kind), REAL) for kind in (a, a_min, a_max)):
        return None
    return lambda a, a_min, a_max: np.minimum(np.maximum(a, a_min), a_max)


@overload(np.where, target="hip")
def _where(condition, x, y):  # type: ignore[no-untyped-def]
    kinds: tuple[Any, ...] = (condition, x, y)
    if not all(isinstance(types.unliteral(kind), (*REAL, types.Complex)) for kind in kinds):
        return None

    def choose(condition, x, y):  # type: ignore[no-untyped-def]
        if condition:
            return x
        return y

    return choose
