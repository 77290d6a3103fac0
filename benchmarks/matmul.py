"""Products of matrices, by two kernels: one reads global memory only, the other goes through tiles in shared memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace

import numpy as np

from benchmarks.case import Benchmark
from benchmarks.problem import PEERS, Problem, implementations

TILE = 16
ZERO = np.float32(0)


class Product(Problem):
    """512 by 512 float32, ``c = a @ b``."""

    outputs = ("c",)

    def __init__(self, quick: bool) -> None:
        rng = np.random.default_rng(4)
        self.size = 64 if quick else 512
        self.arrays = {name: rng.random((self.size, self.size), dtype=np.float32) for name in "ab"}
        self.arrays["c"] = np.zeros((self.size, self.size), np.float32)

    def verify(self, results: Mapping[str, np.ndarray]) -> None:
        wanted = self.arrays["a"].astype(np.float64) @ self.arrays["b"].astype(np.float64)
        np.testing.assert_allclose(results["c"], wanted, rtol=1e-5)


def naive(problem: Product, on: SimpleNamespace) -> Callable[[], None]:
    """One thread for each element of the product."""
    from numba import hip

    @hip.jit(fastmath=True)
    def multiply(a, b, c):
        j, i = hip.grid(2)
        if i < c.shape[0] and j < c.shape[1]:
            total = ZERO
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
            c[i, j] = total

    blocks = -(-problem.size // TILE)
    return lambda: multiply[(blocks, blocks), (TILE, TILE)](on.a, on.b, on.c)


def tiled(problem: Product, on: SimpleNamespace) -> Callable[[], None]:
    """One thread for each element; blocks of 16 by 16 threads fill tiles together."""
    from numba import float32, hip

    @hip.jit(fastmath=True)
    def multiply(a, b, c):
        tile_a = hip.shared.array((TILE, TILE), float32)
        tile_b = hip.shared.array((TILE, TILE), float32)
        tx, ty = hip.threadIdx.x, hip.threadIdx.y
        j, i = hip.grid(2)
        total = ZERO
        for k in range(0, a.shape[1], TILE):
            tile_a[ty, tx] = a[i, k + tx]
            tile_b[ty, tx] = b[k + ty, j]
            hip.syncthreads()
            for inner in range(TILE):
                total += tile_a[ty, inner] * tile_b[inner, tx]
            hip.syncthreads()
        c[i, j] = total

    blocks = problem.size // TILE
    return lambda: multiply[(blocks, blocks), (TILE, TILE)](on.a, on.b, on.c)


def njit(problem: Product, on: SimpleNamespace) -> Callable[[], None]:
    """Three loops in the order that suits a processor: whole rows of *b* are added to rows of *c*."""
    from numba import njit, prange

    @njit(parallel=True, fastmath=True)
    def multiply(a, b, c):
        for i in prange(c.shape[0]):
            for j in range(c.shape[1]):
                c[i, j] = ZERO
            for k in range(a.shape[1]):
                scale = a[i, k]
                for j in range(c.shape[1]):
                    c[i, j] += scale * b[k, j]

    return lambda: multiply(on.a, on.b, on.c)


NAIVE = Benchmark(
    name="matmul-naive",
    description="512 x 512 float32, a thread for each element",
    peer="njit-parallel",
    scale=1e3,
    unit="ms",
    implementations=implementations("matmul_naive", Product, hip=naive, njit=njit, peers=tuple(PEERS)),
    aim=1.3,
)

TILED = Benchmark(
    name="matmul-tiled",
    description="512 x 512 float32, through 16 x 16 tiles in shared memory",
    peer="njit-parallel",
    scale=1e3,
    unit="ms",
    implementations=implementations(
        "matmul_tiled", Product, hip=tiled, njit=njit, peers=("hipcc", "opencl-intel", "opencl-pocl")
    ),
    aim=1.1,
    unable={
        "taichi": "shared arrays and barriers are for its GPU back ends only",
        "warp": "on a processor its blocks have one thread, and no shared arrays are written by hand",
    },
)
