"""Functions that users pass to algorithms, as functions that kernels call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, wraps
from hashlib import sha256
from inspect import signature
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from hip_runtime import config
from hip_runtime.said_names import our
from numba_hip.decorators import jit
from numba_hip.errors import AlgorithmError

KEPT = 512
"""Functions whose kernels are kept; those that were not used for longest are compiled again."""


Made = TypeVar("Made")
Given = ParamSpec("Given")


def kept(make: Callable[Given, Made]) -> Callable[Given, Made]:
    """*make*, which makes a kernel or a part of one, called once for equal arguments.

    And once for each size of the CPU device's waves: its kernels have the size that is set when they are compiled, and
    launches are made for the size that is set then.
    """

    @lru_cache(KEPT)
    def make_for(_wave_size: int, *args: Given.args, **kwargs: Given.kwargs) -> Made:
        return make(*args, **kwargs)

    @wraps(make)
    def find(*args: Given.args, **kwargs: Given.kwargs) -> Made:
        return make_for(config.cpu_wave_size(), *args, **kwargs)  # type: ignore[arg-type]  # all are hashable

    return find


class _Known:
    """A Python function, which equals others of the same code with the same values of what it refers to, wherever they
    are written: a ``lambda`` in a loop is a new function each time, and mostly means the same."""

    def __init__(self, function: FunctionType) -> None:
        cells = tuple(cell.cell_contents for cell in function.__closure__ or ())
        known = function.__globals__
        referred = [(name, _identity(known[name])) for name in _names_in(function.__code__) if name in known]
        self.function = function
        code = _without_places(function.__code__)
        self._key = code, *map(_identity, (cells, function.__defaults__)), tuple(referred)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and self._key == other._key


@lru_cache(KEPT)
def _without_places(code: CodeType) -> CodeType:
    """*code* to compare, not to run: Python takes code for different where lines or columns of its source are."""
    inner = (_without_places(one) if isinstance(one, CodeType) else one for one in code.co_consts)
    return code.replace(co_firstlineno=1, co_linetable=b"", co_consts=tuple(inner))


def _names_in(code: CodeType) -> Iterator[str]:
    """The names of globals, and of attributes, in *code* and in the functions that it defines."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def _identity(value: Any) -> Any:
    """What stands for *value*, which a kernel takes as a constant: numbers and the contents of arrays of the host, as
    both may change until another function refers to them, and the object otherwise."""
    if isinstance(value, (int, float, complex, np.generic, str, type(None))):
        return type(value), repr(value)
    if isinstance(value, tuple):
        return type(value), tuple(map(_identity, value))
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, sha256(value.tobytes()).digest()
    return _Same(value)


class _Same:
    """An object that equals nothing but itself, which this keeps alive."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __hash__(self) -> int:
        return id(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._value is other._value


def in_kernels(function: Callable[..., Any], argument: str, takes: int = 2) -> Any:
    """*function*, which is called with as many values as it *takes*, as kernels call it; *argument* is the name that a
    caller knows it by.

    Functions of Python and NumPy that kernels know stay as they are, and so do functions compiled by `numba.njit` or
    ``hip.jit``. Equal functions give the same object. Raises `AlgorithmError` for what is no function, and for
    functions of Python that take another number of values.
    """
    _check_parameters(getattr(function, "py_func", function), argument, takes)
    if isinstance(function, FunctionType):
        try:
            return _compiled(_Known(function))
        except ValueError as error:  # of a cell that is empty
            raise AlgorithmError(f"{argument} captures a variable that has no value yet: {error}") from None
    if isinstance(function, (BuiltinFunctionType, np.ufunc)) or hasattr(function, "py_func"):
        return function
    raise AlgorithmError(
        f"{argument} is {function!r}: pass a function of Python, NumPy, njit or {our('jit')}(device=True)"
    )


def _check_parameters(function: Any, argument: str, takes: int) -> None:
    """Raise `AlgorithmError` for a *function* of Python that cannot be called with so many values."""
    if not isinstance(function, FunctionType) or _takes_exactly(function, takes):
        return
    try:
        signature(function).bind(*range(takes))
    except TypeError as error:
        given = "one value" if takes == 1 else f"{takes} values"
        raise AlgorithmError(
            f"{argument} is {function.__name__}{signature(function)}, which is called with {given}: {error}"
        ) from None


def _takes_exactly(function: FunctionType, takes: int) -> bool:
    """Whether *function* has so many parameters and no others: `inspect.signature` takes longer than a launch."""
    code = function.__code__
    return code.co_argcount == takes and not code.co_kwonlyargcount and not hasattr(function, "__wrapped__")


@lru_cache(KEPT)
def _compiled(known: _Known) -> Any:
    return jit(device=True)(known.function)
