"""Calls that kernels cannot make, rejected before Numba looks for an implementation.

Numba tries its own overloads after ours have rejected a call; those are for the host, and their errors mention
libraries that no kernel uses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numba.core import types
from numba.core.errors import TypingError

from hip_runtime.said_names import our

Check = Callable[[str, Sequence[types.Type]], None]
"""Takes the name of a function and the types of a call's arguments."""

_checks: dict[Any, tuple[str, Check]] = {}


def refuse(function: Any, name: str, check: Check) -> None:
    """Call *check* with the argument types of each call of *function*, which users know as *name*.

    It raises `numba.core.errors.TypingError` for a call that cannot be compiled.
    """
    _checks[function] = name, check


_VALUES = (types.Number, types.Boolean, types.NoneType, types.UnicodeType, types.Literal, types.Array, types.BaseTuple)
"""Types of values, none of which can be called: in their place, an algorithm or a building block takes a function."""


def check_call(function: Any, args: Sequence[types.Type], kws: dict[str, types.Type]) -> None:
    """Raise the error for a rejected call of *function*: its type, or the operator itself, as in Numba."""
    if isinstance(function, _VALUES):
        value = f"{function.literal_value!r}" if isinstance(function, types.Literal) else f"a value of type {function}"
        raise TypingError(
            f"{value} is no function, and is called with ({', '.join(map(str, (*args, *kws.values())))}); "
            f"name a function there, such as operator.add, or one with @{our('jit')}(device=True)"
        )
    key = function.typing_key if isinstance(function, types.Function) else function
    if (found := _checks.get(key)) is not None:
        name, check = found
        check(name, (*args, *kws.values()))
