"""What all threads of a block load from one place, as where the row of the block begins, and keep across barriers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import float64, hip, int64

from hip_runtime import config as runtime_config


@hip.jit
def row_sums(starts, factor, values, out):
    """Rows of a sparse matrix, a block for each."""
    row, t = hip.blockIdx.x, hip.threadIdx.x
    parts = hip.shared.array(32, float64)
    first, last, by = starts[row], starts[row + 1], factor[row]
    hip.syncthreads()
    total = 0.0
    for k in range(first + t, last, 32):
        total += values[k] * by
    parts[t] = total
    hip.syncthreads()
    step = 16
    while step > 0:
        if t < step:
            parts[t] += parts[t + step]
        hip.syncthreads()
        step //= 2
    if t == 0:
        out[row] = parts[0]


@hip.jit
def count_down(counters, out):
    """The number that decides about the loop is written between two barriers."""
    t, b = hip.threadIdx.x, hip.blockIdx.x
    steps = 0
    left = counters[b]
    while left > 0:
        hip.syncthreads()
        if t == left % 32:
            counters[b] = left - 2
        hip.syncthreads()
        left = counters[b]
        steps += 1
    out[b, t] = steps * 100 + left


@hip.jit
def pass_on(values, out):
    """Each step, all read what one of them has stored in shared memory before the barrier."""
    cell = hip.shared.array(1, int64)
    t, b = hip.threadIdx.x, hip.blockIdx.x
    if t == 0:
        cell[0] = values[b]
    hip.syncthreads()
    total = 0
    for k in range(5):
        now = cell[0]
        total += now * (k + 1)
        hip.syncthreads()
        if t == k:
            cell[0] = now * 3 + t
        hip.syncthreads()
    out[b, t] = total + cell[0]


FORMS = ["auto", "regions", "vectors"]


@pytest.mark.parametrize("form", FORMS)
def test_rows(form: str) -> None:
    generator = np.random.default_rng(11)
    lengths = generator.integers(0, 200, 40)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    values, factor, out = generator.random(starts[-1] + 1), generator.random(40), np.zeros(40)
    with runtime_config.cpu_form.scope(form):
        row_sums[40, 32](starts, factor, values, out)
    expected = [values[a:b].sum() * f for a, b, f in zip(starts, starts[1:], factor, strict=False)]
    np.testing.assert_allclose(out, expected, rtol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_a_counter_of_the_block(form: str) -> None:
    counters = np.array([0, 1, 2, 7, 40, 41])
    out = np.zeros((6, 32), np.int64)
    with runtime_config.cpu_form.scope(form):
        count_down[6, 32](counters.copy(), out)
    steps = -(-counters // 2)
    expected = steps * 100 + counters - 2 * steps
    np.testing.assert_array_equal(out, np.broadcast_to(expected[:, None], out.shape))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("threads", [5, 32, 64])
def test_a_cell_of_the_block(form: str, threads: int) -> None:
    values = np.array([3, -1, 10])
    out = np.zeros((3, threads), np.int64)
    with runtime_config.cpu_form.scope(form):
        pass_on[3, threads](values, out)
    for value, found in zip(values, out, strict=True):
        total = 0
        for k in range(5):
            total += value * (k + 1)
            value = value * 3 + k
        assert set(found) == {total + value}


@hip.jit
def product_by_waves(starts, counts, matrix, vector, out):
    """A wave for each row of a block's part of a matrix; its first lane stores the sum."""
    b = hip.blockIdx.x
    wave, lane = hip.threadIdx.x // 32, hip.threadIdx.x % 32
    first, rows, length = starts[b], counts[b], vector.size
    hip.syncthreads()
    for r in range(wave, rows, 2):
        total = 0.0
        for k in range(lane, length, 32):
            total += matrix[first + r, k] * vector[k]
        for step in (16, 8, 4, 2, 1):
            total += hip.shfl_down_sync(0xFFFFFFFF, total, step)
        if lane == 0:
            out[first + r] = total


def parts() -> list[Any]:
    generator = np.random.default_rng(12)
    counts = generator.integers(0, 9, 20)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    return [starts, counts, generator.random((counts.sum(), 70)), generator.random(70), np.zeros(counts.sum())]


@pytest.mark.parametrize("form", FORMS)
def test_a_product_by_waves(form: str) -> None:
    starts, counts, matrix, vector, out = parts()
    with runtime_config.cpu_form.scope(form):
        product_by_waves[20, 64](starts, counts, matrix, vector, out)
    np.testing.assert_allclose(out, matrix @ vector, rtol=1e-12)


@pytest.mark.cpu_device("it explains how waves become gangs")
def test_waves_are_gangs_though_one_lane_stores_the_sum() -> None:
    assert "waves are not gangs" not in product_by_waves.explain(*parts(), block=64).reason
