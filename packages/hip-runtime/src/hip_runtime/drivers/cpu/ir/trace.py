"""Notifications of a graph's state after each pass, for listeners during a kernel's compilation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hip_runtime.drivers.cpu.ir.model import Function
from hip_runtime.drivers.cpu.ir.printer import Note

Listener = Callable[[str, Function, "Note | None"], None]
"""Is given the name of a pass, the graph as it left it, and what is known of its instructions."""

_listeners: list[Listener] = []
"""Of the one compilation that there is at a time, see `jit.locked`."""


def record(stage: str, function: Function, note: Note | None = None) -> None:
    """Notify listeners of *function* after the pass *stage*; *note* returns what an analysis found for an
    instruction."""
    for listener in _listeners:
        listener(stage, function, note)


@contextmanager
def listening(*listeners: Listener) -> Iterator[None]:
    """Notify *listeners* of every pass within the block."""
    _listeners.extend(listeners)
    try:
        yield
    finally:
        del _listeners[len(_listeners) - len(listeners) :]
