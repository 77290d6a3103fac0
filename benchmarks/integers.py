"""Quotients and remainders of integers: a torus of cells, and indices that are taken apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace

import numpy as np

from benchmarks.case import Benchmark
from benchmarks.problem import ONLY_OPENCL, OPENCL, Problem, implementations

THREADS, BLOCK = 256, (32, 8)


class Cells(Problem):
    """1000 by 1000 cells."""

    outputs = ("after",)

    def __init__(self, quick: bool) -> None:
        self.edge = 30 if quick else 1000
        cells = np.random.default_rng(12).integers(0, 2, (self.edge, self.edge), np.uint8)
        self.arrays = {"before": cells, "after": np.zeros_like(cells)}

    def verify(self, results: Mapping[str, np.ndarray]) -> None:
        cells = self.arrays["before"]
        near = sum(np.roll(cells, (y, x), (0, 1)) for y in (-1, 0, 1) for x in (-1, 0, 1) if (y, x) != (0, 0))
        np.testing.assert_array_equal(results["after"], (near == 3) | ((near == 2) & (cells == 1)))


class Matrix(Problem):
    """2000 by 1500 float32."""

    outputs = ("turned",)

    def __init__(self, quick: bool) -> None:
        self.shape = (20, 30) if quick else (2000, 1500)
        matrix = np.random.default_rng(13).random(self.shape, dtype=np.float32)
        self.arrays = {"matrix": matrix.ravel(), "turned": np.zeros_like(matrix).ravel()}

    def verify(self, results: Mapping[str, np.ndarray]) -> None:
        np.testing.assert_array_equal(results["turned"], self.arrays["matrix"].reshape(self.shape).T.ravel())


def live(problem: Cells, on: SimpleNamespace) -> Callable[[], None]:
    """One thread for each cell, which finds its neighbours by remainders."""
    from numba import hip

    @hip.jit
    def step(before, after):
        x, y = hip.grid(2)
        height, width = before.shape
        if x < width and y < height:
            near = 0
            for dy in range(-1, 2):
                for dx in range(-1, 2):
                    if dx != 0 or dy != 0:
                        near += before[(y + dy + height) % height, (x + dx + width) % width]
            after[y, x] = near == 3 or (near == 2 and before[y, x] == 1)

    grid = -(-problem.edge // BLOCK[0]), -(-problem.edge // BLOCK[1])
    return lambda: step[grid, BLOCK](on.before, on.after)


def njit_live(problem: Cells, on: SimpleNamespace) -> Callable[[], None]:
    """Rows in parallel; the rows above and below are found once for each."""
    from numba import njit, prange

    @njit(parallel=True)
    def step(before, after):
        height, width = before.shape
        for y in prange(height):
            above, below = (y + height - 1) % height, (y + 1) % height
            for x in range(width):
                left, right = (x + width - 1) % width, (x + 1) % width
                near = before[above, left] + before[above, x] + before[above, right] + before[y, left]
                near += before[y, right] + before[below, left] + before[below, x] + before[below, right]
                after[y, x] = near == 3 or (near == 2 and before[y, x] == 1)

    return lambda: step(on.before, on.after)


def turn(problem: Matrix, on: SimpleNamespace) -> Callable[[], None]:
    """One thread for each element, whose row and column are quotient and remainder of its index."""
    from numba import hip

    @hip.jit
    def transpose(matrix, turned, rows, columns):
        i = hip.grid(1)
        if i < matrix.size:
            turned[i % columns * rows + i // columns] = matrix[i]

    rows, columns = problem.shape
    blocks = -(-rows * columns // THREADS)
    return lambda: transpose[blocks, THREADS](on.matrix, on.turned, rows, columns)


def njit_turn(problem: Matrix, on: SimpleNamespace) -> Callable[[], None]:
    """The same loop, in parallel."""
    from numba import njit, prange

    @njit(parallel=True)
    def transpose(matrix, turned, rows, columns):
        for i in prange(matrix.size):
            turned[i % columns * rows + i // columns] = matrix[i]

    rows, columns = problem.shape
    return lambda: transpose(on.matrix, on.turned, rows, columns)


LIFE = Benchmark(
    name="life",
    description="a step of the game of life on a torus, 1000 x 1000 bytes, neighbours by remainders",
    peer="njit-parallel",
    scale=1e3,
    unit="ms",
    implementations=implementations("life", Cells, hip=live, njit=njit_live, peers=OPENCL),
    aim=1.3,
    unable=ONLY_OPENCL,
)
TRANSPOSE = Benchmark(
    name="transpose-by-index",
    description="a matrix of 2000 x 1500 float32 turned, row and column by division",
    peer="njit-parallel",
    scale=1e3,
    unit="ms",
    implementations=implementations("transpose_by_index", Matrix, hip=turn, njit=njit_turn, peers=OPENCL),
    aim=1.3,
    unable=ONLY_OPENCL,
)
