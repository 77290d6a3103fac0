"""Other processes find the module with what they are to do, keep kernels in one folder, and use the CPU device."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def environment(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
        patch.setenv("NUMBA_HIP_DEVICE", "cpu")
        patch.setenv("NUMBA_HIP_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield
