"""Settings of this package: one object per environment variable, typed and documented, read when it is used."""

from __future__ import annotations

import os
from pathlib import Path

from hip_runtime.config import Setting, switch


def _user_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base if base else Path.home() / ".cache") / "numba-hip"


cache_dir: Setting[Path] = Setting(
    "NUMBA_HIP_CACHE_DIR",
    "Directory in which kernels with cache=True are kept from one process to the next; by default numba-hip in the "
    "user's cache directory (XDG_CACHE_HOME, or ~/.cache). Nobody else may be able to write to it.",
    Path,
    _user_cache,
)


boundscheck: Setting[bool] = Setting(
    "NUMBA_HIP_BOUNDSCHECK",
    "1 makes an index out of range raise IndexError in every kernel whose boundscheck option is not given; the default "
    "is 0. Read when a kernel is compiled.",
    switch,
    lambda: False,
)

simulator: Setting[bool] = Setting(
    "NUMBA_HIP_SIMULATOR",
    "1 makes hip.jit leave kernels to Python, one thread at a time, for debuggers; the default is 0. Read when a "
    "function is decorated.",
    switch,
    lambda: False,
)

SETTINGS: tuple[Setting[Path] | Setting[bool], ...] = (cache_dir, boundscheck, simulator)
"""All settings, for tools that list them."""
