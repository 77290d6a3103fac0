"""Maxima and sums of small tiles of an image, in loops that are unrolled, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import hip

from hip_runtime import config


@hip.jit
def largest(image, pooled):
    x, y = hip.grid(2)
    if y < pooled.shape[0] and x < pooled.shape[1]:
        best = image[2 * y, 2 * x]
        for dy in range(2):
            for dx in range(2):
                best = max(best, image[2 * y + dy, 2 * x + dx])
        pooled[y, x] = best


@hip.jit
def total(image, pooled):
    x, y = hip.grid(2)
    if y < pooled.shape[0] and x < pooled.shape[1]:
        found = image[2 * y + 1, 2 * x] - image[2 * y + 1, 2 * x]
        for dx in range(2):
            for dy in range(2):
                found += image[2 * y + dy, 2 * x + dx]
        pooled[y, x] = found


@pytest.mark.parametrize("form", ["auto", "vectors"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8, np.float64])
@pytest.mark.parametrize("block", [(32, 4), (16, 16), (64, 1)])
@pytest.mark.sample(3)
def test_pools(block: tuple[int, int], dtype: type, form: str) -> None:
    random = np.random.default_rng(3)
    for height, width in ((1, 1), (3, 4), (5, 100), (2, 64), (7, 33)):
        image: Any = random.integers(0, 30, (2 * height, 2 * width)).astype(dtype)
        tiles = image.reshape(height, 2, width, 2)
        grid = -(-width // block[0]), -(-height // block[1])
        for kernel, expected in ((largest, tiles.max(axis=(1, 3))), (total, tiles.sum(axis=(1, 3), dtype=dtype))):
            pooled = np.zeros((height, width), dtype)
            with config.cpu_form.scope(form):
                kernel[grid, block](image, pooled)
            np.testing.assert_array_equal(pooled, expected)
