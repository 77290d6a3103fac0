"""``a @ b``, ``np.dot``, ``np.vdot``, ``np.trace``, ``np.linalg.norm``, computed by the calling thread, if the result
is a number."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba.core import types
from numba.core.errors import TypingError
from numba.extending import overload

from numba_hip._numba.typing import as_dtype, from_dtype
from numba_hip.language.unsupported_calls import refuse

NUMBERS = (types.Integer, types.Float, types.Complex)


def _are_arrays(args: Sequence[Any]) -> bool:
    return all(isinstance(arg, types.Array) for arg in args)


def _check_product(name: str, args: Sequence[Any]) -> None:
    """Only arrays of numbers are multiplied, and only if the result is one number: a kernel has no memory for a new
    array."""
    if len(args) < 2 or not _are_arrays(args[:2]):
        return
    a, b = args[:2]
    if not (isinstance(a.dtype, NUMBERS) and isinstance(b.dtype, NUMBERS)):
        raise TypingError(f"{name} multiplies arrays of numbers in a kernel, not of {a.dtype} and {b.dtype}")
    if (a.ndim, b.ndim) != (1, 1):
        raise TypingError(
            f"{name} of arrays of {a.ndim} and {b.ndim} dimensions makes an array, for which a kernel has no memory: "
            "write loops over the elements, or a product of one row and one column for each thread"
        )
    if len(args) > 2:
        raise TypingError(f"{name} has no out= in a kernel: assign the number that it returns")


def _product_type(a: Any, b: Any) -> types.Type:
    """The type of the product of two vectors, as NumPy has it."""
    dtypes = as_dtype(a.dtype), as_dtype(b.dtype)
    return from_dtype(np.result_type(*dtypes))


def _check_norm(name: str, args: Sequence[Any]) -> None:
    if not args or not isinstance(args[0], types.Array):
        return
    if not isinstance(args[0].dtype, NUMBERS):
        raise TypingError(f"{name} takes an array of numbers in a kernel, not of {args[0].dtype}")
    if args[0].ndim != 1 and any(arg != types.none for arg in args[1:]):
        raise TypingError(f"{name} of an array of {args[0].ndim} dimensions takes neither order nor axis in a kernel")


for _function, _name in {np.dot: "np.dot", np.vdot: "np.vdot", np.matmul: "a @ b", operator.matmul: "a @ b"}.items():
    refuse(_function, _name, _check_product)
refuse(np.linalg.norm, "np.linalg.norm", _check_norm)


@overload(np.dot, target="hip")
def _dot(a, b):  # type: ignore[no-untyped-def]  # Numba compares annotations of this and of what it returns
    if not _are_arrays((a, b)):
        return None
    kind = _product_type(a, b)

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
    return (lambda a, b: np.dot(a, b)) if _are_arrays((a, b)) else None


@overload(np.vdot, target="hip")
def _vdot(a, b):  # type: ignore[no-untyped-def]
    if not _are_arrays((a, b)):
        return None
    kind = _product_type(a, b)
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


@overload(np.trace, target="hip")
def _trace(a, offset=0):  # type: ignore[no-untyped-def]
    if not isinstance(a, types.Array) or a.ndim != 2 or not isinstance(a.dtype, NUMBERS):
        return None
    kind = a.dtype if not isinstance(a.dtype, types.Integer) else (types.int64 if a.dtype.signed else types.uint64)

    def trace(a, offset=0):  # type: ignore[no-untyped-def]
        rows, columns = a.shape
        total = kind(0)
        for row in range(max(0, -offset), min(rows, columns - offset)):
            total = kind(total + a[row, row + offset])
        return total

    return trace


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
