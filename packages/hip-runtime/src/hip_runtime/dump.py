"""Dumps of kernels while they are compiled: see the settings `config.dump` and `config.dump_directory`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from hip_runtime import config
from hip_runtime.errors import SettingError

SUFFIXES = {"ir": "ll", "graph": "graph.ll", "passes": "passes.ll", "asm": "s"}
"""How the names of files end."""

_WIDTH = 120


class Dump:
    """The dumps of one kernel, whose *name* is in titles and file names."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._directory = config.dump_directory()
        self._begun: set[str] = set()
        self.kinds = config.dump()
        """What is asked for."""

    def show(self, kind: str, title: str, text: Callable[[], str]) -> None:
        """Write *text* under a *title*, if *kind* was requested. Raises `SettingError` if the folder cannot be written
        to."""
        if kind in self.kinds:
            self._write(kind, title, text())

    def _write(self, kind: str, title: str, text: str) -> None:
        if not self._directory:
            print(f" {title}: {self._name} ".center(_WIDTH, "="), text, sep="\n", file=sys.stderr, flush=True)
            return
        path = Path(self._directory, f"{re.sub('[^A-Za-z0-9_.-]', '_', self._name)}.{SUFFIXES[kind]}")
        comment = "#" if kind == "asm" else ";"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a" if kind in self._begun else "w") as file:
                file.write(f"{comment} {title}\n{text}\n")
        except OSError as error:
            variable = config.dump_directory.variable
            raise SettingError(f"{variable}={self._directory!r}: {path} cannot be written: {error.strerror}") from None
        self._begun.add(kind)
