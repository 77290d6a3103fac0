"""Forks and compiling: a process is not forked while another of its threads compiles.

A forked child has the thread that forked and no other. A lock that another thread held stays taken there for good, and
what that thread was changing stays half changed: LLVM's objects, Numba's tables. So a fork waits until nobody compiles:
it takes the locks under which that is done, always in the same order, and gives them back in both processes.

Waiting ends after `PATIENCE`. The process is forked all the same then, with a warning, and the child gets locks that
are free: it may meet a table of Numba or LLVM that is half changed, but does not hang.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from enum import IntEnum
from typing import Any

from llvmlite import binding as llvm

from hip_devicelib.errors import ForkWarning

PATIENCE = 60.0
"""Seconds that a fork waits, at most, for what other threads compile."""


class Rank(IntEnum):
    """The order in which locks are taken."""

    COMPILING = 0
    NUMBA = 1
    LLVM = 2


compiling = threading.RLock()
"""Held by whoever compiles; no lock but those of higher rank, and such as are renewed in a child, is taken outside of
it."""

_locks: dict[Rank, Any] = {Rank.COMPILING: compiling}
_held: dict[int, list[Any]] = {}
"""The locks that a thread took for its fork, by the number of the thread; it has the same in the child."""


def hold_in_forks(rank: Rank, lock: Any) -> None:
    """Have each fork wait for *lock*, an ``RLock``."""
    _locks[rank] = lock


def _before() -> None:
    until = time.monotonic() + PATIENCE
    held = _held[threading.get_ident()] = []
    for _, lock in sorted(_locks.items()):
        if not lock.acquire(timeout=max(until - time.monotonic(), 0)):
            warnings.warn(
                f"the process is forked while another thread has been compiling for {PATIENCE:.0f} s; what the child "
                "compiles may fail: start processes with multiprocessing's 'spawn', or fork first",
                ForkWarning,
                stacklevel=2,
            )
            return
        held.append(lock)


def _release() -> None:
    for lock in reversed(_held.pop(threading.get_ident(), [])):
        lock.release()


def _release_in_child() -> None:
    held = _held.get(threading.get_ident(), [])
    _release()
    for lock in _locks.values():
        if lock not in held:
            lock._at_fork_reinit()
    _held.clear()


def _lock_of_llvmlite() -> Any:
    """The lock that llvmlite takes for each call of LLVM; ``None`` where this llvmlite has another one."""
    return getattr(getattr(llvm.ffi.lib, "_lock", None), "_lock", None)


if hasattr(os, "register_at_fork"):
    if _lock_of_llvmlite() is not None:
        hold_in_forks(Rank.LLVM, _lock_of_llvmlite())
    os.register_at_fork(before=_before, after_in_parent=_release, after_in_child=_release_in_child)
