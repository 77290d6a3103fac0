"""Sums of 16M numbers by two kernels: a tree in shared memory with a barrier at each step, and shuffles in a wave.

Either kernel writes one partial sum for each block or wave, and is launched again on these until one is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace

import numpy as np

from benchmarks.case import Benchmark
from benchmarks.environments import ON_GPUS, REQUIREMENTS
from benchmarks.problem import Problem, implementations

THREADS = 256
SMALLEST_WAVE = 16
ZERO = np.float32(0)
ALL_LANES = -1


class Sum(Problem):
    """16M float32. Partial sums go back and forth between two arrays; the sum is element 0 of *total*."""

    outputs = ("total",)
    full = 2**24

    def __init__(self, quick: bool) -> None:
        self.size = min(2**14, self.full) if quick else self.full
        self.arrays = {
            "values": np.random.default_rng(6).random(self.size, dtype=np.float32),
            "first": np.zeros(self.size // SMALLEST_WAVE, np.float32),
            "second": np.zeros(self.size // SMALLEST_WAVE, np.float32),
            "total": np.zeros(1, np.float32),
        }

    def verify(self, results: Mapping[str, np.ndarray]) -> None:
        np.testing.assert_allclose(results["total"], self.arrays["values"].sum(dtype=np.float64), rtol=1e-5)

    def steps(self, on: SimpleNamespace, factor: int) -> Iterator[tuple[object, int, object]]:
        """From where, how many and to where, for kernels that make one number of *factor* numbers."""
        source, count = on.values, self.size
        spare = [on.first, on.second]
        while count > 1:
            left = -(-count // factor)
            target = on.total if left == 1 else spare[0]
            yield source, count, target
            source, count = target, left
            spare.reverse()


class FewNumbers(Sum):
    """So few that what counts is how soon the sum is there."""

    full = 1000


class TwoMillion(Sum):
    """So many as the caches of a large processor hold."""

    full = 2_000_000


def tree(problem: Sum, on: SimpleNamespace) -> Callable[[], None]:
    """One thread for each number; half of the threads of a block add at each step."""
    from numba import float32, hip

    @hip.jit(fastmath=True)
    def reduce(source, count, target):
        tile = hip.shared.array(THREADS, float32)
        t, i = hip.threadIdx.x, hip.grid(1)
        tile[t] = source[i] if i < count else ZERO
        hip.syncthreads()
        half = THREADS // 2
        while half > 0:
            if t < half:
                tile[t] += tile[t + half]
            hip.syncthreads()
            half //= 2
        if t == 0:
            target[hip.blockIdx.x] = tile[0]

    steps = list(problem.steps(on, THREADS))

    def launch() -> None:
        for source, count, target in steps:
            reduce[-(-count // THREADS), THREADS](source, count, target)

    return launch


def shuffles(problem: Sum, on: SimpleNamespace) -> Callable[[], None]:
    """One thread for each number; the lanes of a wave add what others hold."""
    from numba import hip

    @hip.jit(fastmath=True)
    def reduce(source, count, target):
        i = hip.grid(1)
        total = source[i] if i < count else ZERO
        step = hip.warpsize // 2
        while step > 0:
            total += hip.shfl_down_sync(ALL_LANES, total, step)
            step //= 2
        if hip.laneid == 0 and i < count:
            target[i // hip.warpsize] = total

    steps = list(problem.steps(on, hip.get_current_device().wave_size))

    def launch() -> None:
        for source, count, target in steps:
            reduce[-(-count // THREADS), THREADS](source, count, target)

    return launch


def reduce(problem: Sum, on: SimpleNamespace) -> Callable[[], None]:
    """`hip.reduce`, which chooses kernels and shapes itself."""
    from numba import hip

    total_of = hip.reduce(lambda a, b: a + b)
    return lambda: total_of(on.values, res=on.total)


def njit(problem: Sum, on: SimpleNamespace) -> Callable[[], None]:
    """One loop that adds to one variable."""
    from numba import njit, prange

    @njit(parallel=True, fastmath=True)
    def total_of(values):
        total = ZERO
        for i in prange(values.size):
            total += values[i]
        return total

    def launch() -> None:
        on.total[0] = total_of(on.values)

    return launch


NO_GROUPS = {
    "taichi": "shared arrays, barriers and shuffles are for its GPU back ends only",
    "warp": "on a processor its blocks have one thread",
}

TREE = Benchmark(
    name="tree-reduction",
    description="sum of 16M float32, a tree in shared memory for each 256 of them",
    peer="njit-parallel",
    scale=1e3,
    unit="ms",
    implementations=implementations(
        "tree_reduction", Sum, hip=tree, njit=njit, peers=("hipcc", "opencl-intel", "opencl-pocl")
    ),
    aim=2.5,
    unable=NO_GROUPS,
)

SHUFFLES = Benchmark(
    name="warp-reduction",
    description="sum of 16M float32 by shuffles in each wave",
    peer="njit-parallel",
    scale=1e3,
    unit="ms",
    implementations=implementations(
        "warp_reduction",
        Sum,
        hip=shuffles,
        njit=njit,
        peers=("hipcc", "opencl-intel", "opencl-pocl"),
    ),
    unable=NO_GROUPS,
)

REDUCE, REDUCE_FEW = (
    Benchmark(
        name=name,
        description=f"hip.reduce of {size} float32",
        peer="njit-parallel",
        scale=1e6,
        unit="us",
        implementations=implementations(name, problem, hip=reduce, njit=njit, peers=()),
        aim=aim,
        unable=dict.fromkeys((*REQUIREMENTS, *ON_GPUS), "has no function of its own for it"),
    )
    for name, size, problem, aim in (
        ("reduce", "two million", TwoMillion, 1.2),
        ("reduce-few", "1,000", FewNumbers, None),
    )
)
