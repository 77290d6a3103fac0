"""Atomic operations of all threads on one element: a sum, and places in a list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace

import numpy as np

from benchmarks.case import Benchmark
from benchmarks.problem import UNWRITTEN, Problem, implementations

THREADS = 256
LIMIT = np.float32(0.75)


class Total(Problem):
    """4M float32."""

    outputs = ("total",)

    def __init__(self, quick: bool) -> None:
        self.size = 2**12 if quick else 2**22
        self.blocks = -(-self.size // THREADS)
        values = np.random.default_rng(9).random(self.size, dtype=np.float32)
        self.arrays = {"values": values, "total": np.zeros(1, np.float64)}

    def verify(self, results: Mapping[str, np.ndarray]) -> None:
        np.testing.assert_allclose(results["total"], self.arrays["values"].sum(dtype=np.float64), rtol=1e-9)


class Selection(Total):
    """A quarter of 4M float32, in any order."""

    outputs = ("found", "count")

    def __init__(self, quick: bool) -> None:
        super().__init__(quick)
        self.arrays = {
            "values": self.arrays["values"], "found": np.zeros(self.size, np.float32), "count": np.zeros(1, np.int64),
        }  # fmt: skip

    def verify(self, results: Mapping[str, np.ndarray]) -> None:
        values = self.arrays["values"]
        wanted = np.sort(values[values > LIMIT])
        assert results["count"][0] == wanted.size, f"{results['count'][0]} instead of {wanted.size} were counted"
        np.testing.assert_array_equal(np.sort(results["found"][: wanted.size]), wanted)


def add_up(problem: Total, on: SimpleNamespace) -> Callable[[], None]:
    """Each thread adds its number to the total."""
    from numba import hip

    @hip.jit
    def clear(total):
        total[0] = 0

    @hip.jit
    def add(values, total):
        i = hip.grid(1)
        if i < values.size:
            hip.atomic.add(total, 0, values[i])

    def launch() -> None:
        clear[1, 1](on.total)
        add[problem.blocks, THREADS](on.values, on.total)

    return launch


def njit_add_up(problem: Total, on: SimpleNamespace) -> Callable[[], None]:
    """A loop with a sum."""
    from numba import njit, prange

    @njit(parallel=True, fastmath=True)
    def add(values, total):
        found = 0.0
        for i in prange(values.size):
            found += values[i]
        total[0] = found

    return lambda: add(on.values, on.total)


def select(problem: Selection, on: SimpleNamespace) -> Callable[[], None]:
    """Each thread with a number above the limit takes the next place."""
    from numba import hip

    @hip.jit
    def clear(count):
        count[0] = 0

    @hip.jit
    def choose(values, found, count):
        i = hip.grid(1)
        if i < values.size and values[i] > LIMIT:
            found[hip.atomic.add(count, 0, 1)] = values[i]

    def launch() -> None:
        clear[1, 1](on.count)
        choose[problem.blocks, THREADS](on.values, on.found, on.count)

    return launch


def njit_select(problem: Selection, on: SimpleNamespace) -> Callable[[], None]:
    """A part for each thread, counted first and written behind those of the threads before."""
    from numba import get_num_threads, njit, prange

    @njit(parallel=True)
    def choose(values, found, count):
        parts = get_num_threads()
        ends = np.zeros(parts + 1, np.int64)
        each = (values.size + parts - 1) // parts
        for part in prange(parts):
            own = 0
            for i in range(part * each, min((part + 1) * each, values.size)):
                own += values[i] > LIMIT
            ends[part + 1] = own
        for part in range(parts):
            ends[part + 1] += ends[part]
        for part in prange(parts):
            place = ends[part]
            for i in range(part * each, min((part + 1) * each, values.size)):
                if values[i] > LIMIT:
                    found[place] = values[i]
                    place += 1
        count[0] = ends[parts]

    return lambda: choose(on.values, on.found, on.count)


TOTAL = Benchmark(
    name="atomic-sum",
    description="sum of 4M float32 by atomic additions to one float64",
    peer="njit-parallel",
    scale=1e3,
    unit="ms",
    implementations=implementations("atomic-sum", Total, hip=add_up, njit=njit_add_up, peers=()),
    aim=1.3,
    unable=UNWRITTEN,
)
SELECTION = Benchmark(
    name="atomic-places",
    description="those of 4M float32 above a limit, at places that an atomic counter gives",
    peer="njit-parallel",
    scale=1e3,
    unit="ms",
    implementations=implementations("atomic-places", Selection, hip=select, njit=njit_select, peers=()),
    aim=1.3,
    unable=UNWRITTEN,
)
