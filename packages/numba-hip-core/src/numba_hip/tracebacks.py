"""What users see of an error: its message and their own lines, without the frames of this package."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from numba.core import config as numba_config
from numba.core.errors import NumbaError, UnsupportedBytecodeError

from numba_hip import config
from numba_hip.errors import HipError

P = ParamSpec("P")
R = TypeVar("R")

SHORTENED = (NumbaError, UnsupportedBytecodeError, HipError)
"""Errors whose frames say nothing to whoever wrote the kernel."""


def are_full() -> bool:
    """Whether everything is shown: one of the settings says so."""
    return bool(numba_config.FULL_TRACEBACKS) or config.full_tracebacks()


def hide_frames(error: BaseException) -> None:
    """Drop the frames of *error* so far, that of the caller included, if that raises it again with a bare ``raise``.

    Python adds no frame then. Before 3.11 the caller's stays.
    """
    if not are_full() and error.__traceback__ is not None:
        error.__traceback__.tb_next = None
        error.__traceback__ = None


def without_own_frames(function: Callable[P, R]) -> Callable[P, R]:
    """*function*, whose `SHORTENED` errors have no frames of it and of what it calls."""

    @functools.wraps(function)
    def outermost(*args: P.args, **kws: P.kwargs) -> R:
        try:
            return function(*args, **kws)
        except SHORTENED as error:
            hide_frames(error)
            raise

    return outermost
