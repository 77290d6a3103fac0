"""Installed packages: `importlib.metadata`, made safe for entries of ``sys.path`` that are not strings.

Importing passes over such things, so programs with a ``None`` there run; `importlib.metadata` fails on them.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import Distribution, EntryPoint
from typing import Any


@contextmanager
def readable_path() -> Iterator[None]:
    """Let ``sys.path`` hold nothing but text meanwhile. What was taken out stands at its end afterwards, which nobody
    can tell from where it was: it is nowhere to look for a module."""
    path: list[Any] = sys.path
    odd = [entry for entry in path if not isinstance(entry, str)]
    if odd:
        path[:] = [entry for entry in path if isinstance(entry, str)]
    try:
        yield
    finally:
        path += odd


def entry_points(group: str, name: str | None = None) -> list[EntryPoint]:
    """The entry points *name* of *group*, or all of it."""
    with readable_path():
        found = _read_entry_points(group, tuple(map(_state_of, sys.path)), tuple(map(id, sys.meta_path)))
    return [entry_point for entry_point in found if name in (None, entry_point.name)]


def _state_of(folder: str) -> tuple[str, int]:
    """*folder* of ``sys.path`` and when something was last installed into it or taken out."""
    try:
        where = os.path.abspath(folder)
        return where, os.stat(where).st_mtime_ns
    except (OSError, ValueError):
        return folder, 0


@lru_cache(maxsize=8)
def _read_entry_points(group: str, *_state: object) -> tuple[EntryPoint, ...]:
    """The entry points of *group*. This reads a file of every distribution that is installed; Numba asks `numba_hip`
    for attributes that it lacks whenever a kernel refers to it."""
    return tuple(importlib.metadata.entry_points(group=group))


def distribution(name: str) -> Distribution:
    """The installed distribution *name*; raises `importlib.metadata.PackageNotFoundError`."""
    with readable_path():
        return importlib.metadata.distribution(name)


def version(name: str) -> str:
    """The version of the installed distribution *name*; raises `importlib.metadata.PackageNotFoundError`."""
    return distribution(name).version
