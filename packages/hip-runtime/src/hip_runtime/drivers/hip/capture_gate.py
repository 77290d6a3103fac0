"""Keeps questions about work and captures apart, as a question would end a capture.

A query of a stream that is being captured, or a wait for a whole device, invalidates the capture (``hipError_t`` 900
and 907), whichever thread makes it. So threads make them within a gate, and a capture begins while no thread is within
it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_changed = threading.Condition(threading.RLock())
"""Of all gates together, so that several can be closed at once. Reentrant: Python may start a finaliser anywhere."""


class Gate:
    """What is asked about one thing: ``with gate:`` is a question, which may wait for long."""

    __slots__ = ("_closed_by", "_questions", "is_over", "turn")

    def __init__(self) -> None:
        self.turn = 0
        """How many captures have begun. All work given before the last of them is done."""
        self.is_over = False
        """The thing is gone: whoever is within the gate asks nothing any more."""
        self._questions = 0
        self._closed_by: int | None = None

    def __enter__(self) -> None:
        thread = threading.get_ident()
        with _changed:
            while self._closed_by not in (None, thread):
                _changed.wait()
            self._questions += 1

    def __exit__(self, *error: object) -> None:
        with _changed:
            self._questions -= 1
            if not self._questions:
                _changed.notify_all()

    def end(self) -> bool:
        """Let nobody ask from now on. False where somebody is asking, or has ended it before."""
        with _changed:
            if self.is_over or not self._is_free:
                return False
            self.is_over = True
            return True

    @property
    def _is_free(self) -> bool:
        return not self._questions and self._closed_by is None


@contextmanager
def closed(*gates: Gate) -> Iterator[None]:
    """Nobody but the calling thread asks anything; waits for the questions that were asked before.

    New questions are let in until then: whoever asks may have to ask again before the first answer.
    """
    with _changed:
        _changed.wait_for(lambda: all(gate._is_free for gate in gates))
        for gate in gates:
            gate._closed_by = threading.get_ident()
    try:
        yield
    finally:
        with _changed:
            for gate in gates:
                gate._closed_by = None
            _changed.notify_all()
