"""Graphs of the CPU device: recorded work items of a stream, each of which can be run any number of times."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from functools import partial

from hip_runtime.drivers import captures
from hip_runtime.errors import InvalidHandleError

Work = Callable[[], None]


class CpuRecording(captures.Recording):
    """The work that a stream is given while it is captured."""

    def __init__(self) -> None:
        super().__init__()
        self.works: list[Work] = []


class CpuGraph:
    """The recorded work, or ``None`` once the graph was destroyed."""

    def __init__(self, works: tuple[Work, ...]) -> None:
        self.works: tuple[Work, ...] | None = works

    def found_works(self) -> tuple[Work, ...]:
        """The work, unless it was destroyed: `InvalidHandleError`."""
        if self.works is None:
            raise InvalidHandleError("the graph was destroyed")
        return self.works


class CpuExecutable(CpuGraph):
    """The work of a graph, run by one launch at a time."""

    def __init__(self, works: tuple[Work, ...]) -> None:
        super().__init__(works)
        self.lock = threading.Lock()
        _executables.add(self)

    def run(self) -> Work:
        """All of the work as one piece of it, also if the executable is destroyed before that is done."""
        return partial(_run, self, self.found_works())


def _run(executable: CpuExecutable, works: tuple[Work, ...]) -> None:
    with executable.lock:
        for work in works:
            work()


_executables: weakref.WeakSet[CpuExecutable] = weakref.WeakSet()


def renew_locks() -> None:
    """Replace the locks in a forked child, where the threads that held them do not exist."""
    for executable in list(_executables):
        executable.lock = threading.Lock()
