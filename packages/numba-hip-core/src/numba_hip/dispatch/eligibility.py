"""What `jit` can be given: functions whose code a kernel or a device function can be compiled from.

What cannot be is refused where it is decorated; the line of a launch would not say which function is meant.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from numba_hip.dispatch.dispatcher import Dispatcher
from numba_hip.errors import DeviceFunctionError, KernelSignatureError, NotAFunctionError

_ADVICE: dict[type, str] = {
    type: "decorate a function; what it does can be in functions with device=True that it calls",
    functools.partial: "write a function that passes those arguments on, or that captures them",
    staticmethod: "put @staticmethod above the decorator",
    classmethod: "decorate a function outside of the class",
    property: "decorate a function outside of the class",
    type(len): "write a Python function that calls it",
}
"""What to do instead, for some of what is no function."""


def python_function(given: Any) -> Callable[..., Any]:
    """The function behind *given*, which is one or was made of one by a ``jit``; `NotAFunctionError`."""
    function = given.py_func if isinstance(given, Dispatcher) else given
    if callable(function) and hasattr(function, "__code__"):
        return function
    kinds = (advice for kind, advice in _ADVICE.items() if isinstance(function, kind))
    advice = next(kinds, "decorate a function, one that calls it, say" if callable(function) else "decorate a function")
    raise NotAFunctionError(f"hip.jit takes a Python function, or a signature; got {function!r}: {advice}")


def check_function(function: Callable[..., Any], *, device: bool) -> None:
    """`KernelSignatureError`, or `DeviceFunctionError` where it is for the *device* alone, for code that cannot be
    compiled, whatever it does."""
    problem = _problem_of_code(function, device) or _problem_of_parameters(function.__code__, device)
    if problem is None:
        return
    code = function.__code__
    kind = "device function" if device else "kernel"
    error = DeviceFunctionError if device else KernelSignatureError
    if hasattr(function, "__wrapped__"):
        problem += "; it wraps another function: let hip.jit decorate that one, below the other decorator"
    raise error(f"{kind} {function.__qualname__} ({code.co_filename}:{code.co_firstlineno}) {problem}")


def _problem_of_code(function: Callable[..., Any], device: bool) -> str | None:
    flags = function.__code__.co_flags
    if flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE):
        return "is a coroutine, and a device has no event loop: write def instead of async def, and call without await"
    if flags & inspect.CO_GENERATOR and not device:
        return (
            "is a generator, and nobody takes what it yields: write results into an array, or give it device=True and "
            "let a kernel run over it"
        )
    return None


def _problem_of_parameters(code: Any, device: bool) -> str | None:
    names = code.co_varnames
    named = code.co_argcount + code.co_kwonlyargcount
    several = bool(code.co_flags & inspect.CO_VARARGS)
    if code.co_flags & inspect.CO_VARKEYWORDS:
        return f"has the parameter **{names[named + several]}, which has no type: name each parameter"
    if code.co_kwonlyargcount:  # of a call with keywords Numba would give the wrong argument to it
        return (
            f"has the keyword-only parameter {names[code.co_argcount]}, and compiled code passes arguments by their "
            "places: put it before the '*'"
        )
    if several and not device:
        return (
            f"has the parameter *{names[named]}, and a kernel has a fixed number of them: name each one, or pass one "
            "tuple"
        )
    return None
