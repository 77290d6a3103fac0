"""Stands for modules of cuda-cccl's own that tests import, or set values in, though they test something else."""

from __future__ import annotations

from typing import Any

import numpy as np

import numba_hip as hip

_check_sass = False
"""Set by tests that look at NVIDIA's assembly language."""


def TempStorageBuffer(size: int, stream: Any = None) -> Any:  # the name that it has there
    """Memory of *size* bytes."""
    return hip.device_array(size, np.uint8)


def compute_c_contiguous_strides_in_bytes(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The steps of an array in C's order."""
    return np.empty(shape, f"V{itemsize}").strides
