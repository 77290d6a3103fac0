"""Posing in child processes: a ``sitecustomize`` module of ours is on their path.

It costs nothing until they import `numba.cuda`, and it also runs the ``sitecustomize`` that it hides.
"""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = str(Path(__file__).parent / "child")
PATH = "PYTHONPATH"


def _path() -> list[str]:
    return [part for part in os.environ.get(PATH, "").split(os.pathsep) if part]


def begin() -> None:
    """Make processes that are started from now on pose."""
    if FOLDER not in _path():
        os.environ[PATH] = os.pathsep.join([FOLDER, *_path()])


def end() -> None:
    """Undo `begin`."""
    rest = [part for part in _path() if part != FOLDER]
    if rest:
        os.environ[PATH] = os.pathsep.join(rest)
    else:
        os.environ.pop(PATH, None)
