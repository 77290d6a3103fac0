"""Whole numbers that are computed from constants, where a constant has to be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import float32, hip, int64
from numba.core.errors import TypingError

TILE = 16
WIDE = np.int64(4)


def make(count: int) -> Any:
    @hip.jit
    def kernel(a: Any, out: Any) -> None:
        tile = hip.shared.array((TILE, TILE + 1), float32)
        own = hip.local.array(2 * count - 1, float32)
        last = (count + 1) // 2 * TILE - (TILE << 1) + TILE % 5
        x, y = hip.threadIdx.x, hip.threadIdx.y
        tile[y, x] = a[y, x]
        for i in range(2 * count - 1):
            own[i] = i
        hip.syncthreads()
        out[y, x] = tile[x, y] + own[count] + last

    return kernel


@pytest.mark.parametrize("count", [2, 3, 7])
def test_extents_of_arrays(count: int) -> None:
    a = np.random.default_rng(1).integers(0, 99, (TILE, TILE)).astype(np.float32)
    out = np.zeros_like(a)
    make(count)[1, (TILE, TILE)](a, out)
    np.testing.assert_array_equal(out, a.T + count + (count + 1) // 2 * TILE - 32 + 1)


def test_variables_of_several_values_are_none() -> None:
    @hip.jit
    def kernel(out: Any) -> None:
        size = TILE + 1
        if out.size > 5:
            size = TILE + 2
        for i in range(3):
            size = size + i
        out[0] = size

    for length, expected in ((3, 20), (7, 21)):
        out = np.zeros(length, np.int64)
        kernel[1, 1](out)
        assert out[0] == expected


def test_they_are_no_extents_either() -> None:
    @hip.jit
    def kernel(out: Any) -> None:
        size = TILE
        if out.size > 5:
            size = TILE + 2
        tile = hip.shared.array(size + 1, int64)
        out[0] = tile[0]

    with pytest.raises(TypingError, match="the shape must consist of constants"):
        kernel.compile("(int64[::1],)")


def test_what_python_would_not_compute_stays() -> None:
    """An error where it runs, and numbers of more than 64 bits, are as before."""

    @hip.jit
    def kernel(out: Any) -> None:
        if out.size > 5:
            out[1] = TILE // 0
        out[0] = (1 << 62) + (1 << 62) - 1
        out[2] = TILE - 17
        out[3] = (TILE - 17) // 4
        out[4] = (TILE - 17) % 4

    out = np.zeros(5, np.int64)
    kernel[1, 1](out)
    assert out.tolist() == [2**63 - 1, 0, -1, -1, 3]


def test_numbers_of_numpy_keep_their_type() -> None:
    @hip.jit
    def kernel(out: Any) -> None:
        out[0] = WIDE + 1

    out = np.zeros(1)
    kernel[1, 1](out)
    assert out[0] == 5
