"""Reduces a failing kernel to the lines that make it fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from tools.fuzz.case import Case
from tools.fuzz.indexed_program import IndexedCase
from tools.fuzz.program import Line, TypedCase

AnyCase = TypeVar("AnyCase", Case, TypedCase, IndexedCase)


def reduce_case(case: AnyCase, fails: Callable[[AnyCase], bool], attempts: int = 150) -> AnyCase:
    """A case with fewer lines for which *fails* still holds, found with at most *attempts* calls of it."""
    smaller = True
    while smaller:
        smaller = False
        for lines in shorter(case.lines):
            if attempts == 0:
                return case
            attempts -= 1
            tried = replace(case, lines=lines)
            if fails(tried):
                case, smaller = tried, True
                break
    return case


def shorter(lines: tuple[Line, ...]) -> Iterator[tuple[Line, ...]]:
    """Variants of *lines* with fewer lines, or fewer nested in them. Held lines and groups stay as they are."""
    for size in (len(lines) // 2, len(lines) // 4, 1):
        for first in range(len(lines) - size, -1, -size) if size else ():
            if not any(line.held for line in lines[first : first + size]):
                yield lines[:first] + lines[first + size :]
    for place, line in enumerate(lines):
        if line.is_group:
            continue
        rest = lines[place + 1 :]
        if line.other:
            yield (*lines[:place], replace(line, other=()), *rest)
        for body in shorter(line.body) if line.body else ():
            if body:
                yield (*lines[:place], replace(line, body=body), *rest)
