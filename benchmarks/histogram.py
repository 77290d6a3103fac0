"""Counts of 16M bytes: atomic operations on counters in shared memory, then in global memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace

import numpy as np

from benchmarks.case import Benchmark
from benchmarks.problem import Problem, implementations

BINS = THREADS = 256
BLOCKS = 256


class Histogram(Problem):
    """16M uint8 in 256 bins of int32. What is counted adds up, so a launch begins with making the bins zero."""

    outputs = ("counts",)

    def __init__(self, quick: bool) -> None:
        self.size = 2**16 if quick else 2**24
        bell = np.random.default_rng(7).normal(128, 40, self.size)
        self.arrays = {"values": np.clip(bell, 0, 255).astype(np.uint8), "counts": np.zeros(BINS, np.int32)}

    def verify(self, results: Mapping[str, np.ndarray]) -> None:
        np.testing.assert_array_equal(results["counts"], np.bincount(self.arrays["values"], minlength=BINS))


def hip(problem: Histogram, on: SimpleNamespace) -> Callable[[], None]:
    """Blocks that count every so many numbers in bins of their own, and then add these to everybody's."""
    from numba import hip, int32

    @hip.jit
    def clear(counts):
        counts[hip.grid(1)] = 0

    @hip.jit
    def count(values, counts):
        bins = hip.shared.array(BINS, int32)
        t = hip.threadIdx.x
        bins[t] = 0
        hip.syncthreads()
        for i in range(hip.grid(1), values.size, hip.gridsize(1)):
            hip.atomic.add(bins, values[i], 1)
        hip.syncthreads()
        hip.atomic.add(counts, t, bins[t])

    def launch() -> None:
        clear[1, BINS](on.counts)
        count[BLOCKS, THREADS](on.values, on.counts)

    return launch


def njit(problem: Histogram, on: SimpleNamespace) -> Callable[[], None]:
    """A part of the numbers, and bins of its own, for each thread."""
    from numba import get_num_threads, njit, prange

    @njit(parallel=True)
    def count(values, counts):
        parts = get_num_threads()
        own = np.zeros((parts, BINS), np.int32)
        each = (values.size + parts - 1) // parts
        for part in prange(parts):
            for i in range(part * each, min((part + 1) * each, values.size)):
                own[part, values[i]] += 1
        counts[:] = own.sum(axis=0)

    return lambda: count(on.values, on.counts)


BENCHMARK = Benchmark(
    name="histogram",
    description="16M uint8 in 256 bins, atomics in shared and then in global memory",
    peer="njit-parallel",
    scale=1e3,
    unit="ms",
    implementations=implementations(
        "histogram", Histogram, hip=hip, njit=njit, peers=("hipcc", "opencl-intel", "opencl-pocl")
    ),
    aim=1.3,
    unable={
        "taichi": "shared arrays and barriers are for its GPU back ends only",
        "warp": "on a processor its blocks have one thread, and no shared arrays are written by hand",
    },
)
