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


@pytest.mark.parametrize("opt", [False, True])
def test_functions_that_return_tuples(opt):
    @hip.jit(device=True)
    def places(i):
        if i % 2:
            return (i, i + 1), 1.0
        return (i + 1, i), 2.0

    @hip.jit(opt=opt)
    def kernel(values, out):
        i = hip.threadIdx.x
        (one, other), factor = places(i)
        first = values[0]
        values[0] = i
        row, column = i // 8, i % 8
        out[row, column] = factor * (10 * one + other) + first + out.shape[row % 2]

    out = np.zeros((LANES // 8, 8))
    kernel[1, LANES](np.full(1, 7), out)
    lanes = np.arange(LANES)
    expected = np.where(lanes % 2, 11 * lanes + 1, 2 * (11 * lanes + 10)) + 7
    expected += np.array(out.shape)[lanes // 8 % 2]
    np.testing.assert_array_equal(out.ravel(), expected)


def test_a_sum_without_barriers_of_a_function_with_a_tuple():
    """The pattern of warp-synchronous programs for CUDA, for which lock step without optimisation is the diagnosis."""

    @hip.jit(device=True)
    def places(i):
        return i // LANES, i % LANES

    @hip.jit(opt=False)
    def kernel(values, out):
        shared = hip.shared.array(LANES, np.float64)
        row, i = places(hip.grid(1))
        shared[i] = values[row, i]
        if i < LANES // 2:
            if LANES == 64:
                shared[i] += shared[i + 32]
            shared[i] += shared[i + 16]
            shared[i] += shared[i + 8]
            shared[i] += shared[i + 4]
            shared[i] += shared[i + 2]
            shared[i] += shared[i + 1]
        out[row, i] = shared[0]

    values, out = np.arange(3.0 * LANES).reshape(3, LANES), np.zeros((3, LANES))
    kernel[3, LANES](values, out)
    np.testing.assert_array_equal(out, np.repeat(values.sum(axis=1), LANES).reshape(3, LANES))


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


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_greatest_and_the_least_of_floats(kind):
    """Lanes update one after another, as their old values tell; NaN replaces no number, and no number NaN."""

    @hip.jit
    def kernel(values, greatest, least, before):
        i = hip.threadIdx.x
        if i < values.size:
            hip.atomic.min(least, i % 3, values[i])
            before[i] = hip.atomic.max(greatest, 0, values[i])

    values = np.random.default_rng(5).permutation(LANES - 5).astype(kind)
    values[[0, 7, 20]] = np.nan
    greatest, least, before = np.full(1, -1, kind), np.array([1e9, 1e9, np.nan], kind), np.zeros_like(values)
    kernel[1, LANES](values, greatest, least, before)
    np.testing.assert_array_equal(greatest, [np.nanmax(values)])
    np.testing.assert_array_equal(least, [np.nanmin(values[::3]), np.nanmin(values[1::3]), np.nan])
    np.testing.assert_array_equal(before, np.fmax.accumulate(np.concatenate([[-1], values[:-1]]).astype(kind)))


def test_sums_of_a_counter():
    """LLVM computes them from products of 65 bits and more."""

    @hip.jit
    def kernel(counts, out):
        i = hip.threadIdx.x
        total, squares = 0, 0
        for j in range(counts[i]):
            total += j
            squares += j * j
        out[i, 0] = total * total
        out[i, 1] = squares - counts[i]

    counts = np.random.default_rng(5).integers(0, 1 << 40, LANES)
    counts[:3] = 0, 1, 2
    out = np.zeros((LANES, 2), np.uint64)
    kernel[1, LANES](counts, out)
    sums = [((n * (n - 1) // 2) ** 2, (n - 1) * n * (2 * n - 1) // 6 - n) for n in counts.tolist()]
    np.testing.assert_array_equal(out, [[one % 2**64 for one in row] for row in sums])


def test_a_choice_between_three():
    """LLVM packs the constants into 24 bits."""

    @hip.jit
    def kernel(states, out):
        i = hip.threadIdx.x
        state = states[i]
        out[i] = np.uint8(5) if state == 0 else np.uint8(2) if state == 1 else np.uint8(3) if state == 2 else state

    states = np.random.default_rng(6).integers(0, 6, LANES).astype(np.uint8)
    out = np.zeros(LANES, np.uint8)
    kernel[1, LANES](states, out)
    np.testing.assert_array_equal(out, np.array([5, 2, 3, 3, 4, 5])[states])
