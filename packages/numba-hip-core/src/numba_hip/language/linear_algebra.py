"""``a @ b``, ``np.dot``, ``np.vdot``, ``np.linalg.norm``: where they make no array, by the thread that calls them."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from numba.core import types
from numba.core.errors import TypingError
from numba.extending import overload
from numba.np import numpy_support

NUMBERS = (types.Integer, types.Float, types.Complex)


def _product_type(name: str, a: Any, b: Any) -> types.Type | None:
    """The type of the product of two vectors, as NumPy has it; ``None`` for what are no arrays of numbers."""
    if not (isinstance(a, types.Array) and isinstance(b, types.Array)):
        return None
    if not (isinstance(a.dtype, NUMBERS) and isinstance(b.dtype, NUMBERS)):
        raise TypingError(f"{name} multiplies arrays of numbers in a kernel, not of {a.dtype} and {b.dtype}")
    if (a.ndim, b.ndim) != (1, 1):
        raise TypingError(
            f"{name} of arrays of {a.ndim} and {b.ndim} dimensions makes an array, for which a kernel has no memory: "
            "write loops over the elements, or a product of one row and one column for each thread"
        )
    dtypes = numpy_support.as_dtype(a.dtype), numpy_support.as_dtype(b.dtype)
    return numpy_support.from_dtype(np.result_type(*dtypes))


@overload(np.dot, target="hip")
def _dot(a, b):  # type: ignore[no-untyped-def]  # Numba compares annotations of this and of what it returns
    kind = _product_type("np.dot", a, b)
    if kind is None:
        return None

    def dot(a, b):  # type: ignore[no-untyped-def]
        if a.size != b.size:
            raise ValueError("np.dot: the vectors have different lengths")
        total = kind(0)
        for i in range(a.size):
            total = kind(total + a[i] * b[i])
        return total

    return dot


@overload(operator.matmul, target="hip")
@overload(np.matmul, target="hip")
def _matmul(a, b):  # type: ignore[no-untyped-def]
    return None if _product_type("a @ b", a, b) is None else lambda a, b: np.dot(a, b)


@overload(np.vdot, target="hip")
def _vdot(a, b):  # type: ignore[no-untyped-def]
    kind = _product_type("np.vdot", a, b)
    if kind is None:
        return None
    if not isinstance(a.dtype, types.Complex):
        return lambda a, b: np.dot(a, b)

    def vdot(a, b):  # type: ignore[no-untyped-def]
        if a.size != b.size:
            raise ValueError("np.vdot: the vectors have different lengths")
        total = kind(0)
        for i in range(a.size):
            total = kind(total + a[i].conjugate() * b[i])
        return total

    return vdot


@overload(np.linalg.norm, target="hip")
def _norm(x, ord=None):  # type: ignore[no-untyped-def]
    if not isinstance(x, types.Array) or not isinstance(x.dtype, NUMBERS):
        return None
    real = getattr(x.dtype, "underlying_float", x.dtype)
    real = types.float64 if isinstance(real, types.Integer) else real
    if isinstance(ord, types.Omitted) or ord in (None, types.none):

        def frobenius(x, ord=None):  # type: ignore[no-untyped-def]
            total = real(0)
            for value in x.flat:
                size = real(abs(value))
                total = real(total + size * size)
            return real(math.sqrt(total))

        return frobenius
    if x.ndim != 1:
        raise TypingError("np.linalg.norm of an array of several dimensions takes no order in a kernel")

    def by_order(x, ord=None):  # type: ignore[no-untyped-def]
        if ord in (math.inf, -math.inf):
            most = real(0) if x.size == 0 else real(abs(x[0]))
            for value in x:
                size = real(abs(value))
                further = size > most if ord > 0 else size < most
                if most == most and (further or size != size):
                    most = size
            return most
        total = real(0)
        for value in x:
            if ord == 0:
                total += real(value != 0)
            elif ord == 1:
                total += real(abs(value))
            else:
                total += real(abs(value)) ** real(ord)
        return total if ord == 0 or ord == 1 else real(total ** (real(1) / real(ord)))

    return by_order
