"""Numba for AMD GPUs: write GPU kernels in Python.

``from numba import hip`` and ``import numba_hip as hip`` are the same module. Names follow Numba CUDA's.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

from hip_runtime import (
    DeviceArray,
    Event,
    Stream,
    as_device_array,
    device_array,
    device_array_like,
    is_device_array,
    managed_array,
    mapped_array,
    pinned_array,
    to_device,
)
from numba_hip import _alias
from numba_hip.api import (
    compile,
    detect,
    event,
    event_elapsed_time,
    get_current_device,
    is_available,
    list_devices,
    select_device,
    stream,
    synchronize,
)
from numba_hip.decorators import jit
from numba_hip.language.index import blockDim, blockIdx, grid, gridDim, gridsize, threadIdx

__version__ = "0.1.0"

EXTENSIONS = "numba_hip.extensions"
"""Group of entry points with which packages above this one add names to it."""


def __getattr__(name: str) -> Any:
    for entry_point in entry_points(group=EXTENSIONS, name=name):
        value = globals()[name] = entry_point.load()
        return value
    if name == "pose_as_cuda":
        raise AttributeError("hip.pose_as_cuda comes with another package: pip install numba-hip-cuda-compat")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "DeviceArray", "Event", "Stream", "as_device_array", "blockDim", "blockIdx", "compile", "detect", "device_array",
    "device_array_like", "event", "event_elapsed_time", "get_current_device", "grid", "gridDim", "gridsize",
    "is_available", "is_device_array", "jit", "list_devices", "managed_array", "mapped_array", "pinned_array",
    "select_device", "stream", "synchronize", "threadIdx", "to_device",
]  # fmt: skip

_alias.install()  # the last thing: an import that fails leaves no second name behind
