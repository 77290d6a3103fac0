"""Stands for ``cuda.core``: names of NVIDIA's bindings that modules import whether their tests apply or not."""

from typing import NoReturn

from hip_runtime.errors import HipRuntimeError as CUDAError


class Device:
    """Refuses to be made: there is no device of CUDA's."""

    def __init__(self, number: int = 0) -> None:
        _refuse(number)


def _refuse(number: int) -> NoReturn:
    raise CUDAError(f"cuda.core has no device {number} here")


__all__ = ["CUDAError", "Device"]
