"""Named ranges of a program, in profiles and in the traces of ROCm's tools."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from hip_runtime.profiling import roctx
from hip_runtime.profiling.profile import running


@contextmanager
def range(name: str) -> Iterator[None]:
    """Give the work within ``with hip.range("name"):`` a name in active profiles and, if ROCm's library for that is
    installed, in the traces of its profilers. Ranges may be nested."""
    library = roctx.library()
    taken = running()
    if library is not None:
        library.push(name)
    start = time.perf_counter()
    try:
        yield
    finally:
        end = time.perf_counter()
        if library is not None:
            library.pop()
        for profile in taken:
            profile.add("range", name, start, end)
