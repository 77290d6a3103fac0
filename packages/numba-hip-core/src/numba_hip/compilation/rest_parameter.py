"""Kernels with ``*args``: a launch passes the extra arguments separately, and the code gets one tuple of them.

Signatures, packed arguments and messages refer to the separate arguments; Numba compiles the parameter ``*args`` as a
tuple.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from numba.core import types

Types = tuple[types.Type, ...]


def rest_of(function: Callable[..., Any]) -> str | None:
    """The name of the parameter ``*args`` of *function*, or None if it has none."""
    code = function.__code__
    if not code.co_flags & inspect.CO_VARARGS:
        return None
    return str(code.co_varnames[code.co_argcount + code.co_kwonlyargcount])


def fold_rest(function: Callable[..., Any], args: Types) -> Types:
    """The types of the parameters of *function* for arguments of types *args*."""
    if rest_of(function) is None:
        return args
    named = function.__code__.co_argcount
    return (*args[:named], types.BaseTuple.from_types(args[named:]))
