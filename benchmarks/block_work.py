"""What blocks compute together: the rows of a sparse matrix, and a scan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace

import numpy as np

from benchmarks.case import Benchmark
from benchmarks.problem import ONLY_OPENCL, OPENCL, Problem, implementations

ROW_THREADS = 64
SCAN_THREADS = 256


class Sparse(Problem):
    """7000 rows of 112 float64 each."""

    outputs = ("product",)

    def __init__(self, quick: bool) -> None:
        self.rows, filled = (40, 12) if quick else (7000, 112)
        rng = np.random.default_rng(15)
        self.arrays = {
            "values": rng.random(self.rows * filled), "columns": rng.integers(0, self.rows, self.rows * filled),
            "starts": np.arange(0, self.rows * filled + 1, filled), "vector": rng.random(self.rows),
            "product": np.zeros(self.rows),
        }  # fmt: skip

    def verify(self, results: Mapping[str, np.ndarray]) -> None:
        terms = self.arrays["values"] * self.arrays["vector"][self.arrays["columns"]]
        np.testing.assert_allclose(results["product"], terms.reshape(self.rows, -1).sum(axis=1), rtol=1e-10)


class Numbers(Problem):
    """4M int32, and the sum of those before each."""

    outputs = ("before",)

    def __init__(self, quick: bool) -> None:
        self.size = 2**12 if quick else 2**22
        self.blocks = self.size // SCAN_THREADS
        numbers = np.random.default_rng(16).integers(0, 9, self.size, np.int32)
        self.arrays = {"numbers": numbers, "before": np.zeros_like(numbers), "sums": np.zeros(self.blocks, np.int32)}

    def verify(self, results: Mapping[str, np.ndarray]) -> None:
        numbers = self.arrays["numbers"]
        np.testing.assert_array_equal(results["before"], np.cumsum(numbers, dtype=np.int32) - numbers)


def multiply(problem: Sparse, on: SimpleNamespace) -> Callable[[], None]:
    """A block for each row, whose threads add up in shared memory."""
    from numba import float64, hip

    @hip.jit(fastmath=True)
    def product_of_row(values, columns, starts, vector, product):
        shared = hip.shared.array(ROW_THREADS, float64)
        row, thread = hip.blockIdx.x, hip.threadIdx.x
        total = 0.0
        for place in range(starts[row] + thread, starts[row + 1], hip.blockDim.x):
            total += values[place] * vector[columns[place]]
        shared[thread] = total
        hip.syncthreads()
        half = hip.blockDim.x // 2
        while half > 0:
            if thread < half:
                shared[thread] += shared[thread + half]
            hip.syncthreads()
            half //= 2
        if thread == 0:
            product[row] = shared[0]

    return lambda: product_of_row[problem.rows, ROW_THREADS](on.values, on.columns, on.starts, on.vector, on.product)


def njit_multiply(problem: Sparse, on: SimpleNamespace) -> Callable[[], None]:
    """Rows in parallel."""
    from numba import njit, prange

    @njit(parallel=True, fastmath=True)
    def multiplied(values, columns, starts, vector, product):
        for row in prange(product.size):
            total = 0.0
            for place in range(starts[row], starts[row + 1]):
                total += values[place] * vector[columns[place]]
            product[row] = total

    return lambda: multiplied(on.values, on.columns, on.starts, on.vector, on.product)


def scan(problem: Numbers, on: SimpleNamespace) -> Callable[[], None]:
    """Blelloch's scan in each block, the sums of blocks one after another, and their addition."""
    from numba import hip, int32

    @hip.jit
    def scan_blocks(numbers, before, sums):
        shared = hip.shared.array(SCAN_THREADS, int32)
        i, thread = hip.grid(1), hip.threadIdx.x
        shared[thread] = numbers[i]
        step = 1
        while step < SCAN_THREADS:
            hip.syncthreads()
            at = (thread + 1) * step * 2 - 1
            if at < SCAN_THREADS:
                shared[at] += shared[at - step]
            step *= 2
        hip.syncthreads()
        if thread == 0:
            sums[hip.blockIdx.x] = shared[SCAN_THREADS - 1]
            shared[SCAN_THREADS - 1] = 0
        while step > 1:
            step //= 2
            hip.syncthreads()
            at = (thread + 1) * step * 2 - 1
            if at < SCAN_THREADS:
                left = shared[at - step]
                shared[at - step] = shared[at]
                shared[at] += left
        hip.syncthreads()
        before[i] = shared[thread]

    @hip.jit
    def scan_sums(sums):
        total = int32(0)
        for block in range(sums.size):
            own = sums[block]
            sums[block] = total
            total += own

    @hip.jit
    def add_sums(before, sums):
        before[hip.grid(1)] += sums[hip.blockIdx.x]

    def launch() -> None:
        scan_blocks[problem.blocks, SCAN_THREADS](on.numbers, on.before, on.sums)
        scan_sums[1, 1](on.sums)
        add_sums[problem.blocks, SCAN_THREADS](on.before, on.sums)

    return launch


def njit_scan(problem: Numbers, on: SimpleNamespace) -> Callable[[], None]:
    """A part for each thread: its sum first, then its scan from the sum of the parts before."""
    from numba import get_num_threads, njit, prange

    @njit(parallel=True)
    def scanned(numbers, before):
        parts = get_num_threads()
        each = (numbers.size + parts - 1) // parts
        starts = np.zeros(parts + 1, np.int32)
        for part in prange(parts):
            starts[part + 1] = numbers[part * each : (part + 1) * each].sum()
        for part in range(parts):
            starts[part + 1] += starts[part]
        for part in prange(parts):
            total = starts[part]
            for i in range(part * each, min((part + 1) * each, numbers.size)):
                before[i] = total
                total += numbers[i]

    return lambda: scanned(on.numbers, on.before)


SPARSE = Benchmark(
    name="sparse-rows",
    description="a sparse matrix of 7000 x 112 float64 times a vector, a block for each row",
    peer="njit-parallel",
    scale=1e3,
    unit="ms",
    implementations=implementations("sparse_rows", Sparse, hip=multiply, njit=njit_multiply, peers=OPENCL),
    aim=1.3,
    unable=ONLY_OPENCL,
)
SCAN = Benchmark(
    name="scan",
    description="sums of all before, of 4M int32, by Blelloch's scan in blocks of 256",
    peer="njit-parallel",
    scale=1e3,
    unit="ms",
    implementations=implementations("scan", Numbers, hip=scan, njit=njit_scan, peers=OPENCL),
    aim=1.3,
    unable=ONLY_OPENCL,
)
