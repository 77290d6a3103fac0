"""Stands for ``cuda.core``: names of NVIDIA's bindings that modules import even if their tests do not apply."""

from typing import NoReturn

from hip_runtime.errors import HipRuntimeError as CUDAError

CUDA_CORE_GE_1_0 = False
"""Which release of ``cuda.core`` is installed, as `numba.cuda._compat` says."""


class Device:
    """Raises an error when created, as there is no CUDA device."""

    def __init__(self, number: int = 0) -> None:
        _refuse(number)


class LaunchConfig:
    """How kernels of ``cuda.core`` are launched; there are none."""


class Stream:
    """A stream of ``cuda.core``; there are none."""


def launch(*args: object) -> NoReturn:
    """Raises an error, as there are no kernels of ``cuda.core``."""
    raise CUDAError(f"cuda.core launches nothing here: {args}")


def _refuse(number: int) -> NoReturn:
    raise CUDAError(f"cuda.core has no device {number} here")


__all__ = ["CUDA_CORE_GE_1_0", "CUDAError", "Device", "LaunchConfig", "Stream", "launch"]
