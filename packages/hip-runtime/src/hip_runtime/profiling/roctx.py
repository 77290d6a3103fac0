"""ROCTX, the library through which ROCm's profilers learn of a program's ranges.

``roctxRangePushA`` and ``roctxRangePop``: https://rocm.docs.amd.com/projects/roctracer. ``librocprofiler-sdk-roctx``
has the same functions for rocprofv3, ``libroctx64`` for older tools.
"""

from __future__ import annotations

import ctypes
from functools import cache

NAMES = ("librocprofiler-sdk-roctx.so", "librocprofiler-sdk-roctx.so.1", "libroctx64.so", "libroctx64.so.4")


class Roctx:
    """The functions of the library that are used."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._push, self._pop = library.roctxRangePushA, library.roctxRangePop
        self._push.argtypes, self._push.restype = [ctypes.c_char_p], ctypes.c_int
        self._pop.argtypes, self._pop.restype = [], ctypes.c_int

    def push(self, name: str) -> None:
        """Begin a range in this thread."""
        self._push(name.encode())

    def pop(self) -> None:
        """End the innermost range of this thread."""
        self._pop()


@cache
def library() -> Roctx | None:
    """The library, if it is installed and the device is an AMD GPU; looked for once."""
    from hip_runtime.device import current_device

    if current_device().is_cpu:
        return None
    for name in NAMES:
        try:
            return Roctx(ctypes.CDLL(name))
        except (OSError, AttributeError):
            continue
    return None
