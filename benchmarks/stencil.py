"""The mean of each element's four neighbours and itself: the bandwidth of memory and of the caches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace

import numpy as np

from benchmarks.case import Benchmark
from benchmarks.problem import PEERS, Problem, implementations

BLOCK = (32, 8)
FIFTH = np.float32(0.2)


class Stencil(Problem):
    """4096 by 4096 float32; the border is left as it is."""

    outputs = ("target",)

    def __init__(self, quick: bool) -> None:
        self.size = 128 if quick else 4096
        shape = (self.size, self.size)
        source = np.random.default_rng(5).random(shape, dtype=np.float32)
        self.arrays = {"source": source, "target": np.zeros(shape, np.float32)}

    def verify(self, results: Mapping[str, np.ndarray]) -> None:
        s = self.arrays["source"]
        wanted = np.zeros_like(s)
        around = s[:-2, 1:-1] + s[2:, 1:-1] + s[1:-1, :-2] + s[1:-1, 2:]
        wanted[1:-1, 1:-1] = (s[1:-1, 1:-1] + around) * FIFTH
        np.testing.assert_allclose(results["target"], wanted, rtol=1e-5)


def hip(problem: Stencil, on: SimpleNamespace) -> Callable[[], None]:
    """One thread for each element."""
    from numba import hip

    @hip.jit(fastmath=True)
    def average(s, target):
        j, i = hip.grid(2)
        if 0 < i < s.shape[0] - 1 and 0 < j < s.shape[1] - 1:
            target[i, j] = (s[i, j] + s[i - 1, j] + s[i + 1, j] + s[i, j - 1] + s[i, j + 1]) * FIFTH

    grid = (-(-problem.size // BLOCK[0]), -(-problem.size // BLOCK[1]))
    return lambda: average[grid, BLOCK](on.source, on.target)


def njit(problem: Stencil, on: SimpleNamespace) -> Callable[[], None]:
    """Two loops, rows in parallel."""
    from numba import njit, prange

    @njit(parallel=True, fastmath=True)
    def average(s, target):
        for i in prange(1, s.shape[0] - 1):
            for j in range(1, s.shape[1] - 1):
                target[i, j] = (s[i, j] + s[i - 1, j] + s[i + 1, j] + s[i, j - 1] + s[i, j + 1]) * FIFTH

    return lambda: average(on.source, on.target)


BENCHMARK = Benchmark(
    name="stencil",
    description="5 points, 4096 x 4096 float32",
    peer="njit-parallel",
    scale=1e3,
    unit="ms",
    implementations=implementations("stencil", Stencil, hip=hip, njit=njit, peers=tuple(PEERS)),
    aim=1.3,
)
