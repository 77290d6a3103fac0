"""Forks and compiling: a process is not forked while another of its threads compiles.

A forked child has only the thread that forked. Locks that other threads held are never released in it, and the objects
that these threads were changing, such as LLVM's and Numba's tables, stay half changed. So a fork waits until no other
thread compiles: it takes the locks that protect compiling, always in the same order, and releases them in both
processes.

The wait ends after `PATIENCE`. The process is then forked with a warning, and the child gets new locks: it may find a
table of Numba or LLVM half changed, but it does not hang.
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
"""The most seconds that a fork waits for other threads to compile."""


class Rank(IntEnum):
    """The order in which locks are taken."""

    COMPILING = 0
    NUMBA = 1
    LLVM = 2


compiling = threading.RLock()
"""Held while compiling. Within it, only locks of higher rank are taken, and locks that are renewed in a child."""

_locks: dict[Rank, Any] = {Rank.COMPILING: compiling}
_held: dict[int, list[Any]] = {}
"""The locks that a thread took for its fork, by the number of the thread, which is the same in the child."""


def hold_in_forks(rank: Rank, lock: Any) -> None:
    """Make each fork wait for *lock*, an ``RLock``."""
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
    """The lock that llvmlite takes for each call of LLVM; ``None`` if this llvmlite has another one."""
    return getattr(getattr(llvm.ffi.lib, "_lock", None), "_lock", None)


if hasattr(os, "register_at_fork"):
    if _lock_of_llvmlite() is not None:
        hold_in_forks(Rank.LLVM, _lock_of_llvmlite())
    os.register_at_fork(before=_before, after_in_parent=_release, after_in_child=_release_in_child)
