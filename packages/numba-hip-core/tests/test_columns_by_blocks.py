"""A block for each column of a matrix, whose threads are the rows: on the CPU device these are turned."""

from __future__ import annotations

import numpy as np
import pytest
from numba import hip

from hip_runtime import config as runtime_config

on_the_cpu = pytest.mark.cpu_device("an AMD GPU has no forms")


def scaled(a, sums, out):
    i, j = hip.threadIdx.x, hip.blockIdx.x
    if i < a.shape[0] and j < a.shape[1]:
        out[i, j] = 2 * a[i, j] + j


def in_steps(a, sums, out):
    j = hip.blockIdx.x
    for i in range(hip.threadIdx.x, a.shape[0], hip.blockDim.x):
        out[i, j] = a[i, j] / 4 - i


def behind_returns(a, sums, out):
    j = hip.blockIdx.x
    i = hip.threadIdx.x
    if i >= a.shape[0]:
        return
    if a[i, j] < 20:
        out[i, j] = -1
        return
    total = 0
    for k in range(i + 1):
        total += a[k, j]
        if total > 300:
            break
    out[i, j] = total


def rows_in_parts(a, sums, out):
    j = hip.blockIdx.x
    i = hip.blockIdx.y * hip.blockDim.x + hip.threadIdx.x
    if i < a.shape[0]:
        out[i, j] = a[i, j] + a[a.shape[0] - 1 - i, j]


def added_up(a, sums, out):
    j = hip.blockIdx.x
    for i in range(hip.threadIdx.x, a.shape[0], hip.blockDim.x):
        hip.atomic.add(sums, j, a[i, j])
        hip.atomic.max(sums, a.shape[1] + i, a[i, j])


def in_two_steps(a, sums, out):
    j = hip.blockIdx.x
    for i in range(hip.threadIdx.x, a.shape[0], hip.blockDim.x):
        out[i, j] = 2 * a[i, j]
    hip.cg.this_grid().sync()
    if hip.threadIdx.x == 1:
        sums[j] = out[0, (j + 1) % a.shape[1]] + out[a.shape[0] - 1, j]


KERNELS = [scaled, in_steps, behind_returns, rows_in_parts, added_up, in_two_steps]


def run(function, order, dtype, columns, threads):
    a = np.random.default_rng(columns).integers(0, 100, (90, columns)).astype(dtype, order=order)
    sums, out = np.zeros(90 + columns, dtype), np.full_like(a, 7)
    grid = (columns, -(-90 // threads)) if function is rows_in_parts else columns
    kernel = hip.jit(function)
    kernel[grid, threads](a, sums, out)
    return sums, out


@on_the_cpu
@pytest.mark.sample(8)
@pytest.mark.parametrize("function", KERNELS)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int16])
@pytest.mark.parametrize(("columns", "threads"), [(2, 96), (50, 96), (65, 32)])
def test_values_are_those_of_one_thread_after_another(function, order, dtype, columns, threads):
    if dtype == np.int16 and function is added_up:
        dtype = np.uint32
    found = run(function, order, dtype, columns, threads)
    with runtime_config.cpu_form.scope("regions" if function is in_two_steps else "loop"):
        expected = run(function, order, dtype, columns, threads)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@on_the_cpu
def test_an_error_names_the_thread_that_made_it():
    @hip.jit(exceptions=True)
    def checked(a, out):
        i, j = hip.threadIdx.x, hip.blockIdx.x
        if i < a.shape[0]:
            if a[i, j] < 0:
                raise ValueError("negative")
            out[i, j] = a[i, j]

    a = np.ones((40, 70))
    a[33, 55] = -1
    with pytest.raises(ValueError, match=r"tid=\[33, 0, 0\] ctaid=\[55, 0, 0\]: negative"):
        checked[70, 64](a, np.zeros_like(a))
