"""The Lorenz equations for many starts, by Heun's method: a long chain of operations for each thread, and no memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace

import numpy as np

from benchmarks.case import Benchmark
from benchmarks.problem import ONLY_OPENCL, OPENCL, Problem, implementations

THREADS = 256
STEPS = 100
H, HALF = np.float32(0.002), np.float32(0.5)
SIGMA, RHO, BETA = np.float32(10), np.float32(28), np.float32(8 / 3)


def step(x, y, z):
    """One step; compiled for either side, and NumPy's own."""
    ax, ay, az = SIGMA * (y - x), x * (RHO - z) - y, x * y - BETA * z
    u, v, w = x + H * ax, y + H * ay, z + H * az
    bx, by, bz = SIGMA * (v - u), u * (RHO - w) - v, u * v - BETA * w
    half = H * HALF
    return x + half * (ax + bx), y + half * (ay + by), z + half * (az + bz)


class Lorenz(Problem):
    """256K starts, 100 steps each."""

    outputs = ("x", "y", "z")

    def __init__(self, quick: bool) -> None:
        self.size = 2**10 if quick else 2**18
        rng = np.random.default_rng(8)
        self.arrays = {name: rng.random(self.size, dtype=np.float32) + 1 for name in self.outputs}

    def verify(self, results: Mapping[str, np.ndarray]) -> None:
        wanted = tuple(self.arrays[name] for name in self.outputs)
        for _ in range(STEPS):
            wanted = step(*wanted)
        for name, values in zip(self.outputs, wanted, strict=True):
            np.testing.assert_allclose(results[name], values, rtol=1e-3, atol=1e-3)


def hip(problem: Lorenz, on: SimpleNamespace) -> Callable[[], None]:
    """One thread for each start."""
    from numba import hip

    advance = hip.jit(device=True, fastmath=True)(step)

    @hip.jit(fastmath=True)
    def integrate(x, y, z):
        i = hip.grid(1)
        if i < x.size:
            u, v, w = x[i], y[i], z[i]
            for _ in range(STEPS):
                u, v, w = advance(u, v, w)
            x[i], y[i], z[i] = u, v, w

    blocks = -(-problem.size // THREADS)
    return lambda: integrate[blocks, THREADS](on.x, on.y, on.z)


def njit(problem: Lorenz, on: SimpleNamespace) -> Callable[[], None]:
    """Starts in parallel."""
    from numba import njit, prange

    advance = njit(fastmath=True)(step)

    @njit(parallel=True, fastmath=True)
    def integrate(x, y, z):
        for i in prange(x.size):
            u, v, w = x[i], y[i], z[i]
            for _ in range(STEPS):
                u, v, w = advance(u, v, w)
            x[i], y[i], z[i] = u, v, w

    return lambda: integrate(on.x, on.y, on.z)


BENCHMARK = Benchmark(
    name="integration",
    description="the Lorenz equations, 256K starts, 100 steps of Heun's method, float32",
    peer="njit-parallel",
    scale=1e3,
    unit="ms",
    implementations=implementations("integration", Lorenz, hip=hip, njit=njit, peers=OPENCL),
    aim=1.3,
    unable=ONLY_OPENCL,
)
