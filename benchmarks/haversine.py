"""Distances on a sphere in float64: functions of math for each thread, and little memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import SimpleNamespace

import numpy as np

from benchmarks.case import Benchmark
from benchmarks.problem import ONLY_OPENCL, OPENCL, Problem, implementations

THREADS = 256
DIAMETER = 12742.0
INPUTS = ("lat1", "lon1", "lat2", "lon2")


def distance(lat1, lon1, lat2, lon2):
    """Kilometres between two places, given in radians; compiled for either side."""
    across, along = math.sin((lat2 - lat1) / 2), math.sin((lon2 - lon1) / 2)
    return DIAMETER * math.asin(math.sqrt(across * across + math.cos(lat1) * math.cos(lat2) * along * along))


class Places(Problem):
    """1M pairs of places."""

    outputs = ("found",)

    def __init__(self, quick: bool) -> None:
        self.size = 2**10 if quick else 2**20
        rng = np.random.default_rng(14)
        self.arrays = {name: rng.uniform(-1.5, 1.5, self.size) for name in INPUTS}
        self.arrays["found"] = np.zeros(self.size)

    def verify(self, results: Mapping[str, np.ndarray]) -> None:
        lat1, lon1, lat2, lon2 = (self.arrays[name] for name in INPUTS)
        squared = np.sin((lat2 - lat1) / 2) ** 2 + np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
        np.testing.assert_allclose(results["found"], DIAMETER * np.arcsin(np.sqrt(squared)), rtol=1e-12)


def hip(problem: Places, on: SimpleNamespace) -> Callable[[], None]:
    """One thread for each pair."""
    from numba import hip

    between = hip.jit(device=True, fastmath=True)(distance)

    @hip.jit(fastmath=True)
    def measure(lat1, lon1, lat2, lon2, found):
        i = hip.grid(1)
        if i < found.size:
            found[i] = between(lat1[i], lon1[i], lat2[i], lon2[i])

    blocks = -(-problem.size // THREADS)
    return lambda: measure[blocks, THREADS](on.lat1, on.lon1, on.lat2, on.lon2, on.found)


def njit(problem: Places, on: SimpleNamespace) -> Callable[[], None]:
    """Pairs in parallel."""
    from numba import njit, prange

    between = njit(fastmath=True)(distance)

    @njit(parallel=True, fastmath=True)
    def measure(lat1, lon1, lat2, lon2, found):
        for i in prange(found.size):
            found[i] = between(lat1[i], lon1[i], lat2[i], lon2[i])

    return lambda: measure(on.lat1, on.lon1, on.lat2, on.lon2, on.found)


BENCHMARK = Benchmark(
    name="haversine",
    description="distances of 1M pairs of places on a sphere, float64",
    peer="njit-parallel",
    scale=1e3,
    unit="ms",
    implementations=implementations("haversine", Places, hip=hip, njit=njit, peers=OPENCL),
    aim=1.3,
    unable=ONLY_OPENCL,
)
