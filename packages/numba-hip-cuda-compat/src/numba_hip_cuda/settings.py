"""Settings of Numba CUDA that have a counterpart: while posing, ours follow Numba's where nobody chose a value.

So both ``NUMBA_CUDA_...`` variables and what programs assign to `numba.core.config` hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import config as numba_config

from hip_runtime import config as runtime_config
from hip_runtime.config import Setting

FOLLOWERS: tuple[tuple[Setting[Any], Callable[[], Any]], ...] = (
    (runtime_config.cpu_wave_size, lambda: 32),  # threads of a warp on every GPU of NVIDIA's
    (runtime_config.pending_releases, lambda: numba_config.CUDA_DEALLOCS_COUNT),
    (runtime_config.pending_release_ratio, lambda: numba_config.CUDA_DEALLOCS_RATIO),
    (runtime_config.array_interface_sync, lambda: bool(numba_config.CUDA_ARRAY_INTERFACE_SYNC)),
)
"""Our settings, and what they are while posing lasts."""


def begin() -> None:
    """Let our settings follow."""
    for setting, source in FOLLOWERS:
        setting.follow(source)


def end() -> None:
    """Bring their defaults back."""
    for setting, _ in FOLLOWERS:
        setting.follow(None)
