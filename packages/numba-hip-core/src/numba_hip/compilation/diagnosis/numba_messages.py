"""Parses Numba's message about a failed compilation: reasons, the call that failed, and lines of source.

Numba passes errors on as text: an error in a function that a kernel calls is part of the message about the call, and
each implementation that was tried adds its own part, indented.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import numba

import hip_devicelib
import hip_runtime
from numba_hip.compilation.diagnosis.source import SourceLine

OWN_FOLDERS = tuple(
    str(folder) + os.sep
    for folder in (
        Path(__file__).parents[2],
        *(
            Path(file).parent
            for file in (numba.__file__, llvmlite.__file__, hip_devicelib.__file__, hip_runtime.__file__)
        ),
    )
)
"""Where no user's code is."""

NOISE = re.compile(
    r"Failed in .* pipeline \(step: |- Resolution failure for |No implementation of function |There are \d+ candidate|"
    r"- Of which \d|[\w ]+ (of|in) function '|With argument\(s\)|Rejected as |raised from |During: |"
    r"No match|\* \(|>>> |<source |\^"
)
"""How lines begin that are no reason."""

NOWHERE = "unknown location"
"""The file of what Numba knows no line of."""

ERROR_TYPE = re.compile(r"(?:\w+\.)*\w+Error: (?=\S)")
DURING = re.compile(r"(?:.* at|.*Raised from|.*location:) (?P<file>\S.*?) \((?P<line>\d+)\)$")
RAISED_FROM = re.compile(r"\.+ Raised from \S.* \(\d+\)$")
EXCERPT = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+):$')
COMPILING = re.compile(r"During: compiling .* for [^,]+, (?P<file>.+):(?P<line>\d+)$")
"""What `compile_function` adds for each function that it is in: see `numba_hip.compilation.compiler`."""


class Reason(NamedTuple):
    """Lines that say what is wrong, and whether they come from one of the implementations that were tried."""

    text: str
    tried: bool


class Message(NamedTuple):
    """The content of one of Numba's messages."""

    reasons: tuple[Reason, ...]
    headline: str
    """That a function has no implementation, as Numba says it, with its own name of the function."""
    call: str
    """The call that has no implementation, as Numba writes it: ``setitem(array(float64, 1d, C), ...)``."""
    places: tuple[SourceLine, ...]
    """Lines of the user's source, the innermost one first."""
    functions: tuple[SourceLine, ...]
    """Where the functions begin that were being compiled, whoever wrote them, the innermost one first."""


def read(text: str) -> Message:
    """Read *text*, a message of Numba's."""
    reasons: list[Reason] = []
    places, functions, call, headline, in_excerpt, goes_on = [], [], "", "", False, False
    for line in text.splitlines():
        stripped, went_on, goes_on = line.strip(), goes_on, False
        excerpt = EXCERPT.match(stripped)
        if excerpt is not None or in_excerpt:
            in_excerpt = stripped not in ("", "^")
        elif stripped.startswith(">>> "):
            call = call or stripped.removeprefix(">>> ")
        elif stripped:
            typed = ERROR_TYPE.match(stripped)
            said = RAISED_FROM.sub("", stripped if typed is None else stripped[typed.end() :])
            goes_on = not NOISE.match(said)
            if not headline and said.startswith("No implementation of function "):
                headline = said.removesuffix(":")
            if goes_on and went_on and typed is None:
                reasons[-1] = Reason(f"{reasons[-1].text}\n  {said}", reasons[-1].tried)
            elif goes_on:
                reasons.append(Reason(said, line.startswith(" ")))
        compiled = COMPILING.match(stripped)
        if compiled is not None:
            functions.append(SourceLine(compiled["file"], int(compiled["line"])))
        found = excerpt or DURING.match(stripped)
        if found is not None:
            name = found["file"]  # "<...>" where there is no file
            places.append(SourceLine(name if name.startswith("<") else os.path.abspath(name), int(found["line"])))
    of_user = tuple(dict.fromkeys(filter(is_of_user, places)))
    return Message(tuple(dict.fromkeys(reasons)), headline, call, of_user, tuple(functions))


def is_of_user(place: SourceLine) -> bool:
    """Whether *place* is in code that is neither Numba's nor ours, and known to Numba."""
    if os.path.basename(place.filename) == NOWHERE:
        return False
    return not place.filename.startswith(OWN_FOLDERS) and not place.filename.startswith("<numba")


def places_of(error: BaseException) -> Iterator[SourceLine]:
    """The lines of the user's source that Numba was processing when *error* occurred, the innermost one first."""
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    for frame in reversed(frames):
        for name in ("inst", "constraint", "self"):
            location: Any = getattr(frame.f_locals.get(name), "loc", None)
            if isinstance(getattr(location, "filename", None), str) and isinstance(location.line, int):
                place = SourceLine(location.filename, location.line)
                if is_of_user(place):
                    yield place
