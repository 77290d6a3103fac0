"""Numbers as arguments: which ones fit a type, and what happens to the others.

A number that does not fit the type in a signature is an error; `numba_hip.config.truncate_arguments` truncates it to
its low bits instead, as Numba CUDA does. Numbers for floats are rounded.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core import types

from numba_hip import config
from numba_hip.advisory_warnings import advise_on_truncation
from numba_hip.bfloat import INFINITY, bfloat16, bits_of
from numba_hip.errors import KernelArgumentError

if TYPE_CHECKING:
    from numba_hip.float8 import Float8

FLOATS: dict[int, type[np.floating[Any]]] = {16: np.float16, 32: np.float32, 64: np.float64}
"""NumPy's types of floats by their width."""

MAGNITUDE = 0x7FFF
"""The bits of a bfloat16 without its sign."""


def whole(value: Any, kind: types.Integer, name: str) -> int:
    """Argument *name* as an integer of type *kind*, given as the signed number with the same bits, as LLVM's integers
    are packed. Raises `KernelArgumentError` for a number that does not fit *kind*."""
    try:
        number = int(value)
    except (ValueError, OverflowError):  # NaN and infinities
        number = None
    low, high = int(kind.minval), int(kind.maxval)
    if number is None or number != value:
        raise KernelArgumentError(_message(value, kind, name, f"the whole numbers from {low} to {high}"))
    if not low <= number <= high:
        _answer(_message(value, kind, name, f"the whole numbers from {low} to {high}"), wrap(number, kind))
    return wrap(number, kind)


def real(value: Any, kind: types.Float, name: str) -> float:
    """Argument *name* as a Python float that does not become infinite when it is rounded to *kind*."""
    number = float(value)
    made = FLOATS[kind.bitwidth]
    with np.errstate(over="ignore"):
        rounded = float(made(number))
    if math.isinf(rounded) and not math.isinf(number):
        largest = float(np.finfo(made).max)
        _answer(_message(value, kind, name, f"numbers from {-largest:.6g} to {largest:.6g}"), rounded)
    return rounded


def bfloat(value: Any, name: str) -> int:
    """The bits of argument *name*, rounded to a bfloat16. Raises `KernelArgumentError` if that would be infinite."""
    bits = bits_of(value)
    if bits & MAGNITUDE == INFINITY >> 16 and not math.isinf(float(value)):
        _answer(_message(value, bfloat16, name, "numbers from -3.38953e+38 to 3.38953e+38"), math.inf)
    return wrap(bits, types.int16)


def float8(value: Any, kind: Float8, name: str) -> int:
    """The bits of argument *name*, rounded to *kind*. Raises `KernelArgumentError` for what is larger than its
    numbers."""
    from numba_hip.float8 import bits_of as float8_bits

    bits, number = float8_bits(value, kind), float(value)
    if abs(number) > kind.reach and not math.isinf(number):
        limit = f"{kind.limit:g}"
        _answer(_message(value, kind, name, f"numbers from -{limit} to {limit}"), math.copysign(kind.limit, number))
    return wrap(bits, types.int8)


def wrap(value: int, kind: types.Integer) -> int:
    """*value* as the signed number with the low bits that *kind* has."""
    width = int(kind.bitwidth)
    low = value & ((1 << width) - 1)
    return low - (1 << width) if low >> (width - 1) else low


def _message(value: Any, kind: types.Type, name: str, those: str) -> str:
    return (
        f"argument {name!r} is {value!s} ({type(value).__name__}); the kernel was compiled for {kind} there, which "
        f"has {those}: pass one of these, or compile the kernel for a type that has this one, too"
    )


def _answer(message: str, instead: float) -> None:
    """Raise `KernelArgumentError`, or warn that *instead* is passed if the setting truncates numbers."""
    if not config.truncate_arguments():
        raise KernelArgumentError(message)
    advise_on_truncation(message, instead)
