"""``y = a * x + y`` over arrays that are on the device already: the bandwidth of memory, and little else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace

import numpy as np

from benchmarks.case import Benchmark
from benchmarks.environments import ON_GPUS, REQUIREMENTS
from benchmarks.problem import PEERS, Problem, implementations

THREADS = 256


class Saxpy(Problem):
    """16M float32."""

    outputs = ("y",)
    a = np.float32(0.5)
    full = 2**24

    def __init__(self, quick: bool) -> None:
        rng = np.random.default_rng(1)
        self.size = min(2**16, self.full) if quick else self.full
        self.arrays = {name: rng.standard_normal(self.size, dtype=np.float32) for name in ("x", "y")}

    def verify(self, results: Mapping[str, np.ndarray]) -> None:
        # A fused product and sum is rounded once instead of twice.
        wanted = self.a * self.arrays["x"] + self.arrays["y"]
        np.testing.assert_allclose(results["y"], wanted, rtol=1e-5, atol=1e-6)


class FewNumbers(Saxpy):
    """1,000 float32: what counts is how soon a launch is done."""

    full = 1000


def hip(problem: Saxpy, on: SimpleNamespace) -> Callable[[], None]:
    """One thread for each element."""
    from numba import hip

    @hip.jit(fastmath=True)
    def saxpy(a, x, y):
        i = hip.grid(1)
        if i < y.size:
            y[i] = a * x[i] + y[i]

    blocks = -(-problem.size // THREADS)
    return lambda: saxpy[blocks, THREADS](problem.a, on.x, on.y)


def njit(problem: Saxpy, on: SimpleNamespace) -> Callable[[], None]:
    """One loop."""
    from numba import njit, prange

    @njit(parallel=True, fastmath=True)
    def saxpy(a, x, y):
        for i in prange(y.size):
            y[i] = a * x[i] + y[i]

    return lambda: saxpy(problem.a, on.x, on.y)


BENCHMARK = Benchmark(
    name="saxpy",
    description="y = a * x + y, 16M float32 on the device",
    peer="njit-parallel",
    scale=1e3,
    unit="ms",
    implementations=implementations("saxpy", Saxpy, hip=hip, njit=njit, peers=tuple(PEERS)),
    aim=1.0,
)

FEW = Benchmark(
    name="saxpy-few",
    description="y = a * x + y, 1,000 float32 on the device: launch and wait",
    peer="njit-parallel",
    scale=1e6,
    unit="us",
    implementations=implementations("saxpy", FewNumbers, hip=hip, njit=njit, peers=()),
    unable=dict.fromkeys((*REQUIREMENTS, *ON_GPUS), "compared with many numbers"),
)
