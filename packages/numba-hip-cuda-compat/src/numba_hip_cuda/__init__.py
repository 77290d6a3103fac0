"""numba-hip-cuda-compat."""

__version__ = "0.1.0"
