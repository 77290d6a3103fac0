"""The fixtures of numba-cuda-mlir's ``conftest.py``, without its search for NVIDIA's tools."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from gpu_utils import check_cc_exact, check_cc_min
from numba.core import config as numba_config

MARKERS = (
    "numba_cuda_test_binaries(*artifacts): needs files that nvcc has compiled",
    "requires_cc_min(cc, feature): needs a compute capability, or a higher one",
    "requires_cc_exact(cc, feature): needs that very compute capability",
    "libdevice: tests of libdevice",
)


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests that need a higher compute capability, or nvcc."""
    for name, check in (("requires_cc_min", check_cc_min), ("requires_cc_exact", check_cc_exact)):
        for marker in item.iter_markers(name):
            skipped, why = check(*marker.args)
            if skipped:
                pytest.skip(why)
    if item.get_closest_marker("numba_cuda_test_binaries"):
        pytest.skip("nvcc is required to build Numba-CUDA test binaries")


@pytest.fixture(scope="session", autouse=True)
def disable_low_occupancy_warnings() -> Iterator[None]:
    """Turn off advice on small grids."""
    before = numba_config.CUDA_LOW_OCCUPANCY_WARNINGS
    numba_config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
    yield
    numba_config.CUDA_LOW_OCCUPANCY_WARNINGS = before
