"""Tiles in shared memory whose rows threads go through, compared with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import float32, float64, hip, int16, int32

from hip_runtime import config

FORMS = ("auto", "regions", "vectors")


def make_product(kind: Any, side: int, pitch: int) -> Any:
    """A kernel that computes ``a @ b.T``, and the squares of the rows of *b*, by tiles with rows of *pitch*."""

    @hip.jit
    def product(a, b, out, squares):
        left = hip.shared.array((side, pitch), kind)
        right = hip.shared.array((side, pitch), kind)
        x, y = hip.threadIdx.x, hip.threadIdx.y
        i = hip.blockIdx.y * side + y
        j = hip.blockIdx.x * side + x
        other = hip.blockIdx.x * side + y
        total = square = kind(0)
        for first in range(0, a.shape[1], side):
            k = first + x
            left[y, x] = a[i, k] if i < a.shape[0] and k < a.shape[1] else kind(0)
            right[y, x] = b[other, k] if other < b.shape[0] and k < b.shape[1] else kind(0)
            hip.syncthreads()
            for q in range(side):
                total += left[y, q] * right[x, q]
                square += right[x, q] * right[x, q]
            hip.syncthreads()
        if i < a.shape[0] and j < b.shape[0]:
            out[i, j] = total
            squares[i, j] = square

    return product


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("side", "pitch"), [(16, 16), (16, 17), (8, 9), (5, 5), (32, 33)])
@pytest.mark.parametrize("kind", [float32, float64, int32, int16])
@pytest.mark.sample(4)
def test_rows_of_two_tiles(kind: Any, side: int, pitch: int, form: str) -> None:
    dtype = np.dtype(str(kind))
    random = np.random.default_rng(side)
    a, b = (random.integers(-9, 9, shape).astype(dtype) for shape in ((41, 37), (35, 37)))
    out, squares = np.zeros((2, 41, 35), dtype)
    with config.cpu_form.scope(form):
        make_product(kind, side, pitch)[(-(-35 // side), -(-41 // side)), (side, side)](a, b, out, squares)
    np.testing.assert_array_equal(out, a @ b.T)
    np.testing.assert_array_equal(squares, np.broadcast_to((b * b).sum(1, dtype=dtype), out.shape))


def test_gangs_go_through_rows_of_tiles() -> None:
    """LLVM would gather the elements of a tile's rows one by one."""
    kernel = make_product(float32, 16, 17)
    arrays = "float32[:,::1]"
    told = kernel.explain(f"({arrays}, {arrays}, {arrays}, {arrays})", block=(16, 16))
    (line,) = {line.number: line for line in told.lines if "total += left" in line.source}.values()
    assert "made by LLVM" not in "; ".join(line.notes), line.notes
