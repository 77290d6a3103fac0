"""The observer that receives the events of observed kernels' threads: see `observer`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from hip_runtime.drivers.cpu.execution.block_scheduler import block_scheduler
from hip_runtime.drivers.cpu.object_code.jit import observer_address, observer_words

_lock = threading.RLock()


def renew_lock() -> None:
    """Replace the lock in a forked child, where the thread that held it does not exist."""
    global _lock
    _lock = threading.RLock()


@contextmanager
def observed(function: int, state: int) -> Iterator[None]:
    """Report the events of observed kernels to the native function at address *function*, with *state* as its first
    argument; the others are those of `observer.OBSERVER_TYPE`. One observer at a time: other threads wait."""
    words = observer_words()
    with _lock:
        before = words[0], words[1]
        words[1], words[0] = state, function
        try:
            with block_scheduler().observing(observer_address(), function):
                yield
        finally:
            words[0], words[1] = before
