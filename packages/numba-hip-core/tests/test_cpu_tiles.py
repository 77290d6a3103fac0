"""Tiles in shared memory, and their elements by quotient and remainder, compared with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import float32, float64, hip, int16, int32, int64, uint8, uint64

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


def make_neighbours(kind: Any, side: int, pitch: int, rows: int) -> Any:
    """A kernel that adds up the neighbours of elements, of tiles with a halo that threads load by quotient; outside is
    7. Blocks have *rows* rows of *side* threads."""
    length, lines = side + 2, rows + 2

    @hip.jit
    def neighbours(image, out):
        tile = hip.shared.array((lines, pitch), kind)
        x, y = hip.threadIdx.x, hip.threadIdx.y
        height, width = image.shape
        for q in range(y * side + x, lines * length, rows * side):
            i = hip.blockIdx.y * rows + q // length - 1
            j = hip.blockIdx.x * side + q % length - 1
            tile[q // length, q % length] = image[i, j] if 0 <= i < height and 0 <= j < width else kind(7)
        hip.syncthreads()
        j, i = hip.grid(2)
        if i < height and j < width:
            total = 0
            for a in range(3):
                for b in range(3):
                    total += tile[y + a, x + b]
            out[i, j] = total - tile[y + 1, x + 1]

    return neighbours


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("side", "pitch", "rows"), [(16, 18, 16), (16, 19, 8), (32, 34, 4), (7, 9, 7), (64, 66, 2)])
@pytest.mark.parametrize("kind", [uint8, int16, float32])
@pytest.mark.sample(4)
def test_tiles_with_a_halo(kind: Any, side: int, pitch: int, rows: int, form: str) -> None:
    dtype = np.dtype(str(kind))
    image = np.random.default_rng(side).integers(0, 99, (53, 71)).astype(dtype)
    out = np.zeros(image.shape, np.int64)
    with config.cpu_form.scope(form):
        make_neighbours(kind, side, pitch, rows)[(-(-71 // side), -(-53 // rows)), (side, rows)](image, out)
    around = np.pad(image.astype(np.int64), 1, constant_values=7)
    windows = np.lib.stride_tricks.sliding_window_view(around, (3, 3)).sum((2, 3))
    np.testing.assert_array_equal(out, windows - image)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("start", [0, -40, -5])
def test_quotients_of_negative_numbers(start: int, signed: bool, form: str) -> None:
    """They are rounded down, and the remainders are not negative; of numbers without a sign, both are other ones."""
    as_number = int64 if signed else uint64

    @hip.jit
    def copy(x, out):
        i = hip.grid(1)
        if i < out.size:
            q = as_number(i + start)
            row, column = q // as_number(9), q % as_number(9)
            out[i] = x[int64(row) % 23, int64(column)]

    x = np.random.default_rng(1).integers(0, 99, (23, 9))
    out = np.zeros(90, np.int64)
    with config.cpu_form.scope(form):
        copy[2, 64](x, out)
    numbers = [(i + start) if signed else (i + start) % 2**64 for i in range(90)]
    np.testing.assert_array_equal(out, [x[q // 9 % 23, q % 9] for q in numbers])
