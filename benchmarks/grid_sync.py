"""Steps of Jacobi's method, all in one launch, with a barrier of the whole grid between two."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace

import numpy as np

from benchmarks.case import Benchmark
from benchmarks.problem import UNWRITTEN, Problem, implementations

THREADS = 64
STEPS = 50
QUARTER = np.float32(0.25)


class Heat(Problem):
    """256 by 256 float32 with fixed borders."""

    outputs = ("first",)

    def __init__(self, quick: bool) -> None:
        self.edge = 34 if quick else 256
        start = np.random.default_rng(11).random((self.edge, self.edge), dtype=np.float32)
        self.arrays = {"first": start, "second": start.copy()}

    def verify(self, results: Mapping[str, np.ndarray]) -> None:
        now = self.arrays["first"].copy()
        for _ in range(STEPS):
            now[1:-1, 1:-1] = QUARTER * (now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:])
        np.testing.assert_allclose(results["first"], now, rtol=1e-4, atol=1e-5)


def hip(problem: Heat, on: SimpleNamespace) -> Callable[[], None]:
    """One thread for each inner element."""
    from numba import hip

    @hip.jit(fastmath=True)
    def relax(first, second):
        grid = hip.cg.this_grid()
        i = hip.grid(1)
        edge = first.shape[0]
        y, x = i // (edge - 2) + 1, i % (edge - 2) + 1
        inner = y < edge - 1
        for _ in range(STEPS // 2):
            if inner:
                second[y, x] = QUARTER * (first[y - 1, x] + first[y + 1, x] + first[y, x - 1] + first[y, x + 1])
            grid.sync()
            if inner:
                first[y, x] = QUARTER * (second[y - 1, x] + second[y + 1, x] + second[y, x - 1] + second[y, x + 1])
            grid.sync()

    blocks = -(-((problem.edge - 2) ** 2) // THREADS)
    return lambda: relax[blocks, THREADS](on.first, on.second)


def njit(problem: Heat, on: SimpleNamespace) -> Callable[[], None]:
    """A parallel loop over rows for each step."""
    from numba import njit, prange

    @njit(parallel=True, fastmath=True)
    def relax(first, second):
        edge = first.shape[0]
        for _ in range(STEPS // 2):
            for y in prange(1, edge - 1):
                for x in range(1, edge - 1):
                    second[y, x] = QUARTER * (first[y - 1, x] + first[y + 1, x] + first[y, x - 1] + first[y, x + 1])
            for y in prange(1, edge - 1):
                for x in range(1, edge - 1):
                    first[y, x] = QUARTER * (second[y - 1, x] + second[y + 1, x] + second[y, x - 1] + second[y, x + 1])

    return lambda: relax(on.first, on.second)


BENCHMARK = Benchmark(
    name="grid-sync",
    description="50 steps of Jacobi's method in one launch, 256 x 256 float32",
    peer="njit-parallel",
    scale=1e3,
    unit="ms",
    implementations=implementations("grid-sync", Heat, hip=hip, njit=njit, peers=()),
    aim=1.3,
    unable=UNWRITTEN,
)
