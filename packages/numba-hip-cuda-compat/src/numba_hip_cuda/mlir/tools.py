"""``numba_cuda_mlir.tools``: information about the device. There is no CUDA toolkit to report on."""

from __future__ import annotations

import re

import numba_hip


def parse_compute_capability(compute_cap: str) -> tuple[int, int]:
    """``(9, 0)`` of ``"sm_90"``."""
    match = re.match(r"sm_([1-9]\d?)(\d)a?", compute_cap)
    if match is None:
        raise ValueError(f"Invalid compute capability: {compute_cap}")
    return int(match[1]), int(match[2])


def format_arch(cc: tuple[int, int]) -> str:
    """``"sm_90"`` of ``(9, 0)``."""
    return f"sm_{cc[0]}{cc[1]}"


def get_gpu_compute_capability(as_type: type = str) -> str | tuple[int, int]:
    """The compute capability that the current device reports, as a string or a tuple."""
    major, minor = numba_hip.get_current_device().compute_capability
    return (major, minor) if as_type is tuple else format_arch((major, minor))
