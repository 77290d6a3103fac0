"""Which functions a kernel or a device function can be compiled from, by their code and parameters alone."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from numba.core import types

from hip_runtime.said_names import our
from numba_hip.errors import DeviceFunctionError, KernelSignatureError


def check_function(function: Callable[..., Any], *, device: bool, launched: bool) -> None:
    """`KernelSignatureError`, or `DeviceFunctionError` where it is for the *device* alone, for code that cannot be
    compiled, whatever it does.

    What kernels call may be more than what is *launched*: a generator, or a wrapper with ``*args``.
    """
    problem = _problem_of_code(function, launched) or _problem_of_parameters(function, launched)
    if problem is None:
        return
    code = function.__code__
    kind = "device function" if device else "kernel"
    error = DeviceFunctionError if device else KernelSignatureError
    if hasattr(function, "__wrapped__"):
        problem += f"; it wraps another function: let {our('jit')} decorate that one, below the other decorator"
    raise error(f"{kind} {function.__qualname__} ({code.co_filename}:{code.co_firstlineno}) {problem}")


def check_result(name: str, return_type: types.Type | None) -> None:
    """`KernelSignatureError` for a signature of the kernel *name* with a result."""
    if return_type not in (None, types.none):
        raise KernelSignatureError(f"kernel {name} was given return type {return_type}; it can be void only")


def _problem_of_code(function: Callable[..., Any], launched: bool) -> str | None:
    flags = function.__code__.co_flags
    if flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE):
        return "is a coroutine, and a device has no event loop: write def instead of async def, and call without await"
    if flags & inspect.CO_GENERATOR and launched:
        return (
            "is a generator, and nobody takes what it yields: write results into an array, or give it device=True and "
            "let a kernel run over it"
        )
    return None


def _problem_of_parameters(function: Callable[..., Any], launched: bool) -> str | None:
    code = function.__code__
    names = code.co_varnames
    named = code.co_argcount + code.co_kwonlyargcount
    several = bool(code.co_flags & inspect.CO_VARARGS)
    if code.co_flags & inspect.CO_VARKEYWORDS:
        return f"has the parameter **{names[named + several]}, which has no type: name each parameter"
    if code.co_kwonlyargcount:  # in calls with keywords, Numba would pass the wrong argument to it
        return (
            f"has the keyword-only parameter {names[code.co_argcount]}, and compiled code passes arguments by their "
            "places: put it before the '*'"
        )
    if several and launched and hasattr(function, "__wrapped__"):  # whose signature Python takes for this one's
        return f"has the parameter *{names[named]}"
    return None
