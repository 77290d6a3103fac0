"""Functions of `numba.cuda` that only make sense for CUDA, and have no counterpart in `numba_hip`."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from numba.core import config as numba_config

import numba_hip
from hip_runtime.errors import DeviceUnavailableError
from numba_hip import config

implementation = "HIP"
"""The implementation of `numba.cuda`; NVIDIA's are ``"Built-in"`` and ``"NVIDIA"``."""


def is_supported_version() -> bool:
    """Whether the CUDA toolkit's version is supported. No toolkit is needed here, so it always is."""
    return True


def is_float16_supported() -> bool:
    """Whether kernels can use float16: on every device."""
    return bool(numba_hip.get_current_device().supports_float16)


def is_bfloat16_supported() -> bool:
    """Whether kernels can use bfloat16: on every device, as it is computed in float32."""
    return bool(numba_hip.get_current_device().supports_bfloat16)


def is_fp8_supported() -> bool:
    """Whether kernels can use the 8-bit floats of NVIDIA's GPUs: on no device."""
    return bool(numba_hip.get_current_device().supports_fp8)


config_default_cc = numba_config.CUDA_DEFAULT_PTX_CC
"""The compute capability that Numba compiles PTX for by default."""

numba_cuda_default_ptx_cc = (7, 5)
"""The default of numba-cuda 0.30."""


def cuda_error() -> str | None:
    """Why no device can be used, or None if one can."""
    try:
        numba_hip.get_current_device()
    except DeviceUnavailableError as error:
        return str(error)
    return None


HAS_NUMBA = True
"""Whether Numba is installed. numba-cuda works without it; numba-hip-core is built on it."""


def simulated_jit(function_or_signature: Any = None, **options: Any) -> Any:
    """``numba.cuda.simulator.jit``: `numba_hip.jit` that runs kernels in plain Python, whatever the settings are."""
    if isinstance(function_or_signature, FunctionType):
        with config.simulator.scope(True):
            return numba_hip.jit(function_or_signature, **options)
    return lambda function: simulated_jit(function, **options)


def detect() -> bool:
    """Print the devices in the format of `numba.cuda`; returns whether there is one."""
    try:
        found = numba_hip.list_devices()
    except DeviceUnavailableError as error:
        print(f"Error loading CUDA library: {error}")
        return False
    print(f"Found {len(found)} CUDA devices (numba_hip_cuda poses as numba.cuda)")
    for device in found:
        major, minor = device.compute_capability
        print(f"id {device.id}    {device.name:>30}    [SUPPORTED]")
        print(f"{'Compute Capability':>34}: {major}.{minor}")
        print(f"{'HIP target':>34}: {device.target}")
        print(f"{'Warp size':>34}: {device.WARP_SIZE}")
    return bool(found)
