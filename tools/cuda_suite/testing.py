"""Stands for ``numba.cuda.testing``: the posed module's names, and helpers that only numba-cuda's own tests use."""

from __future__ import annotations

import unittest
from pathlib import Path

from numba import cuda
from numba.cuda.tests.support import TestCase

from numba_hip_cuda import testing
from numba_hip_cuda.testing import *  # noqa: F403 - whatever is there

test_data_dir = Path(str(cuda.tests.__file__)).parent / "data"


class CUDATestCase(TestCase, testing.CUDATestCase):  # type: ignore[misc]
    """A test that uses the device, with the helpers of numba-cuda's own tests."""

    setUp = testing.CUDATestCase.setUp


__all__ = [*testing.__all__, "test_data_dir", "unittest"]


def _get_device_compute_capability() -> tuple[int, int]:
    """The compute capability of the device."""
    major, minor = cuda.get_current_device().compute_capability
    return major, minor
