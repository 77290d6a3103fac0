"""A limit to what a random kernel may take; `tools.fuzz` has the same one."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS = 90.0
"""Processor time that one run of a kernel may take, with making its machine code."""


class OverdueError(Exception):
    """Something took longer than it may."""


@contextmanager
def limit_time(seconds: float = SECONDS) -> Iterator[None]:
    """Raise `OverdueError` in what takes more than *seconds* of processor time, also within a kernel of the CPU device.

    For the main thread, whose handlers of signals are called while a block runs.
    """

    def stop(number: int, frame: object) -> None:
        raise OverdueError(f"not done after {seconds:g} s of processor time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
