"""Python's garbage collector pauses while kernels are compiled.

Compiling makes many objects that stay, and hardly any garbage in cycles. Collections look at all objects of the process
and find next to nothing: they took a fifth of the first compilation of a process, an eighth of a long one.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

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
            gc.enable()
            _paused_by.clear()


def _resume_in_child() -> None:
    """Resume if another thread had paused the collector: there is none to do so in a forked child."""
    if _paused_by - {threading.get_ident()}:
        gc.enable()
        _paused_by.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_resume_in_child)
