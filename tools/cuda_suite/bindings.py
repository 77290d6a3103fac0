"""Stands for ``cuda.core``: names of NVIDIA's bindings that modules import even if their tests do not apply."""

from typing import NoReturn

from hip_runtime.errors import HipRuntimeError as CUDAError


class Device:
    """Raises an error when created, as there is no CUDA device."""

    def __init__(self, number: int = 0) -> None:
        _refuse(number)


def _refuse(number: int) -> NoReturn:
    raise CUDAError(f"cuda.core has no device {number} here")


__all__ = ["CUDAError", "Device"]
