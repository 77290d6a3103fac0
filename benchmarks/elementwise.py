"""A sum of two arrays, element by element, with the last index along each axis of the grid: bandwidth, as long as
neighbours in memory are together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace

import numpy as np

from benchmarks.case import Benchmark
from benchmarks.problem import ONLY_OPENCL, OPENCL, Problem, implementations

BLOCK, BLOCK_3D = (16, 16), (8, 8, 4)


class Plane(Problem):
    """4096 by 4096 float32."""

    outputs = ("total",)
    quick, whole = (48, 80), (4096, 4096)

    def __init__(self, quick: bool) -> None:
        self.shape = self.quick if quick else self.whole
        rng = np.random.default_rng(7)
        self.arrays = {name: rng.random(self.shape, dtype=np.float32) for name in ("left", "right")}
        self.arrays["total"] = np.zeros(self.shape, np.float32)

    def verify(self, results: Mapping[str, np.ndarray]) -> None:
        np.testing.assert_array_equal(results["total"], self.arrays["left"] + self.arrays["right"])


class Space(Plane):
    """256 by 256 by 256 float32."""

    quick, whole = (8, 12, 20), (256, 256, 256)  # type: ignore[assignment]


def _blocks(extents: tuple[int, ...], block: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(-(-extent // threads) for extent, threads in zip(extents, block, strict=True))


def rows(problem: Plane, on: SimpleNamespace) -> Callable[[], None]:
    """``i, j = hip.grid(2)``, as in Numba's manual: the last index is that along y."""
    from numba import hip

    @hip.jit
    def add(left, right, total):
        i, j = hip.grid(2)
        if i < total.shape[0] and j < total.shape[1]:
            total[i, j] = left[i, j] + right[i, j]

    grid = _blocks(problem.shape, BLOCK)
    return lambda: add[grid, BLOCK](on.left, on.right, on.total)


def columns(problem: Plane, on: SimpleNamespace) -> Callable[[], None]:
    """``j, i = hip.grid(2)``, which GPUs prefer: the last index is that along x."""
    from numba import hip

    @hip.jit
    def add(left, right, total):
        j, i = hip.grid(2)
        if i < total.shape[0] and j < total.shape[1]:
            total[i, j] = left[i, j] + right[i, j]

    grid = _blocks(problem.shape[::-1], BLOCK)
    return lambda: add[grid, BLOCK](on.left, on.right, on.total)


def space(problem: Space, on: SimpleNamespace) -> Callable[[], None]:
    """``i, j, k = hip.grid(3)``: the last index is that along z."""
    from numba import hip

    @hip.jit
    def add(left, right, total):
        i, j, k = hip.grid(3)
        if i < total.shape[0] and j < total.shape[1] and k < total.shape[2]:
            total[i, j, k] = left[i, j, k] + right[i, j, k]

    grid = _blocks(problem.shape, BLOCK_3D)
    return lambda: add[grid, BLOCK_3D](on.left, on.right, on.total)


def njit(problem: Plane, on: SimpleNamespace) -> Callable[[], None]:
    """Rows in parallel."""
    from numba import njit, prange

    @njit(parallel=True)
    def add(left, right, total):
        for i in prange(total.shape[0]):
            for j in range(total.shape[1]):
                total[i, j] = left[i, j] + right[i, j]

    return lambda: add(on.left, on.right, on.total)


def njit_space(problem: Space, on: SimpleNamespace) -> Callable[[], None]:
    """Planes in parallel."""
    from numba import njit, prange

    @njit(parallel=True)
    def add(left, right, total):
        for i in prange(total.shape[0]):
            for j in range(total.shape[1]):
                for k in range(total.shape[2]):
                    total[i, j, k] = left[i, j, k] + right[i, j, k]

    return lambda: add(on.left, on.right, on.total)


def _benchmark(name: str, description: str, problem: Callable[[bool], Problem], hip: object, njit: object) -> Benchmark:
    made = implementations(name.replace("-", "_"), problem, hip=hip, njit=njit, peers=OPENCL)  # type: ignore[arg-type]
    return Benchmark(
        name=name, description=description, peer="njit-parallel", scale=1e3, unit="ms", implementations=made,
        aim=1.3, unable=ONLY_OPENCL,
    )  # fmt: skip


ROWS = _benchmark("elementwise-ij", "i, j = hip.grid(2), 4096 x 4096 float32", Plane, rows, njit)
COLUMNS = _benchmark("elementwise-ji", "j, i = hip.grid(2), 4096 x 4096 float32", Plane, columns, njit)
SPACE = _benchmark("elementwise-ijk", "i, j, k = hip.grid(3), 256 x 256 x 256 float32", Space, space, njit_space)
