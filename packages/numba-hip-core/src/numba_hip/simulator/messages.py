"""What is told of errors in simulated kernels: words of compiled ones, where Python has fewer, and their frames."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from numba_hip.errors import are_full
from numba_hip.suggestions import hint

_PACKAGE = str(Path(__file__).parents[1])


def explain(error: BaseException, kernel: Callable[..., Any]) -> str:
    """What *error* of *kernel* says, with the nearest name where one does not exist."""
    if isinstance(error, AttributeError) and isinstance(error.obj, ModuleType) and error.name is not None:
        known = [name for name in dir(error.obj) if not name.startswith("_")]
        return f"{_shown(error.obj.__name__)} has no {error.name}{hint(error.name, known)}"
    if isinstance(error, NameError) and not isinstance(error, UnboundLocalError) and error.name is not None:
        known = [*getattr(kernel, "__globals__", ()), *dir(builtins)]
        return f"name {error.name!r} is not defined{hint(error.name, known)}"
    return str(error)


def _shown(module: str) -> str:
    """A module by the name that users give it."""
    first, dot, rest = module.partition(".")
    return {"numpy": "np", "numba_hip": "hip"}.get(first, first) + dot + rest.removeprefix("language.")


def hide_own_frames(error: BaseException) -> None:
    """Drop the frames of this package from the traceback of *error*, unless all are to be shown."""
    if are_full():
        return
    entries = []
    entry = error.__traceback__
    while entry is not None:
        if not entry.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            entries.append(entry)
        entry = entry.tb_next
    kept: TracebackType | None = None
    for entry in reversed(entries):
        kept = TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    error.__traceback__ = kept
    if error.__context__ is not None and error.__suppress_context__:
        error.__context__ = None
