"""Indices that kernels convert to 32 bits, as ``int32(hip.grid(1))``: what they access, how, and over which grids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import float32, hip, int8, int16, int32, uint8, uint16, uint32

from hip_runtime import config as runtime_config
from hip_runtime.errors import LaunchError

VECTOR, MATRIX = "float32[::1]", "float32[:, ::1]"
SIZE = 3000
SHAPES = [64, 100, 256, 7]

on_the_cpu = pytest.mark.cpu_device("it computes indices in 32 bits where the grid allows that")


@hip.jit
def by_int32(left, right, out):
    i = int32(hip.grid(1))
    if i < out.size:
        out[i] = left[i] + right[i]


@hip.jit
def by_uint32(left, right, out):
    i = uint32(hip.grid(1))
    if i < out.size:
        out[i] = left[i] + right[i]


@hip.jit
def by_parts(left, right, out):
    block, length, thread = np.int32(hip.blockIdx.x), np.int32(hip.blockDim.x), np.int32(hip.threadIdx.x)
    i = np.int32(block * length + thread)
    if i < np.int32(out.size):
        out[i] = left[i] + right[i]


@hip.jit
def by_a_range(left, right, out):
    for i in range(int32(hip.grid(1)), int32(out.size), int32(hip.gridsize(1))):
        out[i] = left[i] + right[i]


@hip.jit
def by_steps(left, right, out):
    i, step = int32(hip.grid(1)), int32(hip.gridsize(1))
    while i < out.size:
        out[i] = left[i] + right[i]
        i += step


@hip.jit
def by_bytes(left, right, out):
    """In blocks of up to 127 threads: the thread's index has 8 bits."""
    thread = np.int8(hip.threadIdx.x)
    i = int32(int32(hip.blockDim.x) * int32(hip.blockIdx.x) + thread)
    if i < out.size:
        out[i] = left[i] + right[i]


SUMS = [by_int32, by_uint32, by_parts, by_a_range, by_steps]


@hip.jit
def from_the_end(source, out, back):
    i = int32(hip.grid(1))
    if i < out.size:
        out[i] = source[int32(i - back)]


def through_type(kind: Any) -> Any:
    """A kernel that loads and stores at sums that wrap around as numbers of the type *kind*."""

    @hip.jit
    def kernel(source, out, first):
        i = hip.grid(1)
        if i < 250:
            total = float32(0)
            for k in range(3):
                total += source[kind(i + first + k)]
            out[kind(first + i)] = total

    return kernel


def backwards(kind: Any) -> Any:
    @hip.jit
    def kernel(source, out, first):
        i = hip.grid(1)
        if i < out.size:
            out[i] = source[kind(first - i)]

    return kernel


@hip.jit
def transposed(matrix, out):
    x, y = hip.grid(2)
    row, column = int32(y), int32(x)
    if row < out.shape[0] and column < out.shape[1]:
        out[row, column] = 2 * matrix[row, column]


def numbers() -> tuple[Any, Any]:
    left, right = np.random.default_rng(5).random((2, SIZE), np.float32)
    return left, right


@pytest.mark.parametrize("form", ["auto", "loop", "regions"])
@pytest.mark.parametrize("kernel", SUMS, ids=lambda kernel: kernel.__name__)
def test_sums(kernel: Any, form: str) -> None:
    left, right = numbers()
    with runtime_config.cpu_form.scope(form):
        for block in SHAPES:
            grid = 3 if kernel in (by_a_range, by_steps) else -(-SIZE // block)
            out = np.zeros(SIZE, np.float32)
            kernel[grid, block](left, right, out)
            np.testing.assert_array_equal(out, left + right, f"blocks of {block}")


def test_a_thread_index_of_8_bits() -> None:
    left, right = numbers()
    out = np.zeros(SIZE, np.float32)
    by_bytes[-(-SIZE // 120), 120](left, right, out)
    np.testing.assert_array_equal(out, left + right)


@pytest.mark.parametrize("form", ["auto", "loop"])
@pytest.mark.parametrize("back", [0, 1, 5, 64, 900])
def test_negative_indices_count_from_the_end(back: int, form: str) -> None:
    source = np.arange(1000, dtype=np.float32)
    with runtime_config.cpu_form.scope(form):
        for block in SHAPES:
            out = np.zeros(1000, np.float32)
            from_the_end[-(-1000 // block), block](source, out, back)
            np.testing.assert_array_equal(out, source[np.arange(1000) - back], f"blocks of {block}")


@pytest.mark.parametrize("form", ["auto", "vectors", "loop"])
@pytest.mark.parametrize("kind", [int8, uint8, int16, uint16], ids=str)
def test_indices_that_wrap_around(kind: Any, form: str) -> None:
    """In some gangs, in all, and in none; numbers with a sign count from the end then."""
    dtype = np.dtype(str(kind))
    size = 1 << 8 * dtype.itemsize
    source = np.arange(size, dtype=np.float32)
    kernel, reverse = through_type(kind), backwards(kind)
    with runtime_config.cpu_form.scope(form):
        for first in (0, size // 2 - 30, size // 2 - 1, size // 2, size - 100, size - 1, -1, -64):
            out, expected = np.zeros(size, np.float32), np.zeros(size, np.float32)
            kernel[2, 125](source, out, first)
            i = np.arange(250) + first
            expected[i.astype(dtype)] = sum(source[(i + k).astype(dtype)] for k in range(3))
            np.testing.assert_array_equal(out, expected, f"from {first}")
            found = np.zeros(200, np.float32)
            reverse[1, 256](source, found, first)
            np.testing.assert_array_equal(found, source[(first - np.arange(200)).astype(dtype)], f"from {first}")


@pytest.mark.parametrize("block", [(32, 8), (16, 16), (7, 3), (64, 1)])
def test_two_axes(block: tuple[int, int]) -> None:
    matrix = np.random.default_rng(6).random((61, 130), np.float32)
    out = np.zeros_like(matrix)
    transposed[(-(-130 // block[0]), -(-61 // block[1])), block](matrix, out)
    np.testing.assert_array_equal(out, 2 * matrix)


@on_the_cpu
@pytest.mark.parametrize("block", [256, 100])
@pytest.mark.parametrize("kernel", SUMS, ids=lambda kernel: kernel.__name__)
def test_neighbours_are_loaded_as_vectors(kernel: Any, block: int) -> None:
    told = str(kernel.explain(f"({VECTOR}, {VECTOR}, {VECTOR})", block=block))
    assert "load of float32: contiguous" in told or "loads of float32: contiguous" in told
    assert "gathered" not in told


@on_the_cpu
@pytest.mark.parametrize("kind", [int16, int32, uint32], ids=str)
def test_sums_with_the_counter_of_a_loop_are_neighbours(kind: Any) -> None:
    """Unless the sum wraps around in a gang, which one comparison tells."""
    told = str(through_type(kind).explain(f"({VECTOR}, {VECTOR}, int64)"))
    assert "gathered" not in told
    assert "unless" in told


@on_the_cpu
@pytest.mark.parametrize("grid", [1 << 23, 1 << 30])
def test_grids_whose_indices_do_not_fit(grid: int) -> None:
    """Nothing runs, and the kernel can be launched again."""
    left, right = numbers()
    out = np.zeros(SIZE, np.float32)
    told = rf"'by_int32'.* the grid has {256 * grid} threads along x.* at most 2147483647; leave out the conversion"
    with pytest.raises(LaunchError, match=told):
        by_int32[grid, 256](left, right, out)
    assert not out.any()
    by_int32[12, 256](left, right, out)
    np.testing.assert_array_equal(out, left + right)
