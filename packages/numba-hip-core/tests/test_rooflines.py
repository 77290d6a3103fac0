"""Operations of kernels, counted; and kernels against what their device reaches."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest

import numba_hip as hip
from hip_runtime import current_device
from hip_runtime.errors import ProfileError
from numba_hip import rooflines
from numba_hip.rooflines import Peaks, Roofline

PEAKS = Peaks(100e9, 800e9, 400e9)


@pytest.fixture(autouse=True)
def peaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooflines, "peaks", lambda device: PEAKS)


@hip.jit(device=True)
def square(value: Any) -> Any:
    return value * value


@hip.jit
def compute(x: Any, steps: Any, out: Any) -> None:
    part = hip.shared.array(32, np.float64)
    i = hip.grid(1)
    part[hip.threadIdx.x] = 1
    hip.syncthreads()
    if i < out.size:
        value = x[i]
        for _ in range(steps[i]):
            value = square(value) + np.float32(0.5)
        out[i] = math.sqrt(value) * part[31 - hip.threadIdx.x]


@pytest.mark.cpu_device("it counts operations")
def test_operations_are_counted_thread_by_thread() -> None:
    x, steps, out = np.ones(50, np.float32), np.arange(50), np.zeros(50, np.float32)
    found = hip.roofline(compute[2, 32], x, steps, out, seconds=0.01)
    single = 2 * steps.sum() + 50  # a product and a sum in each step, and a root
    assert found.operations == single + 50  # and one product of float64
    assert not found.is_double
    assert found.nbytes == x.nbytes + steps.nbytes + out.nbytes
    shared = 64 * 8 + 50 * 8
    assert found.accessed == x.nbytes + steps.nbytes + out.nbytes + shared
    assert found.name == "compute"


def test_a_kernel_below_the_roof() -> None:
    found = Roofline("k", 2.0, 400_000_000_000, 100_000_000_000, None, False, PEAKS)
    assert (found.intensity, found.limit, found.attainable) == (4.0, "memory", 400e9)
    assert str(found) == ("k: 200 Gflop/s (float32), 50 GB/s, 4 flop/byte; limited by memory: 50 of 100 GB/s (50 %)")
    found = Roofline("k", 2.0, 400_000_000_000, 50_000_000_000, None, True, PEAKS)
    assert (found.intensity, found.limit, found.attainable) == (8.0, "arithmetic", 400e9)
    assert "200 of 400 Gflop/s (50 %)" in str(found)
    found = Roofline("k", 0.5, 400_000_000_000, 100_000_000_000, None, False, PEAKS)
    assert str(found).endswith("limited by memory: 200 of 100 GB/s (200 %; the data are in a cache)")


class Axes:
    """Takes what is drawn, as matplotlib's do."""

    def __init__(self) -> None:
        self.drawn: dict[str, tuple[Any, Any]] = {}

    def loglog(self, x: Any, y: Any, style: str = "-", label: str = "") -> None:
        self.drawn[label] = x, y

    def set_xlabel(self, label: str) -> None:
        assert label == "flop per byte of memory (100 GB/s)"

    def set_ylabel(self, label: str) -> None:
        assert label == "Gflop/s"

    def legend(self, **how: object) -> None:
        pass


def test_the_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Roofline("k", 1.0, 200_000_000_000, 100_000_000_000, None, False, PEAKS)
    axes = found.plot(Axes())
    assert axes.drawn["k"] == ([2.0], [200.0])
    intensities, roof = axes.drawn["float32: 800 Gflop/s"]
    assert roof.max() == 800
    assert np.allclose(roof[intensities < 8], 100 * intensities[intensities < 8])
    assert axes.drawn["float64: 400 Gflop/s"][1].max() == 400
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ProfileError, match="rooflines need matplotlib, which cannot be imported"):
        found.plot()


def test_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProfileError, match=r"takes a configured kernel, kernel\[grid, block\], got <hip kernel"):
        hip.roofline(compute)
    configured = compute[1, 32]
    monkeypatch.setattr(type(current_device()), "is_cpu", False)
    with pytest.raises(ProfileError, match="on this GPU, pass operations=, the number in one launch"):
        hip.roofline(configured)
