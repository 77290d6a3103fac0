"""What all threads of a row compute alike, from a number that is loaded for each of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numba import float32, float64, hip

from hip_runtime import config as runtime_config


@hip.jit
def turn(x, angles, out):
    i, j = hip.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        out[i, j] = x[i, j] * math.sin(angles[i]) + math.cos(angles[i])


@hip.jit
def root(x, angles, out):
    i, j = hip.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        scale = abs(angles[i]) ** 0.3
        if x[i, j] > 0.5:
            out[i, j] = x[i, j] + scale
        else:
            out[i, j] = math.exp(-scale)


@hip.jit
def from_two(x, angles, out):
    """From the number of the row and that of the plane, in both of two branches."""
    i, j = hip.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        angle = angles[i]
        if i % 2:
            angle = math.atan2(angle, angles[0]) + math.log1p(abs(angle))
        out[i, j] = x[i, j] * math.tanh(angle + i)


@hip.jit
def steps(x, angles, out):
    """Threads of all columns go through rows, so the numbers are others in each iteration."""
    j = hip.grid(1)
    if j < x.shape[1]:
        for i in range(x.shape[0]):
            out[i, j] = x[i, j] * math.sin(angles[i])


KERNELS = [turn, root, from_two]
ANGLES = np.concatenate([np.linspace(-9, 9, 31), [0.0, -0.0, np.nan, np.nan, np.inf, -np.inf, 1e30, 1e30, 5e-324]])


def run(kernel: Any, x: Any, angles: Any, form: str) -> Any:
    out = np.zeros_like(x)
    with runtime_config.cpu_form.scope(form):
        if kernel is steps:
            kernel[4, 64](x, angles, out)
        else:
            kernel[(-(-x.shape[0] // 8), -(-x.shape[1] // 8)), (8, 8)](x, angles, out)
    return out


@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [*KERNELS, steps], ids=lambda kernel: kernel.py_func.__name__)
def test_rows_have_their_own_numbers(kernel: Any, dtype: type) -> None:
    x = np.random.default_rng(5).random((len(ANGLES), 150)).astype(dtype)
    angles = ANGLES.astype(dtype)
    found = run(kernel, x, angles, "auto")
    looped = run(kernel, x, angles, "loop")
    np.testing.assert_array_equal(found, looped)
    missing = np.isnan(found)  # whose sign means nothing
    np.testing.assert_array_equal(np.signbit(found) | missing, np.signbit(looped) | missing)
    if kernel is turn:
        wide = angles.astype(float)[:, None]
        expected = x * np.sin(wide) + np.cos(wide)
        accuracy = 1e-6 if dtype is np.float32 else 1e-14
        np.testing.assert_allclose(found, expected, rtol=accuracy, atol=accuracy)


@hip.jit
def scale_by_first(x):
    """The thread of the first column changes what the others of its row compute with, or does not, yet."""
    i, j = hip.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        factor = math.exp(math.sin(x[i, 0]))
        x[i, j] = factor if j == 0 else x[i, j] * 0 + 1


def test_a_number_that_changes_is_not_kept() -> None:
    """The next launch computes with what this one has stored."""
    x = np.full((5, 200), 0.5)
    expected = 0.5
    for _ in range(3):
        scale_by_first[(1, 25), (8, 8)](x)
        expected = math.exp(math.sin(expected))
        np.testing.assert_allclose(x[:, 0], expected, rtol=1e-14)


@pytest.mark.cpu_device("it explains which values lanes have in common")
def test_the_report_says_that_lanes_have_it_in_common() -> None:
    told = str(turn.explain((float64[:, ::1], float64[::1], float64[:, ::1]), block=(8, 8)))
    (line,) = (line for line in told.splitlines() if "math.sin(angles[i])" in line)
    assert "loads of float64: uniform" in line
    assert "gathered" not in line


@pytest.mark.cpu_device("gangs keep numbers of rows")
def test_gangs_ask_for_the_numbers_of_the_last_one() -> None:
    types = (float32[:, ::1], float32[::1], float32[:, ::1])
    for kernel in (turn, steps):
        kernel.compile(types)
    assert "%kept" in turn.inspect_llvm(types, block=(8, 8))
    assert "%kept" not in steps.inspect_llvm(types, block=64)
