"""``numba.cuda.testing``: base classes and decorators for tests of programs for `numba.cuda`.

Conditions that ask for NVIDIA's tools are false, as there are none.
"""

from __future__ import annotations

import platform
import unittest
from typing import Any, TypeVar

import numpy as np

import numba_hip
from numba_hip import config
from numba_hip_cuda.amd.testing import (
    Decorator,
    ForeignArray,
    HIPTestCase,
    silence_numba,
    skip_if_external_memmgr,
    skip_on_arm,
    skip_on_cudasim,
    skip_unless_hipsim,
)

Decorated = TypeVar("Decorated")

skip_unless_cudasim = skip_unless_hipsim


class CUDATestCase(HIPTestCase):
    """A test that uses the device, without performance advice."""

    FLOAT16_RTOL = np.finfo(np.float16).eps

    def setUp(self) -> None:
        """Turn the advice off with Numba CUDA's settings, which a test may change back."""
        silence_numba(self)

    def assertFileCheckAsm(self, *args: Any, **options: Any) -> None:
        """Does nothing: patterns of NVIDIA's assembly do not apply to ours."""
        self.fail("the test compares assembly with patterns of PTX")

    def assertFileCheckLLVM(self, *args: Any, **options: Any) -> None:
        """Does nothing: patterns of numba-cuda's LLVM IR for NVVM do not apply to ours."""
        self.fail("the test compares LLVM IR with patterns of what is made for NVVM")

    assertFileCheckMatches = assertFileCheckLLVM


def xfail_unless_cudasim(test: Any) -> Any:
    """Expected to fail if kernels are compiled."""
    return test if config.simulator() else unittest.expectedFailure(test)


def skip_on_standalone_numba_cuda(test: Decorated) -> Decorated:
    """Never skips: Numba is always installed."""
    return test


def skip_on_wsl2(reason: str) -> Decorator:
    """Skip on Windows Subsystem for Linux."""
    return unittest.skipIf("wsl2" in platform.release().lower(), reason)


def skip_under_cuda_memcheck(reason: str) -> Decorator:
    """There is no ``cuda-memcheck``."""
    return lambda test: test


def skip_without_nvdisasm(reason: str) -> Decorator:
    """There is no ``nvdisasm``."""
    return unittest.skip(reason)


skip_with_nvdisasm = skip_on_nvjitlink_13_1_sm_120 = skip_under_cuda_memcheck
skip_unless_conda_cudatoolkit = skip_if_nvjitlink_missing = skip_without_nvdisasm


def skip_if_cuda_includes_missing(test: Any) -> Any:
    """There is no cuda.h."""
    return unittest.skip("there are no headers of CUDA")(test)


def skip_if_curand_kernel_missing(test: Any) -> Any:
    """There is no curand_kernel.h."""
    return unittest.skip("there are no headers of cuRAND")(test)


def cudadevrt_missing() -> bool:
    """Whether CUDA's library for cooperative launches is missing. It is not, as none is needed."""
    return False


def skip_if_cudadevrt_missing(test: Decorated) -> Decorated:
    """Never skips: cooperative launches need no library here."""
    return test


def cc_X_or_above(major: int, minor: int) -> bool:
    """Whether the device reports at least that compute capability. The simulator has all of them."""
    return config.simulator() or tuple(numba_hip.get_current_device().compute_capability) >= (major, minor)


def _unless(major: int, minor: int) -> Decorator:
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


__all__ = [
    "CUDATestCase", "ForeignArray", "cc_X_or_above", "cudadevrt_missing", "skip_if_cuda_includes_missing",
    "skip_if_cudadevrt_missing", "skip_if_curand_kernel_missing", "skip_if_external_memmgr",
    "skip_if_nvjitlink_missing", "skip_on_arm", "skip_on_cudasim", "skip_on_nvjitlink_13_1_sm_120",
    "skip_on_standalone_numba_cuda", "skip_on_wsl2", "skip_under_cuda_memcheck", "skip_unless_cc_50",
    "skip_unless_cc_53", "skip_unless_cc_60", "skip_unless_cc_75", "skip_unless_cc_90", "skip_unless_conda_cudatoolkit",
    "skip_unless_cudasim", "skip_with_nvdisasm", "skip_without_nvdisasm", "xfail_unless_cudasim",
]  # fmt: skip
