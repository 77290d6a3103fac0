"""Grids with a block for each column, ``j = hip.blockIdx.y``, whose elements are neighbours in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import hip, int32

from hip_runtime import config as runtime_config
from hip_runtime import current_device


@hip.jit
def columns(x, out):
    i, j = hip.grid(1), hip.blockIdx.y
    if i < x.shape[0]:
        out[i, j] = 2 * x[i, j] + j


@hip.jit
def columns_counted(x, out):
    """The index as a number of 32 bits, and in a loop."""
    i, j = hip.grid(1), int32(hip.blockIdx.y)
    if i < x.shape[0] and j < x.shape[1]:
        total = 0
        for k in range(j, j + 3):
            total += x[i, j] * (k - j)
        out[i, j] = total - x[i, j] + hip.blockIdx.y


@hip.jit
def own_threads(x, out):
    """The thread's index along y is that of a block with one thread there."""
    i, j = hip.grid(1), hip.blockIdx.y + hip.threadIdx.y
    if i < x.shape[0]:
        out[i, j] = 2 * x[i, j] + hip.blockIdx.y


@hip.jit
def neighbours(x, out):
    """Each column but the first one adds that before it, and the number of its blocks."""
    i, j = hip.grid(1), hip.blockIdx.y
    if i < x.shape[0]:
        before = x[i, j - 1] if j > 0 else 0
        out[i, j] = 2 * x[i, j] + j + 0 * before
        if before > 1 << 40:
            out[i, j] = hip.gridDim.y


X = np.random.default_rng(11).integers(0, 100, (70, 45))
KERNELS = [columns, columns_counted, own_threads, neighbours]
EXPECTED = 2 * X + np.arange(45)


@pytest.mark.parametrize("form", ["auto", "loop", "regions", "vectors"])
@pytest.mark.parametrize("block", [32, 64, (64, 1)])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.py_func.__name__)
def test_a_block_for_each_column(kernel: Any, block: Any, form: str) -> None:
    out = np.zeros_like(X)
    with runtime_config.cpu_form.scope(form):
        kernel[(3, 45), block](X, out)
    np.testing.assert_array_equal(out, EXPECTED)


@pytest.mark.cpu_device("the axis of the lanes is its choice")
@pytest.mark.parametrize("kernel", [columns, columns_counted, neighbours], ids=lambda kernel: kernel.py_func.__name__)
def test_their_lanes_are_columns(kernel: Any) -> None:
    assert "neighbours along y in up to" in kernel.explain(X, X, block=64).reason


@hip.jit
def boxes(x, out):
    i, j, k = hip.grid(1), hip.blockIdx.y, hip.blockIdx.z
    if i < x.shape[0]:
        out[i, j, k] = x[i, j, k] + 100 * j + k


@pytest.mark.parametrize("form", ["auto", "loop", "regions", "vectors"])
def test_a_block_for_each_row_of_a_box(form: str) -> None:
    x = np.random.default_rng(12).integers(0, 100, (9, 20, 45))
    out = np.zeros_like(x)
    with runtime_config.cpu_form.scope(form):
        boxes[(1, 20, 45), 32](x, out)
    np.testing.assert_array_equal(out, x + 100 * np.arange(20)[:, None] + np.arange(45))
    if current_device().is_cpu:
        assert "neighbours along z in up to" in boxes.explain(x, x, block=32).reason


@hip.jit
def rows(x, out):
    """Neighbours along x are so in memory, too: rows by blocks along y stay what they are."""
    i, j = hip.grid(1), hip.blockIdx.y
    if i < x.shape[1]:
        out[j, i] = 2 * x[j, i] + i


def test_a_block_for_each_row() -> None:
    out = np.zeros_like(X)
    rows[(1, 70), 64](X, out)
    np.testing.assert_array_equal(out, EXPECTED)
    if current_device().is_cpu:
        assert "along y" not in rows.explain(X, X, block=64).reason


def test_exceptions_name_the_block() -> None:
    @hip.jit(debug=True, opt=True)
    def kernel(x, out):
        i, j = hip.grid(1), hip.blockIdx.y
        if i == 5 and j == 17:
            raise ValueError("here")
        if i < x.shape[0]:
            out[i, j] = x[i, j]

    with pytest.raises(ValueError, match=r"tid=\[5, 0, 0\] ctaid=\[0, 17, 0\]: here"):
        kernel[(3, 45), 32](X, np.zeros_like(X))
