"""The stages of compiling a kernel: a message on a terminal, or in a notebook, if it takes long, and their times."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from hip_devicelib.interrupts import let_interrupts_in
from hip_runtime import activity, config

PATIENCE = 3.0
"""Seconds of compiling after which a line is written."""


class _Compilation:
    """The kernel that a thread compiles, and the current stage."""

    def __init__(self, kernel: str, stage: str) -> None:
        self.kernel = kernel
        self.stage = stage

    def announce(self) -> None:
        """Write the line."""
        sys.stderr.write(
            f"numba.hip: compiling kernel {self.kernel!r} takes more than {PATIENCE:g} s; now: {self.stage} "
            f"({config.compile_notice.variable}=0 leaves this line out)\n"
        )
        sys.stderr.flush()


class StageClock:
    """Adds up the seconds of each stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._stage = ""
        self._since = time.perf_counter()

    def switch(self, stage: str) -> str:
        """Count for *stage* from now on, or, if that is empty, for none; returns the stage until now."""
        before, now = self._stage, time.perf_counter()
        if before:
            self.seconds[before] = self.seconds.get(before, 0.0) + now - self._since
        self._stage, self._since = stage, now
        return before


class _Current(threading.local):
    compilation: _Compilation | None = None
    clock: StageClock | None = None


_current = _Current()


@contextmanager
def timed(clock: StageClock) -> Iterator[None]:
    """A block whose stages of compilation, in this thread, are counted by *clock*."""
    outer, _current.clock = _current.clock, clock
    try:
        yield
    finally:
        clock.switch("")
        _current.clock = outer


@contextmanager
def announced(kernel: str, stage: str) -> Iterator[None]:
    """A block that compiles *kernel*, beginning with *stage*: after `PATIENCE` seconds an interactive user is told the
    current stage, once. Within another such block this is a stage of that one."""
    clock = _current.clock
    if clock is None:
        with _announced(kernel, stage):
            yield
        return
    before = clock.switch(stage)
    try:
        with _announced(kernel, stage):
            yield
    finally:
        clock.switch(before)


@contextmanager
def _announced(kernel: str, stage: str) -> Iterator[None]:
    outer = _current.compilation
    if outer is not None:
        before, outer.stage = outer.stage, stage
        try:
            yield
        finally:
            outer.stage = before
        return
    observer = activity.observer
    announces = _is_watched() and config.compile_notice()
    if not announces and observer is None:
        yield
        return
    compilation = _current.compilation = _Compilation(kernel, stage)
    timer = threading.Timer(PATIENCE, compilation.announce)
    timer.daemon = True
    if announces:
        timer.start()
    start = time.perf_counter()
    try:
        yield
    finally:
        timer.cancel()
        _current.compilation = None
        if observer is not None:
            observer.compiled(kernel, start, time.perf_counter())


def enter_stage(stage: str) -> None:
    """Set the current *stage* of the kernel that this thread compiles, if any. Before it, Ctrl-C is let in."""
    let_interrupts_in()
    if _current.compilation is not None:
        _current.compilation.stage = stage
    if _current.clock is not None:
        _current.clock.switch(stage)


def _is_watched() -> bool:
    """Whether standard error is interactive."""
    try:
        terminal = sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False
    return terminal or "ipykernel" in sys.modules
