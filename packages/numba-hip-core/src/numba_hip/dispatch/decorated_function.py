"""What `jit` accepts: functions from whose code a kernel or a device function can be compiled.

Anything else is refused when it is decorated: the line of a launch would not say which function is meant.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numba.core import types

from hip_runtime.said_names import our
from numba_hip.dispatch.dispatcher import Dispatcher
from numba_hip.errors import NotAFunctionError

_ADVICE: dict[type, str] = {
    type: "decorate a function; what it does can be in functions with device=True that it calls",
    functools.partial: "write a function that passes those arguments on, or that captures them",
    staticmethod: "put @staticmethod above the decorator",
    classmethod: "decorate a function outside of the class",
    property: "decorate a function outside of the class",
    types.Type: "a signature is text, 'void(float32[:], int64)', or a tuple of types",
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
    raise NotAFunctionError(f"{our('jit')} takes a Python function, or a signature; got {function!r}: {advice}")
