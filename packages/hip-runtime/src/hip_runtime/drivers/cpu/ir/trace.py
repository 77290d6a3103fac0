"""What is told of a graph after each pass: to who looks on while a kernel is compiled, if anybody does."""

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
    """Tell that the pass *stage* has left *function* as it is; *note* says what an analysis found of an instruction."""
    for listener in _listeners:
        listener(stage, function, note)


def is_traced() -> bool:
    """Whether anybody looks on: what only serves to be shown is not worth computing otherwise."""
    return bool(_listeners)


@contextmanager
def listening(*listeners: Listener) -> Iterator[None]:
    """Have *listeners* told of every pass meanwhile."""
    _listeners.extend(listeners)
    try:
        yield
    finally:
        del _listeners[len(_listeners) - len(listeners) :]
