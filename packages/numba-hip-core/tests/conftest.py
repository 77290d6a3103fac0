"""Tests of kernels run on the device that NUMBA_HIP_DEVICE names, the CPU device where it names none."""

import os
import time
from collections.abc import Callable

import pytest

from hip_runtime import config

os.environ.setdefault("NUMBA_HIP_DEVICE", "cpu")
config.verify_passes.preset(True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what is marked ``cpu_device`` where tests run on a GPU."""
    if os.environ["NUMBA_HIP_DEVICE"] == "cpu":
        return
    for item in items:
        marker = item.get_closest_marker("cpu_device")
        if marker is not None:
            item.add_marker(pytest.mark.skip(reason=f"needs the CPU device: {marker.args[0]}"))


ELEMENTS_OF_A_GPU = 1e8
"""Elements of a simple kernel that any GPU computes in a second; emulators compute a thousandth of that."""

LAUNCH_SECONDS = 100e-6
"""What a launch that is waited for takes at most on a GPU: however few its elements, that does not make it slow."""

TRIAL = 1 << 13
FEWEST = 300


@pytest.fixture(scope="session")
def scaled() -> Callable[[int], int]:
    """Tells how many elements to take where a test wants that many: all of them, but on an emulator as much fewer as it
    is slower than a GPU, for which a kernel is timed once."""
    if os.environ["NUMBA_HIP_DEVICE"] == "cpu":
        return lambda count: count
    share = min(1.0, _elements_in_a_second() / ELEMENTS_OF_A_GPU)
    return lambda count: max(min(count, FEWEST), int(count * share))


def _elements_in_a_second() -> float:
    import numpy as np
    from numba import hip

    @hip.jit
    def add(x):
        x[hip.grid(1)] += 1

    x = hip.to_device(np.zeros(TRIAL))
    for _ in range(2):  # the first launch compiles
        start = time.perf_counter()
        add[TRIAL // 256, 256](x)
        hip.synchronize()
        seconds = time.perf_counter() - start
    return TRIAL / max(seconds - LAUNCH_SECONDS, 1e-9)
