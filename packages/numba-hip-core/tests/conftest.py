"""Tests of kernels run on the device that NUMBA_HIP_DEVICE names, the CPU device where it names none."""

import os

import pytest

os.environ.setdefault("NUMBA_HIP_DEVICE", "cpu")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what is marked ``cpu_device`` where tests run on a GPU."""
    if os.environ["NUMBA_HIP_DEVICE"] == "cpu":
        return
    for item in items:
        marker = item.get_closest_marker("cpu_device")
        if marker is not None:
            item.add_marker(pytest.mark.skip(reason=f"needs the CPU device: {marker.args[0]}"))
