"""Kernels with ``*args``: a launch passes what there is as arguments of their own, and the code gets one tuple of them.

Signatures, packed arguments and messages are of the single arguments; Numba compiles a parameter ``*args`` as a tuple.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from numba.core import types

Types = tuple[types.Type, ...]


def rest_of(function: Callable[..., Any]) -> str | None:
    """The name of the parameter ``*args`` of *function*, or None where it has none."""
    code = function.__code__
    if not code.co_flags & inspect.CO_VARARGS:
        return None
    return str(code.co_varnames[code.co_argcount + code.co_kwonlyargcount])


def fold_rest(function: Callable[..., Any], args: Types) -> Types:
    """The types of the parameters of *function* where it gets arguments of types *args*."""
    if rest_of(function) is None:
        return args
    named = function.__code__.co_argcount
    return (*args[:named], types.BaseTuple.from_types(args[named:]))
