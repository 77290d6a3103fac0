"""Places in the program that simulated threads come to."""

from __future__ import annotations

import sys
from types import FrameType

from numba_hip.language import stub

Site = tuple[str, int, int]

PACKAGE = __name__.rpartition(".")[0]


def calling_frame() -> FrameType:
    """The frame of the program that called the function of the kernel language."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return frame


def calling_site() -> Site:
    """The place in the program that called the function of the kernel language."""
    frame = calling_frame()
    return frame.f_code.co_filename, frame.f_lineno, frame.f_lasti


def array_site() -> tuple[object, ...]:
    """The place that makes a shared array, and what its function captured: functions that differ in that alone have
    arrays of their own, as compiled ones do."""
    frame = calling_frame()
    captured = (id(frame.f_locals.get(name)) for name in frame.f_code.co_freevars)
    return frame.f_code.co_filename, frame.f_lineno, frame.f_lasti, *captured


def _is_ours(module: str) -> bool:
    return module.startswith(PACKAGE) or module == stub.__name__
