"""``numba.hip.testing`` of AMD's numba-hip: base classes and decorators for tests."""

from __future__ import annotations

import os
import platform
import unittest
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from numba.core import config as numba_config
from numba.tests.support import SerialMixin, TestCase

import numba_hip
from hip_devicelib.errors import NotFoundError
from hip_devicelib.rocm import find_rocm
from hip_runtime.protocols import array_interface
from numba_hip import config
from numba_hip.host.memory_managers import DriverMemory

Decorator = Callable[[Any], Any]

ADVICE = ("CUDA_LOW_OCCUPANCY_WARNINGS", "CUDA_WARN_ON_IMPLICIT_COPY")
"""Numba's settings that control performance advice while posing."""


def silence_numba(test: TestCase) -> None:
    """Turn off the advice that Numba's settings ask for until *test* is over. The test may turn it on again."""
    for name in ADVICE:
        test.addCleanup(setattr, numba_config, name, getattr(numba_config, name))
        setattr(numba_config, name, 0)


class HIPTestCase(SerialMixin, TestCase):
    """A test that uses the device, without performance advice, as the grids of tests are small."""

    def setUp(self) -> None:
        """Turn the advice off until the test is over."""
        scopes = ExitStack()
        self.addCleanup(scopes.close)
        for setting in (config.low_occupancy_warnings, config.implicit_copy_warnings):
            scopes.enter_context(setting.scope(False))
        silence_numba(self)


CUDATestCase = HIPTestCase


class ContextResettingTestCase(HIPTestCase):
    """A test that resets the device afterwards."""

    def tearDown(self) -> None:
        """Close the device."""
        super().tearDown()
        numba_hip.close()


class ForeignArray:
    """Another library's array: it has only the array interface of the array that it wraps."""

    def __init__(self, arr: Any) -> None:
        self._arr = arr
        self.__cuda_array_interface__ = array_interface(numba_hip.as_device_array(arr))


def skip_on_hipsim(reason: str) -> Decorator:
    """Skip under the simulator."""
    return unittest.skipIf(config.simulator(), reason)


skip_on_cudasim = skip_on_hipsim


def skip_unless_hipsim(reason: str) -> Decorator:
    """Run under the simulator only."""
    return unittest.skipUnless(config.simulator(), reason)


def skip_if_external_memmgr(reason: str) -> Decorator:
    """Skip if a plugin manages memory."""
    return unittest.skipIf(not isinstance(numba_hip.current_context().memory_manager, DriverMemory), reason)


def skip_under_hip_memcheck(reason: str) -> Decorator:
    """Skip under a memory checker."""
    return unittest.skipIf("CUDA_MEMCHECK" in os.environ, reason)


def skip_on_arm(reason: str) -> Decorator:
    """Skip on ARM processors."""
    return unittest.skipIf(platform.machine().lower().startswith(("arm", "aarch")), reason)


def skip_with_cuda_python(reason: str) -> Decorator:
    """Skip if NVIDIA's bindings are used. AMD's numba-hip counts its own as those; here it never skips."""
    return unittest.skip(reason)


def skip_if_hip_includes_missing(test: Any) -> Any:
    """Skip unless ROCm has its headers."""
    try:
        found = (find_rocm().root / "include" / "hip" / "hip_runtime.h").exists()
    except NotFoundError:
        found = False
    return unittest.skipUnless(found, "HIP include dir not available on this system")(test)


skip_if_cuda_includes_missing = skip_if_hip_includes_missing
