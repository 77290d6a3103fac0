"""Ctrl-C while LLVM's objects are made and freed.

Python runs the handlers of signals between any two instructions of the main thread. What one raises in a ``__del__`` is
lost, and llvmlite frees its objects there. Raised between LLVM's freeing of an object and the note of that, the object
is freed twice. Of the interrupts of kernels that were being compiled one in a dozen was lost, and one in two hundred
ended the process. So the handler runs a little later, at the next place where nothing of that can happen.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_Handler = Callable[[int, FrameType | None], object]


class _Hold:
    """Takes the place of the *handler* of Ctrl-C."""

    def __init__(self, handler: _Handler) -> None:
        self.handler = handler
        self.thread = threading.get_ident()
        self._is_pending = False
        self._frame: FrameType | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self._is_pending, self._frame = True, frame

    def give_back(self) -> None:
        """Give the place back, unless somebody else has taken it."""
        current: object = signal.getsignal(signal.SIGINT)
        if current is self:
            signal.signal(signal.SIGINT, self.handler)

    def let_in(self) -> None:
        """Run the handler, if it was to run."""
        if self._is_pending:
            frame, self._is_pending, self._frame = self._frame, False, None
            self.handler(signal.SIGINT, frame)


_holds: list[_Hold] = []
"""That of the main thread, the only one that runs handlers, if it holds them up."""


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Let the handler of Ctrl-C run at the end, and where `let_interrupts_in` is called meanwhile. On other threads
    than the main one, in an interpreter that is not the main one, and within itself this does nothing."""
    hold = None if _holds else _take_place()
    if hold is None:
        yield
        return
    try:
        _holds.append(hold)
        yield
    finally:
        _holds.clear()
        hold.give_back()
        hold.let_in()


def let_interrupts_in() -> None:
    """Run the handler of Ctrl-C if it was held up: between two steps, where no object of LLVM is being freed."""
    if _holds and threading.current_thread() is threading.main_thread():
        _holds[0].let_in()


def _take_place() -> _Hold | None:
    """What holds the handler up; ``None`` if there is none in Python, or this thread does not run it."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        return None
    hold = _Hold(handler)
    try:
        signal.signal(signal.SIGINT, hold)
    except ValueError:  # Python has other interpreters in a process, too
        return None
    return hold


def _give_back_in_child() -> None:
    """Give the place back if another thread had taken it: there is none to do so in a forked child."""
    if _holds and _holds[0].thread != threading.get_ident():
        _holds.pop().give_back()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_give_back_in_child)
