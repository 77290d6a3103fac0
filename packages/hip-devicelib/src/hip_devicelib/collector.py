"""Python's garbage collector pauses while kernels are compiled.

Compiling makes many objects that stay, and hardly any garbage in cycles. Collections look at all objects of the process
and find next to nothing: they took a fifth of the first compilation of a process, an eighth of a long one.

What a pause leaves behind is looked at when it ends, by the collection that is due then, and that is right: modules of
LLVM IR are garbage in cycles. Only the first pauses of a process make mostly what stays, the modules and declarations
that they load. That becomes old without being looked at, which saves 15 to 35 ms of the first launch; the garbage among
it goes with the next full collection.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

FIRST_PAUSES = 2
"""Those of compiling a process's first kernel: one for its code object, one for its machine code."""

MOST_IMMORTAL = 2000
"""Fewer frozen objects than these are Python's own, hundreds from 3.12 on; a program that freezes any has thousands."""

_left = [FIRST_PAUSES]

_paused_by: set[int] = set()
"""The thread that paused the collector; at most one, as it holds the lock of compiling."""


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the collector, unless it is paused already. For use within `hip_devicelib.forking.compiling`."""
    pauses = gc.isenabled()
    try:
        if pauses:
            _paused_by.add(threading.get_ident())
            gc.disable()
        yield
    finally:
        if pauses:
            if _left[0]:
                _left[0] -= 1
                _age_objects()
            gc.enable()
            _paused_by.clear()


def _age_objects() -> None:
    """Make all objects old, as if collections had found that they stay; not if the program froze some, as they would
    be frozen no more."""
    if gc.get_freeze_count() < MOST_IMMORTAL:
        gc.freeze()
        gc.unfreeze()


def _resume_in_child() -> None:
    """Resume if another thread had paused the collector: there is none to do so in a forked child."""
    if _paused_by - {threading.get_ident()}:
        gc.enable()
        _paused_by.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_resume_in_child)
