"""Explains compile errors in a few lines: the user's line, what is wrong with it, and what to do.

Numba lists everything that it tried, with lines of its own source. `explain` parses that message (`numba_messages`),
finds the line in the user's source (`source`), and says what it means (`mistakes`). This package is imported only when
a compilation has failed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core.errors import NumbaError, UnsupportedBytecodeError

from numba_hip.compilation.diagnosis.crashes import crash_of
from numba_hip.compilation.diagnosis.failure import Failure
from numba_hip.compilation.diagnosis.mistakes import meaning
from numba_hip.compilation.diagnosis.unsupported_python import UNSUPPORTED
from numba_hip.errors import UnknownNameError, UnsupportedCodeError, UnsupportedSyntaxError

FOREIGN = (
    ("Literal[", UnsupportedCodeError),
    ("module ", UnknownNameError),
    ("HIP has no counterpart of libdevice.", UnknownNameError),
    *((word, UnsupportedCodeError) for word in UNSUPPORTED),
)
"""What errors of other types say that come of what the user wrote, and what is raised instead of them."""


def explain(
    error: Exception, function: Callable[..., Any], args: tuple[Any, ...], target: str, all_of_it: str
) -> Exception | None:
    """The exception to raise instead of *error*, which occurred when *function* was compiled for types *args* and for
    *target*. It has the same type and a message of a few lines, the last of which says that *all_of_it* shows the rest.
    None if the error is not the user's, and should be shown as it is."""
    crash = crash_of(error)
    kind = _kind_of(error) if crash is None else UnsupportedSyntaxError
    if kind is None:
        return None
    made = kind.__new__(kind)
    made.__dict__.update(error.__dict__)
    failure = Failure(error, function)
    if crash is not None:
        failure.move_to(crash.wanted)
    said = meaning(failure) if crash is None else crash.said
    lines = [f"{said}\n", *failure.shown_places()]
    lines.append(f"compiling {function.__name__}({', '.join(map(str, args))}) for {target}; {all_of_it} shows more")
    made.args = ("\n".join(line.rstrip("\n") for line in lines),)
    return made


def _kind_of(error: Exception) -> type[Exception] | None:
    """The type of the error to raise: that of *error*, or the one that replaces it."""
    if isinstance(error, UnsupportedBytecodeError):
        return UnsupportedSyntaxError
    if isinstance(error, NumbaError):
        return type(error)
    return next((kind for word, kind in FOREIGN if isinstance(error, AttributeError) and word in str(error)), None)
