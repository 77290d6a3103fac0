"""Stands for ``numba.cuda.testing``: what the tests of numba-cuda are derived from and decorated with.

Conditions on NVIDIA's tools are answered as they are here: there are none.
"""

from __future__ import annotations

import os
import platform
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numba import cuda
from numba.core import config
from numba.cuda.tests.support import TestCase

Decorated = TypeVar("Decorated")
Decorator = Callable[[Decorated], Decorated]

test_data_dir = Path(str(cuda.tests.__file__)).parent / "data"
SIMULATED = bool(getattr(config, "ENABLE_CUDASIM", 0))
WARNINGS = ("CUDA_LOW_OCCUPANCY_WARNINGS", "CUDA_WARN_ON_IMPLICIT_COPY")


class CUDATestCase(TestCase):  # type: ignore[misc]
    """A test that uses the device; without warnings on its performance."""

    FLOAT16_RTOL = np.finfo(np.float16).eps

    def setUp(self) -> None:
        """Called also for tests that are not derived from this class, so that there is nothing above it to call."""
        for name in WARNINGS:
            before = getattr(config, name)
            self.addCleanup(setattr, config, name, before)
            setattr(config, name, 0)

    def assertFileCheckAsm(self, *args: Any, **options: Any) -> None:
        """Patterns of NVIDIA's assembly are not compared with ours."""
        self.fail("the test compares assembly with patterns of PTX")

    def assertFileCheckLLVM(self, *args: Any, **options: Any) -> None:
        """Patterns of the LLVM IR that numba-cuda makes for NVVM are not compared with ours."""
        self.fail("the test compares LLVM IR with patterns of what is made for NVVM")

    assertFileCheckMatches = assertFileCheckLLVM


class ForeignArray:
    """An array of another library: nothing but the array interface of the one that it hides."""

    def __init__(self, array: Any) -> None:
        self._arr = array
        self.__cuda_array_interface__ = array.__cuda_array_interface__


def skip_on_cudasim(reason: str) -> Decorator[Any]:
    """Not under the simulator."""
    return unittest.skipIf(SIMULATED, reason)


def skip_unless_cudasim(reason: str) -> Decorator[Any]:
    """Under the simulator alone."""
    return unittest.skipUnless(SIMULATED, reason)


def xfail_unless_cudasim(test: Decorated) -> Decorated:
    """Expected to fail on a GPU."""
    return test if SIMULATED else unittest.expectedFailure(test)  # type: ignore[type-var]


def skip_on_standalone_numba_cuda(test: Decorated) -> Decorated:
    """Numba is always there."""
    return test


def skip_if_external_memmgr(reason: str) -> Decorator[Any]:
    """Not where a plugin manages memory."""
    return unittest.skipIf(os.environ.get("NUMBA_CUDA_MEMORY_MANAGER", "default") != "default", reason)


def skip_on_arm(reason: str) -> Decorator[Any]:
    """Not on ARM processors."""
    return unittest.skipIf(platform.machine().lower().startswith(("arm", "aarch")), reason)


def _always(reason: str) -> Decorator[Any]:
    return lambda test: test


def _never(reason: str) -> Decorator[Any]:
    return unittest.skip(reason)


skip_under_cuda_memcheck = skip_with_nvdisasm = skip_on_wsl2 = skip_on_nvjitlink_13_1_sm_120 = _always
skip_without_nvdisasm = skip_unless_conda_cudatoolkit = skip_if_nvjitlink_missing = _never


def skip_if_cuda_includes_missing(test: Any) -> Any:
    """There is no cuda.h."""
    return unittest.skip("CUDA include dir not available on this system")(test)


def skip_if_curand_kernel_missing(test: Any) -> Any:
    """There is no curand_kernel.h."""
    return unittest.skip("curand_kernel.h not available on this system")(test)


def skip_if_cudadevrt_missing(test: Decorated) -> Decorated:
    """Cooperative launches need no library here."""
    return test


def cc_X_or_above(major: int, minor: int) -> bool:
    """Whether the device answers with that compute capability or a higher one."""
    return SIMULATED or tuple(cuda.get_current_device().compute_capability) >= (major, minor)


def _unless(major: int, minor: int) -> Callable[[Any], Any]:
    return unittest.skipUnless(cc_X_or_above(major, minor), f"requires cc >= {major}.{minor}")


def skip_unless_cc_50(test: Any) -> Any:
    """Compute capability 5.0."""
    return _unless(5, 0)(test)


def skip_unless_cc_53(test: Any) -> Any:
    """Compute capability 5.3."""
    return _unless(5, 3)(test)


def skip_unless_cc_60(test: Any) -> Any:
    """Compute capability 6.0."""
    return _unless(6, 0)(test)


def skip_unless_cc_75(test: Any) -> Any:
    """Compute capability 7.5."""
    return _unless(7, 5)(test)


def skip_unless_cc_90(test: Any) -> Any:
    """Compute capability 9.0."""
    return _unless(9, 0)(test)
