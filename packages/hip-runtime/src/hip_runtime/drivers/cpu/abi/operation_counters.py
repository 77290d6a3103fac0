"""Counters of what the threads of kernels compute, for kernels that are compiled to count."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

FLOAT32, FLOAT64, BYTES = range(3)
"""What is counted: operations on 32-bit (or shorter) and on 64-bit floats, and bytes that are loaded or stored."""

Counters = ctypes.Array[ctypes.c_uint64]

_wanted: list[Counters] = []


def wanted() -> Counters | None:
    """Where kernels that are compiled now have to count; None if they do not."""
    return _wanted[-1] if _wanted else None


@contextmanager
def counting() -> Iterator[Counters]:
    """Let kernels that are compiled within the block count, for the rest of their lives, which have to end before that
    of the counters."""
    counters = (ctypes.c_uint64 * 3)()
    _wanted.append(counters)
    try:
        yield counters
    finally:
        _wanted.remove(counters)
