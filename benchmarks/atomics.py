"""Atomic operations of all threads on one element, a sum and places in a list, and on sums of clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace

import numpy as np

from benchmarks.case import Benchmark
from benchmarks.problem import ONLY_OPENCL, OPENCL, Problem, implementations

THREADS = 256
LIMIT = np.float32(0.75)
CLUSTERS = 64


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


class Clusters(Problem):
    """1M points of two float32, each in one of 64 clusters."""

    outputs = ("sums", "counts")

    def __init__(self, quick: bool) -> None:
        self.size = 2**12 if quick else 2**20
        self.blocks = -(-self.size // THREADS)
        generator = np.random.default_rng(10)
        self.arrays = {
            "points": generator.random((self.size, 2), dtype=np.float32),
            "labels": generator.integers(0, CLUSTERS, self.size).astype(np.int32),
            "sums": np.zeros((CLUSTERS, 2), np.float32), "counts": np.zeros(CLUSTERS, np.int32),
        }  # fmt: skip

    def verify(self, results: Mapping[str, np.ndarray]) -> None:
        points, labels = self.arrays["points"], self.arrays["labels"]
        np.testing.assert_array_equal(results["counts"], np.bincount(labels, minlength=CLUSTERS))
        for axis in range(2):
            expected = np.bincount(labels, points[:, axis].astype(np.float64), minlength=CLUSTERS)
            np.testing.assert_allclose(results["sums"][:, axis], expected, rtol=1e-4)


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


def add_to_clusters(problem: Clusters, on: SimpleNamespace) -> Callable[[], None]:
    """Each thread adds its point to the sums of its cluster, in global memory."""
    from numba import hip

    @hip.jit
    def clear(sums, counts):
        i = hip.grid(1)
        if i < counts.size:
            sums[i, 0] = sums[i, 1] = 0
            counts[i] = 0

    @hip.jit
    def add(points, labels, sums, counts):
        i = hip.grid(1)
        if i < labels.size:
            cluster = labels[i]
            hip.atomic.add(sums, (cluster, 0), points[i, 0])
            hip.atomic.add(sums, (cluster, 1), points[i, 1])
            hip.atomic.add(counts, cluster, 1)

    def launch() -> None:
        clear[1, CLUSTERS](on.sums, on.counts)
        add[problem.blocks, THREADS](on.points, on.labels, on.sums, on.counts)

    return launch


def njit_add_to_clusters(problem: Clusters, on: SimpleNamespace) -> Callable[[], None]:
    """Sums of each thread, which are added up in the end."""
    from numba import get_num_threads, njit, prange

    @njit(parallel=True)
    def add(points, labels, sums, counts):
        parts = get_num_threads()
        own_sums = np.zeros((parts, CLUSTERS, 2), np.float32)
        own_counts = np.zeros((parts, CLUSTERS), np.int32)
        each = (labels.size + parts - 1) // parts
        for part in prange(parts):
            for i in range(part * each, min((part + 1) * each, labels.size)):
                cluster = labels[i]
                own_sums[part, cluster, 0] += points[i, 0]
                own_sums[part, cluster, 1] += points[i, 1]
                own_counts[part, cluster] += 1
        sums[:] = 0
        counts[:] = 0
        for part in range(parts):
            sums += own_sums[part]
            counts += own_counts[part]

    return lambda: add(on.points, on.labels, on.sums, on.counts)


TOTAL = Benchmark(
    name="atomic-sum",
    description="sum of 4M float32 by atomic additions to one float64",
    peer="njit-parallel",
    scale=1e3,
    unit="ms",
    implementations=implementations("atomic_sum", Total, hip=add_up, njit=njit_add_up, peers=OPENCL),
    aim=1.3,
    unable=ONLY_OPENCL,
)
SELECTION = Benchmark(
    name="atomic-places",
    description="those of 4M float32 above a limit, at places that an atomic counter gives",
    peer="njit-parallel",
    scale=1e3,
    unit="ms",
    implementations=implementations("atomic_places", Selection, hip=select, njit=njit_select, peers=OPENCL),
    aim=1.3,
    unable=ONLY_OPENCL,
)
CLUSTER_SUMS = Benchmark(
    name="atomic-clusters",
    description="sums and counts of 1M points in 64 clusters, by atomic additions to global memory",
    peer="njit-parallel",
    scale=1e3,
    unit="ms",
    implementations=implementations(
        "atomic_clusters", Clusters, hip=add_to_clusters, njit=njit_add_to_clusters, peers=OPENCL
    ),
    aim=1.3,
    unable=ONLY_OPENCL,
)
