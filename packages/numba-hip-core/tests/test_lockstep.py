"""Kernels that race within a wave, whose lanes are in lock step."""

import numpy as np
import pytest

import numba_hip as hip
from hip_runtime import config

LANES = hip.get_current_device().WARP_SIZE
"""Each block is one wave: waves are not in step with one another."""


@pytest.fixture(autouse=True)
def step():
    with config.cpu_lockstep.scope(True):
        yield


def test_one_thread_clears_what_the_others_read():
    @hip.jit
    def kernel(out):
        shared = hip.shared.array(1, np.int32)
        i = hip.threadIdx.x
        if i == 0:
            shared[0] = 7
        hip.syncthreads()
        found = shared[0]
        if i == 0:
            shared[0] = 0
        hip.syncthreads()
        out[i] = found + shared[0]

    out = np.zeros(LANES, np.int32)
    kernel[1, LANES](out)
    np.testing.assert_array_equal(out, np.full(LANES, 7))


def test_all_read_what_all_overwrite():
    @hip.jit
    def kernel(values, out):
        i = hip.threadIdx.x
        found = values[0]
        values[0] = found + i
        out[i] = found

    threads = LANES - 14
    out = np.zeros(threads, np.int64)
    kernel[1, threads](np.array([9]), out)
    np.testing.assert_array_equal(out, np.full(threads, 9))


@pytest.mark.parametrize("unrolled", [False, True])
def test_a_sum_without_barriers(unrolled):
    """Written out it is of use without optimisation only: LLVM leaves out all stores but the last, on GPUs, too."""

    @hip.jit
    def loop(values, out):
        shared = hip.shared.array(LANES, np.float64)
        i = hip.threadIdx.x
        shared[i] = values[i]
        step = LANES // 2
        while step > 0:
            if i < step:
                shared[i] += shared[i + step]
            step //= 2
        out[i] = shared[0]

    @hip.jit(opt=False)
    def written_out(values, out):
        shared = hip.shared.array(LANES, np.float64)
        i = hip.threadIdx.x
        shared[i] = values[i]
        if i < LANES // 2:
            if LANES == 64:
                shared[i] += shared[i + 32]
            shared[i] += shared[i + 16]
            shared[i] += shared[i + 8]
            shared[i] += shared[i + 4]
            shared[i] += shared[i + 2]
            shared[i] += shared[i + 1]
        out[i] = shared[0]

    values, out = np.arange(float(LANES)), np.zeros(LANES)
    (written_out if unrolled else loop)[1, LANES](values, out)
    np.testing.assert_array_equal(out, np.full(LANES, values.sum()))


def test_rows_of_a_block_rotate():
    @hip.jit
    def kernel(values):
        i, j = hip.threadIdx.x, hip.threadIdx.y
        values[j, i] = values[(j + 1) % rows, i]

    rows = LANES // 8
    values = np.arange(LANES).reshape(rows, 8)
    expected = np.roll(values, -1, axis=0)
    kernel[1, (8, rows)](values)
    np.testing.assert_array_equal(values, expected)
