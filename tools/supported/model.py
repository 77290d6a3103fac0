"""A row of the page, and how the kernel of a row is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, TypeVar

import numpy as np
from numba import hip

INTEGERS = np.array([1, 2, 3, 7, 40])
FLOATS = np.array([0.25, 0.5, 0.75, 0.9375])
ABOVE_ONE = 1 + FLOATS
SIGNED = np.array([-2.75, -0.5, 0.0, 1.5, 1e10])
COMPLEX = np.array([0.5 + 1j, -2.0 + 0.25j, 1j])

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Row:
    """Something that Python can say: a function of an element of *inputs*, called in each thread.

    *refused* is a part of the error that compiling its kernel gives, *instead* what to do then.
    """

    section: str
    what: str
    function: Callable[[Any], Any]
    inputs: np.ndarray
    refused: str = ""
    instead: str = ""
    close: bool = False
    """Whether results may differ from Python's in the last places: they are a math library's."""


ROWS: list[Row] = []


def row(section: str, what: str, inputs: np.ndarray = INTEGERS, **options: Any) -> Callable[[Function], Function]:
    """Make the decorated function a row."""

    def add(function: Function) -> Function:
        ROWS.append(Row(section, what, function, inputs, **options))
        return function

    return add


def rows_of(section: str, names: str, module: Any, inputs: Sequence[np.ndarray] | np.ndarray, prefix: str) -> None:
    """Rows for functions of *module*; functions of two numbers get each number and the one behind it."""
    for name in names.split():
        ROWS.append(Row(section, f"{prefix}.{name}", getattr(module, name), np.asarray(inputs), close=True))


def kernel_of(given: Row) -> Any:
    """A kernel that calls the function of *given* in each thread."""
    own = getattr(given.function, "__module__", "").startswith("tools.")
    function = hip.jit(given.function, device=True) if own else given.function

    @hip.jit
    def kernel(inputs, results):
        i = hip.grid(1)
        if i < inputs.size:
            results[i] = function(inputs[i])

    return kernel


def expected_of(given: Row) -> np.ndarray:
    """What Python computes of the inputs."""
    function = in_python(given.function) if isinstance(given.function, FunctionType) else given.function
    with np.errstate(all="ignore"):
        return np.array([function(value) for value in given.inputs])


def in_python(function: FunctionType) -> FunctionType:
    """*function* calling, where it calls device functions, the functions that those were made from."""
    names = dict(function.__globals__)
    for name, value in function.__globals__.items():
        plain = getattr(value, "py_func", None)
        if plain is not None:
            names[name] = FunctionType(plain.__code__, names, name, plain.__defaults__)
    return FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
