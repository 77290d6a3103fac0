"""Numbers of declared types in the simulator."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

from numba_hip._numba.typing import as_dtype
from numba_hip.arguments.scalars import real, whole


class Word(int):
    """An integer of up to 32 bits, as its *dtype* says. Arithmetic makes integers of Python's of it, as it makes such
    of 64 bits in kernels."""

    dtype: np.dtype[Any]
    __array_priority__ = 1.0  # NumPy's numbers leave operators to this class, which give what they give of an int

    def __new__(cls, value: Any, dtype: Any = np.int32) -> Word:
        made = super().__new__(cls, value)
        made.dtype = np.dtype(dtype)
        return made


def _compute_as_int(name: str, apply: Callable[..., Any]) -> None:
    """Give Word the operator *name*, and the reflected one, which no comparison has."""
    setattr(Word, f"__{name}__", lambda self, *others: apply(int(self), *others))
    if name not in COMPARISONS:
        setattr(Word, f"__r{name}__", lambda self, other: apply(other, int(self)))


COMPARISONS = "eq ne lt le gt ge".split()
for _name in (*COMPARISONS, *"add sub mul truediv floordiv mod lshift rshift and or xor".split()):
    _compute_as_int(_name, getattr(operator, f"__{_name}__"))
for _function in (divmod, pow):
    _compute_as_int(_function.__name__, _function)


def as_declared(value: Any, kind: types.Type, name: str) -> Any:
    """Argument *name* as a kernel has it that is declared to take a *kind*: numbers of NumPy's types become such, all
    else stays.

    Raises `KernelArgumentError` for a number that does not fit *kind*.
    """
    if isinstance(kind, types.Boolean):
        return bool(value)
    if not isinstance(kind, (types.Integer, types.Float, types.Complex)) or getattr(value, "dtype", None) == as_dtype(
        kind
    ):
        return value
    if isinstance(kind, types.Integer):
        number = whole(value, kind, name) & (-1 if kind.signed else int(kind.maxval))
        return number if kind.bitwidth > 32 else Word(number, as_dtype(kind))
    if isinstance(kind, types.Float):
        value = real(value, kind, name)
    if kind == types.float32:  # a float of Python's: elements compute with it in 32 bits, other numbers in 64
        return value
    return as_dtype(kind).type(value)
