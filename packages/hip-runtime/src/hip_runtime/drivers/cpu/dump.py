"""Dumps of a kernel's graphs while the CPU device changes them, and their verification."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hip_runtime import config
from hip_runtime.driver import Dim3
from hip_runtime.drivers.cpu.ir.model import Function
from hip_runtime.drivers.cpu.ir.printer import Note, print_function
from hip_runtime.drivers.cpu.ir.trace import Listener, listening
from hip_runtime.drivers.cpu.ir.verifier import verify
from hip_runtime.dump import Dump


class KernelDump(Dump):
    """What is to be seen of one kernel, for blocks of one shape."""

    def __init__(self, kernel: str, block: Dim3) -> None:
        super().__init__(f"{kernel}-{'x'.join(map(str, block))}")
        self._graphs: dict[str, str] = {}

    @contextmanager
    def passes(self) -> Iterator[None]:
        """Look on while graphs are read and changed: show and verify them, as far as that is asked for."""
        listeners: list[Listener] = []
        if self.kinds & {"graph", "passes"}:
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
