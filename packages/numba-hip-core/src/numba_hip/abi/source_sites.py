"""Source locations of memory accesses, as numbers that code can contain."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numba

_INNER = (str(Path(numba.__file__).parent), str(Path(__file__).parent.parent))
"""Directories of functions that the user's own functions call, and whose lines tell a user little."""


@dataclass(frozen=True)
class Site:
    """A line of a function, and the name there of the accessed array, if it is known."""

    file: str
    line: int
    function: str
    array: str | None = None

    @property
    def is_inner(self) -> bool:
        """Whether the line is in Numba or in our packages, so that the caller's line is more useful."""
        return self.file.startswith(_INNER)


UNKNOWN = Site("", 0, "")

_numbers: dict[Site, int] = {}
_sites: dict[int, Site] = {}
_next = count(1)
_lock = threading.Lock()


def number_of(site: Site) -> int:
    """The number of *site* in this process, 1 or more."""
    with _lock:
        number = _numbers.get(site)
        if number is None:
            number = _numbers[site] = next(_next)
            _sites[number] = site
        return number


def new_number() -> int:
    """A number that no site has."""
    with _lock:
        return next(_next)


def site_of(number: int) -> Site:
    """The site with *number*; `UNKNOWN` if there is none."""
    return _sites.get(number, UNKNOWN)
