"""The functions that random calls pass to algorithms, each with what it means for whole arrays.

They are few, so that calls find the kernels of others.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[Any]

NUMBERS = "biuf"
PAIR = np.dtype([("slope", "u4"), ("shift", "u4")])
"""Maps x -> slope * x + shift modulo 2**32."""

NESTED = np.dtype([("slope", "u4"), ("mark", [("at", "i2", (2,)), ("inner", [("weight", "f4")])]), ("shift", "u1")])
RECORDS = {"P": (PAIR,), "V": (PAIR, NESTED)}
"""The records that letters stand for, among the kinds of NumPy's dtypes."""


@dataclass(frozen=True)
class Combining:
    """An associative *function* of two values of a dtype with one of *kinds* (for P and V see `RECORDS`), and what it
    makes of an array and of all elements before each."""

    function: Callable[[Any, Any], Any]
    kinds: str
    accumulate: Callable[[Values], Values]
    commutes: bool = True
    wraps: bool = False
    """Whether large integers go around, which those of 64 bits with a sign may not."""


@dataclass(frozen=True)
class Ordering:
    """A *function* that tells whether a value of one of *kinds* comes before another, and the key that says so."""

    function: Callable[[Any, Any], Any]
    kinds: str
    key: Callable[[Values], Values]


@dataclass(frozen=True)
class Choosing:
    """A *function* of a value of one of *kinds*, and what it makes of an array."""

    function: Callable[[Any], Any]
    kinds: str
    each: Callable[[Values], Values]


@dataclass(frozen=True)
class Equating:
    """A *function* that tells whether two values of one of *kinds* are of one run; they are if their keys are equal."""

    function: Callable[[Any, Any], Any]
    kinds: str
    key: Callable[[Values], Values]


def take_last(a, b):  # type: ignore[no-untyped-def]  # for kernels, as all of these
    return b


def take_first(a, b):  # type: ignore[no-untyped-def]
    return a


def follow(a, b):  # type: ignore[no-untyped-def]
    return a[0] * b[0], a[1] * b[0] + b[1]


def less_by_low_bits(a, b):  # type: ignore[no-untyped-def]
    return (a & 7) < (b & 7)


def less_by_real(a, b):  # type: ignore[no-untyped-def]
    return a.real < b.real


def less_by_first(a, b):  # type: ignore[no-untyped-def]
    return a[0] < b[0]


def is_odd(a):  # type: ignore[no-untyped-def]
    return a & 1 == 1


def is_positive(a):  # type: ignore[no-untyped-def]
    return a > 0


def is_true(a):  # type: ignore[no-untyped-def]
    return a


def first_is_odd(a):  # type: ignore[no-untyped-def]
    return a[0] & 1 == 1


def same_half(a, b):  # type: ignore[no-untyped-def]
    return a >> 1 == b >> 1


def same_first(a, b):  # type: ignore[no-untyped-def]
    return a[0] == b[0]


def unchanged(a):  # type: ignore[no-untyped-def]
    return a


def _accumulate(function: Any) -> Callable[[Values], Values]:
    return lambda values: np.asarray(function.accumulate(values, dtype=values.dtype))


def _follow_all(pairs: Values) -> Values:
    made, slope, shift = np.empty_like(pairs), 1, 0
    for place, (a, b) in enumerate(pairs.tolist()):
        slope, shift = slope * a % 2**32, (shift * a + b) % 2**32
        made[place] = slope, shift
    return made


COMBINING = (
    Combining(operator.add, "iufc", _accumulate(np.add), wraps=True),
    Combining(min, "iuf", _accumulate(np.minimum)),
    Combining(max, "iuf", _accumulate(np.maximum)),
    Combining(operator.xor, "iu", _accumulate(np.bitwise_xor)),
    Combining(operator.or_, "biu", _accumulate(np.bitwise_or)),
    Combining(operator.and_, "biu", _accumulate(np.bitwise_and)),
    Combining(take_last, "biufcV", lambda values: values, commutes=False),
    Combining(take_first, "biufcV", lambda values: np.repeat(values[:1], len(values)), commutes=False),
    Combining(follow, "P", _follow_all, commutes=False),
)
ORDERINGS = (
    Ordering(operator.lt, NUMBERS, lambda values: values),
    Ordering(operator.gt, "biuf", lambda values: -values.astype("f8") if values.dtype.kind == "f" else ~values),
    Ordering(less_by_low_bits, "iu", lambda values: values & 7),
    Ordering(less_by_real, "c", lambda values: values.real),
    Ordering(less_by_first, "V", lambda values: values["slope"]),
)
CHOOSING = (
    Choosing(is_odd, "iu", lambda values: values & 1 == 1),
    Choosing(is_positive, "iuf", lambda values: values > 0),
    Choosing(is_true, "b", lambda values: values),
    Choosing(first_is_odd, "V", lambda values: values["slope"] & 1 == 1),
)
EQUATING = (
    Equating(operator.eq, NUMBERS + "c", lambda values: values),
    Equating(same_half, "iu", lambda values: values >> 1),
    Equating(same_first, "V", lambda values: values["slope"]),
)
