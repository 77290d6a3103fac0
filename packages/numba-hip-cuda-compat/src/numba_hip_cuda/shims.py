"""What `numba.cuda` offers and `numba_hip` does not, because it is only of use to programs written for CUDA."""

from __future__ import annotations

import numba_hip
from hip_runtime.errors import DeviceUnavailableError

implementation = "HIP"
"""Which `numba.cuda` this is; NVIDIA's say ``"Built-in"`` or ``"NVIDIA"``."""


def is_supported_version() -> bool:
    """Whether the version of the CUDA toolkit is one that works: none is needed here, so any is."""
    return True


def cuda_error() -> DeviceUnavailableError | None:
    """Why there is no device to use, or None if there is one."""
    try:
        numba_hip.get_current_device()
    except DeviceUnavailableError as error:
        return error
    return None
