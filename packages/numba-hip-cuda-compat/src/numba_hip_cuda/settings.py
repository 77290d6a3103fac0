"""Settings of Numba CUDA that have a counterpart here: while posing, they apply unless ours was set explicitly.

This holds for ``NUMBA_CUDA_...`` variables and for assignments to `numba.core.config`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core import config as numba_config

from hip_runtime import config as runtime_config
from hip_runtime.config import Setting
from hip_runtime.device import ADDED, Device, withhold_devices
from hip_runtime.said_names import OWN, Wording, speak
from numba_hip import config
from numba_hip_cuda.catalog import CUDA
from numba_hip_cuda.name_lookup import look_up

SEARCH_PATHS = "CUDA_NVRTC_EXTRA_SEARCH_PATHS"
"""The name in `numba.core.config` that numba-cuda adds: folders with files that CUDA C++ includes."""

CUDA_HEADERS = "/usr/local/cuda/include"
"""Numba's default for the folder of CUDA's headers, which are none for our compilers."""


def _include_paths() -> tuple[Path, ...]:
    """The folders that the program gives for files that CUDA C++ includes."""
    given = [numba_config.CUDA_INCLUDE_PATH, *getattr(numba_config, SEARCH_PATHS).split(os.pathsep)]
    return tuple(Path(path) for path in given if path and path != CUDA_HEADERS)


def _cache_dir() -> Path:
    """A folder of ours in Numba's cache directory, where one is given: others may have theirs in it, too."""
    given = numba_config.CACHE_DIR
    return Path(given) / f"numba-hip-{os.getuid()}" if given else config.user_cache()


FOLLOWERS: tuple[tuple[Setting[Any], Callable[[], Any]], ...] = (
    (runtime_config.cpu_wave_size, lambda: 32),  # the size of a warp on every NVIDIA GPU
    (runtime_config.pending_releases, lambda: numba_config.CUDA_DEALLOCS_COUNT),
    (runtime_config.pending_release_ratio, lambda: numba_config.CUDA_DEALLOCS_RATIO),
    (config.simulator, lambda: bool(numba_config.ENABLE_CUDASIM)),
    (config.low_occupancy_warnings, lambda: bool(numba_config.CUDA_LOW_OCCUPANCY_WARNINGS)),
    (config.early_warnings, lambda: True),
    (config.implicit_copy_warnings, lambda: bool(numba_config.CUDA_WARN_ON_IMPLICIT_COPY)),
    (config.option_warnings, lambda: True),
    (config.truncate_arguments, lambda: True),  # as C converts numbers, and so does Numba CUDA
    (config.print_six_digits, lambda: True),
    (config.inspect_launched, lambda: False),  # code of Numba CUDA does not depend on launches
    (config.include_paths, _include_paths),
    (config.cache_dir, _cache_dir),
    (config.debug, lambda: bool(numba_config.CUDA_DEBUGINFO_DEFAULT)),
    (config.opt, lambda: bool(numba_config.OPT)),
    (runtime_config.transpose_copies, lambda: True),
    (runtime_config.cpu_array_interface, lambda: True),  # every array of Numba CUDA has one
    (runtime_config.array_interface_sync, lambda: bool(numba_config.CUDA_ARRAY_INTERFACE_SYNC)),
)
"""Our settings, and their defaults while posing."""

VARIABLES = {
    config.low_occupancy_warnings.variable: "NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS",
    config.implicit_copy_warnings.variable: "NUMBA_CUDA_WARN_ON_IMPLICIT_COPY",
}
"""Variables of Numba CUDA's that messages name for ours."""


def _uuid(device: Device) -> str:
    from numba_hip_cuda.devices import cuda_uuid  # which most programs never ask for

    return cuda_uuid(device)


def _has(name: str) -> bool:
    """Whether `numba.cuda` has *name*."""
    try:
        look_up(CUDA, name)
    except AttributeError:
        return False
    return True


WORDING = Wording("CUDA", "cuda", _has, VARIABLES)
"""What a program for `numba.cuda` says."""

DISABLED = (
    "CUDA is disabled due to setting NUMBA_DISABLE_CUDA=1 in the environment, which holds for the devices that "
    "numba_hip_cuda poses with, too: unset it"
)


def begin() -> None:
    """Make our settings follow Numba CUDA's, and devices say of themselves what CUDA's do."""
    speak(WORDING)
    vars(numba_config).setdefault(SEARCH_PATHS, os.environ.get(f"NUMBA_{SEARCH_PATHS}", ""))
    for setting, source in FOLLOWERS:
        setting.follow(source)
    ADDED["uuid"] = _uuid
    if numba_config.DISABLE_CUDA and not numba_config.ENABLE_CUDASIM:
        withhold_devices(DISABLED)


def end() -> None:
    """Undo `begin`."""
    speak(OWN)
    vars(numba_config).pop(SEARCH_PATHS, None)
    for setting, _ in FOLLOWERS:
        setting.follow(None)
    ADDED.pop("uuid", None)
    withhold_devices(None)
