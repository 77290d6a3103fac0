"""Settings of this package: one object per environment variable, typed and documented, read when it is used."""

from __future__ import annotations

import os
from pathlib import Path

from hip_runtime.config import Setting


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

SETTINGS: tuple[Setting[Path], ...] = (cache_dir,)
"""All settings, for tools that list them."""
