"""A failed compilation: Numba's message, and the user's source."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from hip_devicelib.cached_property import cached_property
from numba_hip.compilation.diagnosis.numba_messages import is_of_user, places_of, read
from numba_hip.compilation.diagnosis.source import (
    SourceLine,
    functions_at,
    is_in_function,
    name_at,
    nodes_at,
    nodes_of,
    text_of,
)
from numba_hip.plain_messages import plain_text


class Failure:
    """What is known of *error*, which occurred when *function* was compiled."""

    def __init__(self, error: Exception, function: Callable[..., Any]) -> None:
        self.error = error
        self.text = plain_text(error)
        self.message = read(self.text)
        self.function = function
        code = function.__code__
        self.start = SourceLine(code.co_filename, code.co_firstlineno)
        self.place = next(self._places(), self.start)
        """The innermost line of the user's; a kind of failure may know a better one."""

    def _places(self) -> Iterator[SourceLine]:
        yield from self.message.places
        location = getattr(self.error, "loc", None)
        if location is not None and isinstance(location.line, int):
            place = SourceLine(location.filename, location.line)
            if is_of_user(place):
                yield place
        yield from places_of(self.error)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """The syntax nodes of the statement at the place."""
        return nodes_at(self.place)

    def has(self, *kinds: type[ast.AST]) -> bool:
        """Whether the statement at the place has a node of one of *kinds*."""
        return any(isinstance(node, kinds) for node in self.nodes)

    def move_to(self, wanted: Callable[[ast.AST], bool]) -> None:
        """Move the place to the first line of the function with a node that is *wanted*, if there is one."""
        for function in reversed(functions_at(self.place)):
            for node in nodes_of(function):
                if wanted(node):
                    self.place = SourceLine(self.place.filename, node.lineno)  # type: ignore[attr-defined]
                    return

    def enter_innermost(self) -> None:
        """Move the place into the innermost function that was being compiled, if that is the user's. Numba knows no
        line of what it finds out about a function as a whole, only those of the calls."""
        for start in self.message.functions[:1]:
            if is_of_user(start) and not is_in_function(self.place, start):
                self.place = start

    @property
    def names(self) -> Mapping[str, Any]:
        """The variables from outside that the function sees: global ones, and those of the functions around it."""
        found = dict(getattr(self.function, "__globals__", {}))
        cells = getattr(self.function, "__closure__", None) or ()
        for name, cell in zip(self.function.__code__.co_freevars, cells, strict=True):
            with suppress(ValueError):  # nothing was assigned to it
                found[name] = cell.cell_contents
        return found

    @property
    def has_callers(self) -> bool:
        """Whether the place is in another function than the one that was compiled."""
        return bool(self._callers())

    def _callers(self) -> list[SourceLine]:
        return [place for place in self.message.places if name_at(place) != name_at(self.place)]

    def shown_places(self) -> list[str]:
        """The place, with its line, and where the function was called from if it is not the one that was compiled."""
        lines = [f'File "{self.place.filename}", line {self.place.line}{_within(self.place)}:']
        if text_of(self.place):
            lines.append(f"    {text_of(self.place)}")
        if self.has_callers:
            outer = self._callers()[-1]
            lines.append(f'called from "{outer.filename}", line {outer.line}{_within(outer)}: {text_of(outer)}')
        return lines


def _within(place: SourceLine) -> str:
    name = name_at(place)
    return f", in {name}" if name else ""
