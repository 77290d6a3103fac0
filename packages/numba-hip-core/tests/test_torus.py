"""Neighbours on a torus, whose indices begin anew at the edges, as kernels write them, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import hip

from hip_runtime import config

SHAPES = ((1, 1), (1, 2), (2, 1), (3, 2), (5, 31), (4, 32), (7, 33), (3, 64), (33, 65), (6, 130), (2, 499))
BLOCKS = ((16, 16), (32, 4), (64, 1), (8, 8), (1, 32))
Array = np.ndarray[Any, Any]


@hip.jit
def by_remainders(a, out):
    x, y = hip.grid(2)
    height, width = a.shape
    if x < width and y < height:
        left, right = (x - 1 + width) % width, (x + 1) % width
        above, below = (y - 1 + height) % height, (y + 1) % height
        out[y, x] = a[y, left] + 2 * a[y, right] + 3 * a[above, x] + 4 * a[below, x]


@hip.jit
def by_python_remainders(a, out):
    x, y = hip.grid(2)
    height, width = a.shape
    if x >= width or y >= height:
        return
    out[y, x] = (
        a[y, (x - 1) % width] + 2 * a[y, (x + 1) % width] + 3 * a[(y - 1) % height, x] + 4 * a[(y + 1) % height, x]
    )


@hip.jit
def by_conditions(a, out):
    x, y = hip.grid(2)
    height, width = a.shape
    if x < width and y < height:
        left = x - 1 if x > 0 else width - 1
        right = x + 1 if x < width - 1 else 0
        above = y - 1 if y > 0 else height - 1
        below = y + 1 if y < height - 1 else 0
        out[y, x] = a[y, left] + 2 * a[y, right] + 3 * a[above, x] + 4 * a[below, x]


@hip.jit
def by_corrections(a, out):
    x, y = hip.grid(2)
    height, width = a.shape
    if x < width and y < height:
        left, right, above, below = x - 1, x + 1, y - 1, y + 1
        if left < 0:
            left += width
        if right == width:
            right = 0
        if above < 0:
            above = height - 1
        if below >= height:
            below -= height
        out[y, x] = a[y, left] + 2 * a[y, right] + 3 * a[above, x] + 4 * a[below, x]


@hip.jit
def in_steps(a, out):
    x, y = hip.grid(2)
    height, width = a.shape
    for i in range(y, height, hip.gridsize(2)[1]):
        for j in range(x, width, hip.gridsize(2)[0]):
            out[i, j] = (
                a[i, (j - 1) % width]
                + 2 * a[i, (j + 1) % width]
                + 3 * a[(i - 1) % height, j]
                + 4 * a[(i + 1) % height, j]
            )


@hip.jit
def in_rows(a, out):
    y, x = hip.grid(2)
    height, width = a.shape
    if x < width and y < height:
        left, right = (x - 1) % width, x + 1 if x < width - 1 else 0
        above, below = y - 1 if y != 0 else height - 1, (y + 1) % height
        out[y, x] = a[y, left] + 2 * a[y, right] + 3 * a[above, x] + 4 * a[below, x]


@hip.jit
def in_place(a, out):
    """What lanes store, other lanes do not load."""
    x, y = hip.grid(2)
    height, width = a.shape
    if x < width and y < height:
        left, right = (x - 1) % width, (x + 1) % width
        above, below = (y - 1) % height, (y + 1) % height
        out[y, x] += 0 * out[y, x] + a[y, left] + 2 * a[y, right] + 3 * a[above, x] + 4 * a[below, x]


def around(a: Array) -> Array:
    """What all of the kernels compute."""
    left, right, above, below = (np.roll(a, step, axis) for step, axis in ((1, 1), (-1, 1), (1, 0), (-1, 0)))
    return np.asarray(left + 2 * right + 3 * above + 4 * below)


@pytest.mark.parametrize("form", ["auto", "vectors"])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8])
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize(
    "kernel", [by_remainders, by_python_remainders, by_conditions, by_corrections, in_steps, in_rows, in_place]
)
@pytest.mark.sample(12)
def test_neighbours_on_a_torus(kernel: Any, block: tuple[int, int], dtype: type, form: str) -> None:
    random = np.random.default_rng(3)
    with config.cpu_form.scope(form):
        for shape in SHAPES:
            a = random.integers(0, 20, shape).astype(dtype)
            out = np.zeros(shape, dtype)
            extents = shape if kernel is in_rows else shape[::-1]
            grid = tuple(-(-extent // threads) for extent, threads in zip(extents, block, strict=True))
            kernel[(1, 1) if kernel is in_steps else grid, block](a, out)
            np.testing.assert_array_equal(out, around(a), str(shape))


@hip.jit
def rolled(a, shifts, out):
    i = hip.grid(1)
    n = a.size
    if i < n:
        by = shifts[0]
        out[i] = a[(i + by) % n] + 10 * a[(i + 2) % n] + 100 * a[(i - by) % n] + 1000 * a[(i + 1) % (n + 3) % n]


@pytest.mark.parametrize("size", [1, 2, 3, 30, 31, 64, 65, 500])
def test_other_remainders(size: int) -> None:
    a = np.random.default_rng(4).integers(0, 10, size)
    index = np.arange(size)
    for by in (0, 1, -1, 2, size, -size - 1, 7):
        out = np.zeros_like(a)
        rolled[-(-size // 64), 64](a, np.array([by]), out)
        expected = a[(index + by) % size] + 10 * a[(index + 2) % size] + 100 * a[(index - by) % size]
        np.testing.assert_array_equal(out, expected + 1000 * a[(index + 1) % (size + 3) % size])


def of_constant_size(size: int) -> Any:
    """A kernel for so many columns and rows."""

    @hip.jit
    def kernel(a, out):
        x, y = hip.grid(2)
        if x < size and y < size:
            left, right = (x - 1 + size) % size, (x + 1) % size
            out[y, x] = a[y, left] + 2 * a[y, right] + 3 * a[(y - 1) % size, x] + 4 * a[(y + 1) % size, x]

    return kernel


@pytest.mark.parametrize("form", ["auto", "vectors"])
@pytest.mark.parametrize("size", [1, 2, 3, 32, 33, 64, 100, 128])
@pytest.mark.sample(5)
def test_a_torus_of_constant_size(size: int, form: str) -> None:
    a = np.random.default_rng(5).integers(0, 20, (size, size))
    out = np.zeros_like(a)
    with config.cpu_form.scope(form):
        of_constant_size(size)[(-(-size // 16), -(-size // 16)), (16, 16)](a, out)
    np.testing.assert_array_equal(out, around(a))
