"""Arrays that are read or written from the end, mirrored images, and anti-diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import hip

DTYPES = ["u1", "i2", "f2", "i4", "f4", "i8", "f8", "c8", "?"]
SIZES = [1, 31, 64, 1000]


@hip.jit
def load_reversed(x, y):
    i = hip.grid(1)
    if i < x.size:
        y[i] = x[x.size - 1 - i]


@hip.jit
def load_by_negative_index(x, y):
    i = hip.grid(1)
    if i < x.size:
        y[i] = x[-1 - i]


@hip.jit
def store_reversed(x, y):
    i = hip.grid(1)
    if i < x.size:
        y[x.size - 1 - i] = x[i]


@hip.jit
def swap(x, y):
    i = hip.grid(1)
    j = y.size - 1 - i
    if i <= j:
        y[i], y[j] = x[j], x[i]


@hip.jit
def mirror(image, result):
    x, y = hip.grid(2)
    height, width = image.shape
    if x < width and y < height:
        result[y, x] = image[y, width - 1 - x]


@hip.jit
def turn(image, result):
    x, y = hip.grid(2)
    height, width = image.shape
    if x < width and y < height:
        result[height - 1 - y, width - 1 - x] = image[y, x]


@hip.jit
def convolve(x, weights, y):
    """Every thread goes through the weights backwards."""
    i = hip.grid(1)
    if i < y.size:
        total = 0.0
        for k in range(weights.size):
            if 0 <= i - k < x.size:
                total += x[i - k] * weights[k]
        y[i] = total


@hip.jit
def common_letters(left, right, before, last, current, diagonal):
    """A line of the lengths of common subsequences, by anti-diagonals."""
    i = hip.grid(1)
    j = diagonal - i
    if 1 <= i <= left.size and 1 <= j <= right.size:
        if left[i - 1] == right[j - 1]:
            current[i] = before[i - 1] + 1
        else:
            current[i] = max(last[i], last[i - 1])
    elif i <= left.size:
        current[i] = 0


def numbers(shape: Any, dtype: str) -> np.ndarray:
    return np.random.default_rng(9).integers(0, 100, shape).astype(dtype)


@pytest.mark.parametrize("threads", [32, 96, 256])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kernel", [load_reversed, load_by_negative_index, store_reversed, swap])
@pytest.mark.sample(12)
def test_arrays_from_the_end(kernel: Any, dtype: str, size: int, threads: int) -> None:
    x = numbers(size, dtype)
    y = np.zeros_like(x)
    kernel[-(-size // threads), threads](x, y)
    np.testing.assert_array_equal(y, x[::-1])


@pytest.mark.parametrize("view", [np.s_[::2], np.s_[::-1], np.s_[5:-3]])
def test_views_from_the_end(view: slice) -> None:
    x = numbers(700, "f4")
    given, made = hip.to_device(x)[view], hip.device_array_like(x[view].copy())
    load_reversed[3, 256](given, made)
    np.testing.assert_array_equal(made.copy_to_host(), x[view][::-1])


@pytest.mark.parametrize("block", [(16, 16), (32, 8), (64, 1), (8, 32)])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("kernel", "expected"), [(mirror, np.s_[:, ::-1]), (turn, np.s_[::-1, ::-1])])
@pytest.mark.sample(4)
def test_mirrored_images(kernel: Any, expected: Any, order: str, block: tuple[int, int]) -> None:
    image = np.asarray(numbers((77, 131), "u1"), order=order)
    result = np.zeros_like(image)
    kernel[(-(-131 // block[0]), -(-77 // block[1])), block](image, result)
    np.testing.assert_array_equal(result, image[expected])


@pytest.mark.parametrize("count", [1, 7, 40])
def test_convolutions(count: int) -> None:
    x, weights = numbers(500, "f8"), numbers(count, "f8")
    y = np.zeros(500 + count - 1)
    convolve[5, 128](x, weights, y)
    np.testing.assert_array_equal(y, np.convolve(x, weights))


@pytest.mark.parametrize("sizes", [(100, 100), (300, 37), (20, 250)])
def test_anti_diagonals(sizes: tuple[int, int]) -> None:
    left, right = (numbers(size, "u1") % 4 for size in sizes)
    lines = [hip.to_device(np.zeros(left.size + 1, np.int32)) for _ in range(3)]
    a, b = hip.to_device(left), hip.to_device(right)
    for diagonal in range(left.size + right.size + 1):
        before, last, current = (lines[(diagonal + k) % 3] for k in (1, 2, 0))
        common_letters[-(-(left.size + 1) // 64), 64](a, b, before, last, current, diagonal)
    table = np.zeros((left.size + 1, right.size + 1), int)
    for i in range(left.size):
        for j in range(right.size):
            same = left[i] == right[j]
            table[i + 1, j + 1] = table[i, j] + 1 if same else max(table[i, j + 1], table[i + 1, j])
    assert lines[(left.size + right.size) % 3].copy_to_host()[left.size] == table[-1, -1]


def test_no_gather_is_left() -> None:
    if not hip.get_current_device().is_cpu:
        pytest.skip("explains the CPU device")
    x = np.zeros(500, np.float32)
    for kernel in (load_reversed, load_by_negative_index, store_reversed):
        told = str(kernel[2, 256].explain(x, x))
        assert "contiguous in reverse" in told
        assert "gathered" not in told
