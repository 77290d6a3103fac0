"""Accelerations of bodies that attract each other, every pair computed: arithmetic on values that all threads share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import SimpleNamespace

import numpy as np

from benchmarks.case import Benchmark
from benchmarks.problem import PEERS, Problem, implementations

THREADS = 128
SOFTENING = np.float32(1e-3)
ZERO, ONE = np.float32(0), np.float32(1)


class Bodies(Problem):
    """4096 bodies in a unit cube."""

    outputs = ("ax", "ay", "az")

    def __init__(self, quick: bool) -> None:
        rng = np.random.default_rng(3)
        self.size = 256 if quick else 4096
        self.arrays = {name: rng.random(self.size, dtype=np.float32) for name in ("x", "y", "z", "mass")}
        self.arrays |= {name: np.zeros(self.size, np.float32) for name in self.outputs}

    def verify(self, results: Mapping[str, np.ndarray]) -> None:
        points = np.stack([self.arrays[name] for name in "xyz"]).astype(np.float64)
        masses = self.arrays["mass"].astype(np.float64)
        wanted = np.empty_like(points)
        for i in range(self.size):
            away = points - points[:, i : i + 1]
            wanted[:, i] = (away * masses * ((away**2).sum(axis=0) + float(SOFTENING)) ** -1.5).sum(axis=1)
        scale = np.abs(wanted).max()
        for name, axis in zip(self.outputs, wanted, strict=True):
            np.testing.assert_allclose(results[name] / scale, axis / scale, atol=2e-5)


def hip(problem: Bodies, on: SimpleNamespace) -> Callable[[], None]:
    """One thread for each body, with a loop over all of them."""
    from numba import hip

    @hip.jit(fastmath=True)
    def attract(x, y, z, mass, ax, ay, az):
        i = hip.grid(1)
        if i < x.size:
            xi, yi, zi = x[i], y[i], z[i]
            sx = sy = sz = ZERO
            for j in range(x.size):
                dx, dy, dz = x[j] - xi, y[j] - yi, z[j] - zi
                inverse = ONE / math.sqrt(dx * dx + dy * dy + dz * dz + SOFTENING)
                pull = mass[j] * inverse * inverse * inverse
                sx += dx * pull
                sy += dy * pull
                sz += dz * pull
            ax[i] = sx
            ay[i] = sy
            az[i] = sz

    blocks = -(-problem.size // THREADS)
    return lambda: attract[blocks, THREADS](on.x, on.y, on.z, on.mass, on.ax, on.ay, on.az)


def njit(problem: Bodies, on: SimpleNamespace) -> Callable[[], None]:
    """A loop over the bodies, in parallel, around a loop over the others."""
    from numba import njit, prange

    @njit(parallel=True, fastmath=True)
    def attract(x, y, z, mass, ax, ay, az):
        for i in prange(x.size):
            xi, yi, zi = x[i], y[i], z[i]
            sx = sy = sz = ZERO
            for j in range(x.size):
                dx, dy, dz = x[j] - xi, y[j] - yi, z[j] - zi
                inverse = ONE / math.sqrt(dx * dx + dy * dy + dz * dz + SOFTENING)
                pull = mass[j] * inverse * inverse * inverse
                sx += dx * pull
                sy += dy * pull
                sz += dz * pull
            ax[i] = sx
            ay[i] = sy
            az[i] = sz

    return lambda: attract(on.x, on.y, on.z, on.mass, on.ax, on.ay, on.az)


BENCHMARK = Benchmark(
    name="n-body",
    description="accelerations of 4096 bodies, all pairs, float32",
    peer="njit-parallel",
    scale=1e3,
    unit="ms",
    implementations=implementations("nbody", Bodies, hip=hip, njit=njit, peers=tuple(PEERS)),
    aim=1.05,
)
