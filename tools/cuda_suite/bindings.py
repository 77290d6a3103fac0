"""Stands for ``cuda.core``: the one class of NVIDIA's bindings that tests name in ``assertRaises``."""

from hip_runtime.errors import HipRuntimeError as CUDAError

__all__ = ["CUDAError"]
