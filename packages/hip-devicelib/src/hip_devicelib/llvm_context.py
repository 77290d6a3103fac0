"""LLVM contexts that outlive their modules, whichever the garbage collector finds first.

llvmlite frees a context when its Python object goes. A module has a reference to it, but where an exception's traceback
holds both and is part of a cycle, the collector frees them in any order, and LLVM reads freed memory when the module is
freed after its context.
"""

from __future__ import annotations

import time
from collections import deque

import llvmlite.binding as llvm

SECONDS = 1.0
"""How long a context is kept after its object has gone: a run of the collector takes less."""

_alive: dict[int, llvm.ContextRef] = {}
_waiting: deque[tuple[float, llvm.ContextRef]] = deque()
"""Contexts whose object has gone, the oldest first, with when that was."""


class _Context(llvm.ContextRef):
    """A context that is freed some time after this object has gone."""

    def __init__(self) -> None:
        owner = llvm.create_context()
        super().__init__(owner._ptr)
        _alive[id(owner)] = owner
        self._key = id(owner)

    def _dispose(self) -> None:
        _waiting.append((time.monotonic(), _alive.pop(self._key)))


def make_context() -> llvm.ContextRef:
    """A new context, for modules that are read or made in it."""
    while _waiting and _waiting[0][0] < time.monotonic() - SECONDS:
        try:
            _, context = _waiting.popleft()
        except IndexError:  # another thread was faster
            break
        context.close()
    return _Context()
