"""Functions that users pass to algorithms, as functions that kernels call."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any

import numpy as np

from numba_hip.algorithms.errors import AlgorithmError
from numba_hip.decorators import jit

KEPT = 512
"""Functions whose kernels are kept; those that were not used for longest are compiled again."""


class _Known:
    """A Python function, which equals others of the same code with the same captured values: a ``lambda`` in a loop is
    a new function each time, and means the same."""

    def __init__(self, function: FunctionType) -> None:
        cells = tuple(cell.cell_contents for cell in function.__closure__ or ())
        self.function = function
        self._key: tuple[CodeType, tuple[Any, ...], Any, int] = (
            function.__code__, tuple(map(_identity, cells)), _identity(function.__defaults__), id(function.__globals__)
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and self._key == other._key


def _identity(value: Any) -> Any:
    """What stands for a captured *value*: itself with its type for numbers, the object otherwise."""
    if isinstance(value, (int, float, complex, np.generic, str, type(None))):
        return type(value), repr(value)
    if isinstance(value, tuple):
        return tuple(map(_identity, value))
    return _Same(value)


class _Same:
    """An object that equals nothing but itself, which this keeps alive."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __hash__(self) -> int:
        return id(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._value is other._value


def in_kernels(function: Callable[..., Any], argument: str) -> Any:
    """*function* as kernels call it; *argument* is the name that a caller knows it by.

    Functions of Python and NumPy that kernels know stay as they are, and so do functions compiled by `numba.njit` or
    ``hip.jit``. Equal functions give the same object. Raises `AlgorithmError` for what is no function.
    """
    if isinstance(function, FunctionType):
        try:
            return _compiled(_Known(function))
        except ValueError as error:  # of a cell that is empty
            raise AlgorithmError(f"{argument} captures a variable that has no value yet: {error}") from None
    if isinstance(function, (BuiltinFunctionType, np.ufunc)) or hasattr(function, "py_func") or function in (min, max):
        return function
    raise AlgorithmError(f"{argument} is {function!r}: pass a function of Python, NumPy, njit or hip.jit(device=True)")


@lru_cache(KEPT)
def _compiled(known: _Known) -> Any:
    return jit(device=True)(known.function)
