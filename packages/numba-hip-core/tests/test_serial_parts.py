"""Kernels of which one thread of a block does most of the work, one step after another, and the others wait."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import hip, int64

from hip_runtime import config as runtime_config


@hip.jit
def distinct(numbers, found, count):
    """The different ones of *numbers*, in order, found by the first thread of each block for a part of its own."""
    block, thread = hip.blockIdx.x, hip.threadIdx.x
    seen = hip.shared.array(256, int64)
    n = 0
    if thread == 0:
        for j in range(numbers.shape[1]):
            is_new = True
            i = 0
            for i in range(n):
                if seen[i] == numbers[block, j]:
                    is_new = False
                    break
            if is_new:
                if n > 0:
                    i += 1
                seen[i] = numbers[block, j]
                n += 1
    hip.syncthreads()
    for i in range(thread, n, hip.blockDim.x):
        found[block, i] = -1
    hip.syncthreads()
    if thread == 0:
        count[block] = n
        for i in range(n):
            found[block, i] = seen[i]


@hip.jit
def longest_run(numbers, out):
    """No thread waits; thread 3 of each block goes through a row."""
    block, thread = hip.blockIdx.x, hip.threadIdx.x
    if thread == 3:
        best = run = 0
        for j in range(numbers.shape[1]):
            if j and numbers[block, j] == numbers[block, j - 1]:
                run += 1
            else:
                run = 1
            best = max(best, run)
        out[block] = best


def rows() -> Any:
    return np.random.default_rng(4).integers(0, 40, (5, 300)) // 2


@pytest.mark.parametrize("form", ["auto", "regions", "vectors"])
@pytest.mark.parametrize("threads", [1, 8, 64, 100])
def test_the_first_thread_collects(form: str, threads: int) -> None:
    numbers = rows()
    found, count = np.zeros((5, 256), np.int64), np.zeros(5, np.int64)
    with runtime_config.cpu_form.scope(form):
        distinct[5, threads](numbers, found, count)
    for row, part, n in zip(numbers, found, count, strict=True):
        expected = list(dict.fromkeys(row.tolist()))
        assert n == len(expected)
        assert part[:n].tolist() == expected
        assert not part[n:].any()


@pytest.mark.parametrize("form", ["auto", "loop", "vectors"])
@pytest.mark.parametrize("threads", [4, 64, 100])
def test_another_thread_searches(form: str, threads: int) -> None:
    numbers = np.random.default_rng(8).integers(0, 2, (6, 500))
    out = np.zeros(6, np.int64)
    with runtime_config.cpu_form.scope(form):
        longest_run[6, threads](numbers, out)
    for row, found in zip(numbers, out, strict=True):
        ends = np.flatnonzero(np.diff(row)) + 1
        assert found == np.diff(np.concatenate([[0], ends, [row.size]])).max()


@pytest.mark.cpu_device("the form is its choice")
@pytest.mark.parametrize(("kernel", "count"), [(distinct, 3), (longest_run, 2)])
def test_it_does_not_run_as_one_lane_of_many(kernel: Any, count: int) -> None:
    arrays = ["int64[:, ::1]", "int64[:, ::1]", "int64[::1]"] if count == 3 else ["int64[:, ::1]", "int64[::1]"]
    told = kernel.explain(f"({', '.join(arrays)})", block=64)
    assert "one lane does most of what there is to do" in told.reason
