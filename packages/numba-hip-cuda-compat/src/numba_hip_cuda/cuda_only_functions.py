"""Names of `numba.cuda` without a counterpart in `numba_hip`, as they are of use only to programs written for CUDA."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from numba.core import config as numba_config

import numba_hip
from hip_runtime.errors import DeviceUnavailableError
from numba_hip import config

implementation = "HIP"
"""Which `numba.cuda` this is; NVIDIA's say ``"Built-in"`` or ``"NVIDIA"``."""


def is_supported_version() -> bool:
    """Whether the version of the CUDA toolkit is one that works: none is needed here, so any is."""
    return True


def is_float16_supported() -> bool:
    """Whether kernels can work with float16: every device can."""
    return bool(numba_hip.get_current_device().supports_float16)


def is_bfloat16_supported() -> bool:
    """Whether kernels can work with bfloat16: on every device, as its arithmetic is made of that of float32."""
    return bool(numba_hip.get_current_device().supports_bfloat16)


def is_fp8_supported() -> bool:
    """Whether kernels can work with the floats of eight bits of NVIDIA's GPUs: on no device."""
    return bool(numba_hip.get_current_device().supports_fp8)


config_default_cc = numba_config.CUDA_DEFAULT_PTX_CC
"""The compute capability that Numba compiles PTX for where nobody names one."""

numba_cuda_default_ptx_cc = (7, 5)
"""The one that numba-cuda 0.30 does it for."""


def cuda_error() -> str | None:
    """Why there is no device to use, or None if there is one."""
    try:
        numba_hip.get_current_device()
    except DeviceUnavailableError as error:
        return str(error)
    return None


HAS_NUMBA = True
"""Whether Numba is installed beside: numba-cuda can do without, numba-hip-core is built on it."""


def simulated_jit(function_or_signature: Any = None, **options: Any) -> Any:
    """`numba_hip.jit` that leaves kernels to Python whatever the settings say: ``numba.cuda.simulator.jit``."""
    if isinstance(function_or_signature, FunctionType):
        with config.simulator.scope(True):
            return numba_hip.jit(function_or_signature, **options)
    return lambda function: simulated_jit(function, **options)


def detect() -> bool:
    """Print which devices there are, with the words of `numba.cuda`; returns whether there is one."""
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
