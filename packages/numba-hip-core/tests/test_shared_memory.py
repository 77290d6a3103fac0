"""Barriers and shared memory."""

import platform

import numpy as np
import pytest
from numba import float32, float64, int32
from numba.core.errors import TypingError

import numba_hip as hip
from hip_runtime import LaunchError
from numba_hip.errors import SharedMemoryError

TILE = 16
PADDED = TILE + 1


@hip.jit
def transpose(source, target):
    tile = hip.shared.array((TILE, PADDED), float32)
    i, j = hip.grid(2)
    if i < source.shape[0] and j < source.shape[1]:
        tile[hip.threadIdx.x, hip.threadIdx.y] = source[i, j]
    hip.syncthreads()
    i = hip.blockIdx.y * TILE + hip.threadIdx.x
    j = hip.blockIdx.x * TILE + hip.threadIdx.y
    if i < target.shape[0] and j < target.shape[1]:
        target[i, j] = tile[hip.threadIdx.y, hip.threadIdx.x]


@pytest.mark.parametrize("shape", [(16, 16), (64, 32), (50, 37), (1, 100)])
def test_transposition_through_a_tile(shape):
    source = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    target = np.zeros(shape[::-1], np.float32)
    transpose[(-(-shape[0] // TILE), -(-shape[1] // TILE)), (TILE, TILE)](source, target)
    np.testing.assert_array_equal(target, source.T)


@hip.jit
def matmul(a, b, c):
    tile_a = hip.shared.array((TILE, TILE), float32)
    tile_b = hip.shared.array((TILE, TILE), float32)
    x, y = hip.grid(2)
    tx, ty = hip.threadIdx.x, hip.threadIdx.y
    total = float32(0)
    for k in range((a.shape[1] + TILE - 1) // TILE):
        tile_a[tx, ty] = a[x, ty + k * TILE] if x < a.shape[0] and ty + k * TILE < a.shape[1] else 0
        tile_b[tx, ty] = b[tx + k * TILE, y] if y < b.shape[1] and tx + k * TILE < b.shape[0] else 0
        hip.syncthreads()
        for j in range(TILE):
            total += tile_a[tx, j] * tile_b[j, ty]
        hip.syncthreads()
    if x < c.shape[0] and y < c.shape[1]:
        c[x, y] = total


def test_tiled_matrix_product():
    rng = np.random.default_rng(8)
    a, b = rng.random((70, 45), np.float32), rng.random((45, 33), np.float32)
    c = np.zeros((70, 33), np.float32)
    matmul[(5, 3), (TILE, TILE)](a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


@hip.jit
def tree_sum(values, sums):
    tile = hip.shared.array(256, float64)
    t = hip.threadIdx.x
    i = hip.grid(1)
    tile[t] = values[i] if i < values.size else 0.0
    hip.syncthreads()
    half = hip.blockDim.x // 2
    while half > 0:
        if t < half:
            tile[t] += tile[t + half]
        hip.syncthreads()
        half //= 2
    if t == 0:
        sums[hip.blockIdx.x] = tile[0]


@pytest.mark.parametrize("threads", [1, 2, 64, 256])
@pytest.mark.sample(2)
def test_reduction_in_a_loop_of_barriers(threads):
    values = np.random.default_rng(9).random(10_000)
    blocks = -(-values.size // threads)
    sums = np.zeros(blocks)
    tree_sum[blocks, threads](values, sums)
    wanted = np.add.reduceat(values, np.arange(0, values.size, threads))
    np.testing.assert_allclose(sums, wanted, rtol=1e-13)


def test_dynamic_shared_memory_in_several_views():
    @hip.jit
    def kernel(out, sizes):
        floats = hip.shared.array(0, float32)
        integers = hip.shared.array(0, int32)
        t = hip.threadIdx.x
        floats[t] = t + 0.5
        hip.syncthreads()
        other = floats[hip.blockDim.x - 1 - t]
        hip.syncthreads()
        integers[t] = int32(other)
        hip.syncthreads()
        out[hip.grid(1)] = integers[t] * 100 + integers[0]
        sizes[0] = floats.size
        sizes[1] = integers[8:].size

    out, sizes = np.zeros(64), np.zeros(2, np.int64)
    kernel[2, 32, 0, 32 * 4](out, sizes)
    np.testing.assert_array_equal(out, np.tile(np.arange(31, -1, -1) * 100 + 31, 2))
    np.testing.assert_array_equal(sizes, [32, 24])


def test_early_returns_before_a_barrier():
    @hip.jit
    def kernel(values, n):
        i = hip.grid(1)
        if i >= n:
            return
        tile = hip.shared.array(64, int32)
        tile[hip.threadIdx.x] = values[i]
        hip.syncthreads()
        if hip.threadIdx.x + 1 < 64 and i + 1 < n:
            values[i] = tile[hip.threadIdx.x + 1]

    values = np.arange(200, dtype=np.int32)
    kernel[4, 64](values, 150)
    wanted = np.arange(200)
    for i in range(149):
        if i % 64 < 63:
            wanted[i] = i + 1
    np.testing.assert_array_equal(values, wanted)


def test_barriers_in_device_functions_and_in_nested_loops():
    @hip.jit(device=True)
    def rotate(tile, by):
        t = hip.threadIdx.x
        value = tile[(t + by) % hip.blockDim.x]
        hip.syncthreads()
        tile[t] = value
        hip.syncthreads()

    @hip.jit
    def kernel(out, rounds):
        tile = hip.shared.array(48, int32)
        t = hip.threadIdx.x
        tile[t] = t
        hip.syncthreads()
        for outer in range(rounds):
            for inner in range(outer):
                rotate(tile, inner + 1)
            if outer % 2 == 0:
                rotate(tile, 7)
        out[t] = tile[t]

    out = np.zeros(48, np.int64)
    kernel[1, 48](out, 5)
    by = sum(inner + 1 for outer in range(5) for inner in range(outer)) + 3 * 7
    np.testing.assert_array_equal(out, (np.arange(48) + by) % 48)


def test_values_of_threads_live_across_barriers():
    @hip.jit
    def kernel(values, out):
        own = hip.local.array(4, float64)
        tile = hip.shared.array((8, 8), float64)
        x, y = hip.threadIdx.x, hip.threadIdx.y
        for k in range(4):
            own[k] = values[x, y] * (k + 1)
        tile[x, y] = own[x % 4]
        hip.syncthreads()
        across = tile[y, x]
        hip.syncthreads()
        tile[x, y] = across
        hip.syncthreads()
        out[x, y] = tile[7 - x, y] + own[y % 4]

    values = np.random.default_rng(10).random((8, 8))
    out = np.zeros((8, 8))
    kernel[1, (8, 8)](values, out)
    x, y = np.indices((8, 8))
    first = values * (x % 4 + 1)
    np.testing.assert_allclose(out, first.T[::-1] + values * (y % 4 + 1), rtol=1e-15)


@pytest.mark.sample(1)
@pytest.mark.parametrize("block", [64, (8, 8), (4, 4, 4), 1, 33, 1024])
def test_votes_of_a_block(block):
    @hip.jit
    def kernel(values, out):
        t = hip.threadIdx.x + hip.blockDim.x * (hip.threadIdx.y + hip.blockDim.y * hip.threadIdx.z)
        out[t, 0] = hip.syncthreads_count(values[t] > 0)
        out[t, 1] = hip.syncthreads_and(values[t] > 0)
        out[t, 2] = hip.syncthreads_or(values[t])
        out[t, 3] = hip.syncthreads_and(values[t] > -5)
        out[t, 4] = hip.syncthreads_or(values[t] < -5)

    threads = int(np.prod(block))
    values = np.random.default_rng(11).integers(-4, 5, threads)
    out = np.zeros((threads, 5), np.int32)
    kernel[1, block](values, out)
    wanted = [(values > 0).sum(), (values > 0).all(), values.any(), 1, 0]
    np.testing.assert_array_equal(out, np.tile(np.array(wanted, np.int32), (threads, 1)))


def test_atomics_on_shared_memory(scaled):
    @hip.jit
    def kernel(values, counts):
        bins = hip.shared.array(32, int32)
        t = hip.threadIdx.x
        if t < 32:
            bins[t] = 0
        hip.syncthreads()
        for i in range(hip.grid(1), values.size, hip.gridsize(1)):
            hip.atomic.add(bins, values[i], 1)
        hip.syncthreads()
        if t < 32:
            hip.atomic.add(counts, t, bins[t])

    values = np.random.default_rng(12).integers(0, 32, scaled(50_000)).astype(np.uint8)
    counts = np.zeros(32, np.int32)
    kernel[7, 96](values, counts)
    np.testing.assert_array_equal(counts, np.bincount(values, minlength=32))


def test_blocks_do_not_share():
    @hip.jit
    def kernel(out):
        tile = hip.shared.array(1, int32)
        if hip.threadIdx.x == 0:
            tile[0] = hip.blockIdx.x
        hip.syncthreads()
        out[hip.grid(1)] = tile[0]

    out = np.zeros(500 * 16, np.int32)
    kernel[500, 16](out)
    np.testing.assert_array_equal(out, np.repeat(np.arange(500), 16))


def test_alignment_of_shared_arrays():
    @hip.jit
    def kernel(out):
        first = hip.shared.array(3, "int8")
        second = hip.shared.array(5, "float64", alignment=64)
        first[0] = 1
        second[0] = 2
        hip.syncthreads()
        out[0] = first[0] + second[0]

    out = np.zeros(1)
    kernel[1, 4](out)
    assert out[0] == 3


def test_too_much_shared_memory():
    @hip.jit
    def kernel(out):
        tile = hip.shared.array(70_000, "int8")
        tile[hip.threadIdx.x] = 1
        hip.syncthreads()
        out[0] = tile[0]

    with pytest.raises(Exception, match="70000|shared"):
        kernel[1, 1](np.zeros(1))


def test_exceptions_of_kernels_with_barriers():
    @hip.jit(exceptions=True)
    def kernel(values):
        tile = hip.shared.array(8, int32)
        tile[hip.threadIdx.x] = values[hip.grid(1)]
        hip.syncthreads()
        if tile[7 - hip.threadIdx.x] == 13:
            raise ValueError("thirteen")

    kernel[2, 8](np.arange(16) + 20)
    with pytest.raises(ValueError, match=r"tid=\[2, 0, 0\] ctaid=\[1, 0, 0\]: thirteen"):
        kernel[2, 8](np.arange(16))


@pytest.mark.cpu_device("a GPU counts the waves that arrive at a barrier, not where they are")
def test_a_barrier_that_some_threads_do_not_reach_is_reported():
    @hip.jit
    def kernel(out):
        if hip.threadIdx.x < 4:
            hip.syncthreads()
            out[hip.threadIdx.x] = 1
        else:
            out[hip.threadIdx.x] = 2
            hip.syncthreads()
            out[hip.threadIdx.x] += 2

    with pytest.raises(Exception, match="barrier"):
        kernel[1, 8](np.zeros(8))


on_the_cpu = pytest.mark.cpu_device("AMD GPUs have limits of their own")


@on_the_cpu
def test_one_array_over_the_limit_is_named_by_its_line():
    @hip.jit
    def kernel(out):
        tile = hip.shared.array((100, 82), float64)
        tile[0, hip.threadIdx.x] = 1
        hip.syncthreads()
        out[0] = tile[0, 3]

    says = r"an array of shape \(100, 82\) of float64 has 65600 bytes; at most 65536 for cpu"
    with pytest.raises(TypingError, match=says):
        kernel[1, 64](np.zeros(1))


@on_the_cpu
def test_all_arrays_over_the_limit_are_listed():
    @hip.jit
    def kernel(out):
        tile = hip.shared.array((100, 50), float64)
        row = hip.shared.array(6400, float32)
        tile[0, hip.threadIdx.x] = row[hip.threadIdx.x] = 1
        hip.syncthreads()
        out[0] = tile[0, 3] + row[3]

    line = kernel.py_func.__code__.co_firstlineno
    with pytest.raises(SharedMemoryError) as caught:
        kernel[1, 32](np.zeros(1))
    assert str(caught.value) == (
        "kernel kernel: its shared arrays have 65600 bytes; a block on cpu has 65536: "
        f"40000 bytes, shape (100, 50) of float64, {__file__}:{line + 2} in kernel; "
        f"25600 bytes, shape (6400,) of float32, {__file__}:{line + 3} in kernel"
    )


@on_the_cpu
def test_the_largest_alignment_lies_first():
    @hip.jit
    def fits(out):
        first, second = hip.shared.array(1, np.int8), hip.shared.array(4096, float64)
        third, fourth = hip.shared.array(1, np.int8), hip.shared.array(4095, float64)
        first[0], second[hip.threadIdx.x], third[0], fourth[hip.threadIdx.x] = 1, 2, 3, 4
        hip.syncthreads()
        out[0] = first[0] + second[0] + third[0] + fourth[0]

    out = np.zeros(1)
    fits[1, 32](out)
    assert out[0] == 10

    @hip.jit
    def over(out):
        first, second = hip.shared.array(65473, np.int8, alignment=64), hip.shared.array(63, np.int8, alignment=64)
        first[hip.threadIdx.x] = second[hip.threadIdx.x] = 1
        hip.syncthreads()
        out[0] = first[1] + second[2]

    with pytest.raises(SharedMemoryError, match="have 65599 bytes; a block on cpu has 65536: 65473"):
        over[1, 32](out)


@on_the_cpu
def test_dynamic_memory_beside_static_over_the_limit():
    @hip.jit
    def kernel(out):
        tile, more = hip.shared.array(8000, float64), hip.shared.array(0, float64)
        tile[hip.threadIdx.x] = more[hip.threadIdx.x] = hip.threadIdx.x
        hip.syncthreads()
        out[hip.threadIdx.x] = tile[31 - hip.threadIdx.x] + more[hip.threadIdx.x]

    out = np.zeros(32)
    kernel[1, 32, 0, 1536](out)
    np.testing.assert_array_equal(out, 31)
    with pytest.raises(LaunchError, match="dynamic_shared is 1537 bytes.*64000 bytes that kernel.*at most 65536"):
        kernel[1, 32, 0, 1537](out)


@pytest.mark.cpu_device("looks at its code")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="looks for instructions of x86-64")
def test_short_rows_of_a_tile_are_vectors() -> None:
    """Behind the barrier, threads add four neighbours in shared memory where they are in bounds."""

    @hip.jit
    def average(a, out):
        tile = hip.shared.array((18, 18), np.float32)
        x, y = hip.grid(2)
        tx, ty = hip.threadIdx.x + 1, hip.threadIdx.y + 1
        inside = x < a.shape[1] and y < a.shape[0]
        tile[ty, tx] = a[y, x] if inside else np.float32(0)
        hip.syncthreads()
        if inside:
            out[y, x] = tile[ty - 1, tx] + tile[ty + 1, tx] + tile[ty, tx - 1] + tile[ty, tx + 1]

    a = np.random.default_rng(5).random((50, 40), np.float32)
    out = np.zeros_like(a)
    average[(3, 4), (16, 16)](a, out)
    padded = np.pad(a, 1)
    inner = (slice(1, 15), slice(1, 15))
    expected = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
    np.testing.assert_allclose(out[inner], expected[inner], rtol=1e-5)
    (code,) = average.inspect_asm().values()
    assert "addps" in code
