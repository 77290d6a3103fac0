"""What is shown of a kernel while it is compiled: see the settings `config.dump` and `config.dump_directory`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hip_runtime import config
from hip_runtime.driver import Dim3
from hip_runtime.drivers.cpu.ir.model import Function
from hip_runtime.drivers.cpu.ir.printer import Note, print_function
from hip_runtime.drivers.cpu.ir.trace import listening
from hip_runtime.drivers.cpu.ir.verifier import verify

SUFFIXES = {"ir": "ll", "graph": "graph.ll", "passes": "passes.ll", "asm": "s"}
"""How the names of files end."""

_WIDTH = 120


class Dump:
    """What is to be seen of one kernel, for blocks of one shape."""

    def __init__(self, kernel: str, block: Dim3) -> None:
        self._name = f"{kernel}-{'x'.join(map(str, block))}"
        self._kinds = config.dump()
        self._directory = config.dump_directory() if self._kinds else ""
        self._graphs: dict[str, str] = {}
        self._begun: set[str] = set()

    def show(self, kind: str, title: str, text: Callable[[], str]) -> None:
        """Show *text* under a *title*, if *kind* is asked for."""
        if kind in self._kinds:
            self._write(kind, title, text())

    @contextmanager
    def passes(self) -> Iterator[None]:
        """Look on while graphs are read and changed: show and verify them, as far as that is asked for."""
        listeners = []
        if self._kinds & {"graph", "passes"}:
            listeners.append(self._note)
        if config.verify_passes():
            listeners.append(lambda stage, function, note: verify(function, stage))
        with listening(*listeners):
            yield
        for name, text in self._graphs.items():
            self.show("graph", f"graph of {name or 'the kernel'}", lambda text=text: text)  # type: ignore[misc]
        self._graphs.clear()

    def _note(self, stage: str, function: Function, note: Note | None) -> None:
        text = print_function(function, note)
        part = stage.partition(" ")[2]
        changed = self._graphs.get(part) != text
        self._graphs[part] = text
        self.show("passes", f"after {stage}", lambda: text if changed else "no change\n")

    def _write(self, kind: str, title: str, text: str) -> None:
        if not self._directory:
            print(f" {title}: {self._name} ".center(_WIDTH, "="), text, sep="\n", file=sys.stderr, flush=True)
            return
        folder = Path(self._directory)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{re.sub('[^A-Za-z0-9_.-]', '_', self._name)}.{SUFFIXES[kind]}"
        comment = "#" if kind == "asm" else ";"
        with path.open("a" if kind in self._begun else "w") as file:
            file.write(f"{comment} {title}\n{text}\n")
        self._begun.add(kind)
