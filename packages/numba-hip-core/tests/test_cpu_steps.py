"""Steps in shared memory on the CPU device: loops around barriers that are unrolled, strides that double, and threads
that have nothing to do."""

import numpy as np
import pytest
from numba import float64, int32

import numba_hip as hip
from hip_runtime import config

SIZE = 64
FORMS = ("auto", "regions", "vectors")


@hip.jit
def blelloch(numbers, before):
    shared = hip.shared.array(SIZE, int32)
    i, thread = hip.grid(1), hip.threadIdx.x
    shared[thread] = numbers[i]
    step = 1
    while step < SIZE:
        hip.syncthreads()
        at = (thread + 1) * step * 2 - 1
        if at < SIZE:
            shared[at] += shared[at - step]
        step *= 2
    hip.syncthreads()
    if thread == 0:
        shared[SIZE - 1] = 0
    while step > 1:
        step //= 2
        hip.syncthreads()
        at = (thread + 1) * step * 2 - 1
        if at < SIZE:
            left = shared[at - step]
            shared[at - step] = shared[at]
            shared[at] += left
    hip.syncthreads()
    before[i] = shared[thread]


@hip.jit
def hillis_steele(numbers, until):
    shared = hip.shared.array((2, SIZE), int32)
    i, thread = hip.grid(1), hip.threadIdx.x
    now = 0
    shared[now, thread] = numbers[i]
    step = 1
    while step < SIZE:
        hip.syncthreads()
        shared[1 - now, thread] = shared[now, thread] + (shared[now, thread - step] if thread >= step else 0)
        now = 1 - now
        step *= 2
    until[i] = shared[now, thread]


@hip.jit
def interleaved_tree(numbers, sums):
    shared = hip.shared.array(SIZE, float64)
    thread = hip.threadIdx.x
    shared[thread] = numbers[hip.grid(1)]
    step = 1
    while step < SIZE:
        hip.syncthreads()
        at = 2 * step * thread
        if at + step < SIZE:
            shared[at] += shared[at + step]
        step *= 2
    if thread == 0:
        sums[hip.blockIdx.x] = shared[0]


@hip.jit
def steps_by_rows(numbers, sums):
    """Each row of the block adds up its own; threads of odd rows start from the far end."""
    shared = hip.shared.array((4, 16), int32)
    x, y = hip.threadIdx.x, hip.threadIdx.y
    place = hip.blockIdx.x * 64 + y * 16 + x
    shared[y, x] = numbers[place]
    for level in range(4):
        hip.syncthreads()
        step = 1 << level
        if x < 8 >> level:
            at = 2 * step * x
            shared[y, at] += shared[y, at + step]
        numbers[place] += level
    hip.syncthreads()
    if x == 0 and y < 3:
        sums[hip.blockIdx.x * 4 + y] = shared[y, 0]


@pytest.fixture(params=FORMS, autouse=True)
def form(request):
    with config.cpu_form.scope(request.param):
        yield request.param


def numbers(blocks):
    return np.random.default_rng(blocks).integers(-1000, 1000, blocks * SIZE, np.int32)


def test_a_scan_up_and_down_a_tree():
    given, before = numbers(7), np.zeros(7 * SIZE, np.int32)
    blelloch[7, SIZE](given, before)
    blocks = given.reshape(7, SIZE)
    np.testing.assert_array_equal(before.reshape(7, SIZE), blocks.cumsum(axis=1) - blocks)


def test_a_scan_that_doubles_its_distance():
    given, until = numbers(5), np.zeros(5 * SIZE, np.int32)
    hillis_steele[5, SIZE](given, until)
    np.testing.assert_array_equal(until.reshape(5, SIZE), given.reshape(5, SIZE).cumsum(axis=1))


def test_a_tree_whose_elements_grow_apart():
    given, sums = numbers(6).astype(np.float64), np.zeros(6)
    interleaved_tree[6, SIZE](given, sums)
    np.testing.assert_array_equal(sums, given.reshape(6, SIZE).sum(axis=1))


def test_rows_of_a_block_with_steps_of_their_own():
    """Threads that take no part in a step do what follows it."""
    given, sums = numbers(3), np.full(12, -1, np.int32)
    changed = given.copy()
    steps_by_rows[3, (16, 4)](changed, sums)
    wanted = given.reshape(3, 4, 16).sum(axis=2)
    wanted[:, 3] = -1
    np.testing.assert_array_equal(sums.reshape(3, 4), wanted)
    np.testing.assert_array_equal(changed, given + 6)
