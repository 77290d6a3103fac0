"""Rounds until a point of the plane leaves the disc: loops whose lengths differ from thread to thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace

import numpy as np

from benchmarks.case import Benchmark
from benchmarks.problem import PEERS, Problem, implementations

BLOCK = (32, 8)
ROUNDS = 256
X0, Y0, WIDTH = np.float32(-2.0), np.float32(-1.25), np.float32(2.5)
ZERO, FOUR = np.float32(0), np.float32(4)


class Mandelbrot(Problem):
    """A square of 1024 by 1024 points, at most 256 rounds each."""

    outputs = ("image",)

    def __init__(self, quick: bool) -> None:
        self.size = 64 if quick else 1024
        self.step = np.float32(WIDTH / self.size)
        self.arrays = {"image": np.zeros((self.size, self.size), np.int32)}

    def verify(self, results: Mapping[str, np.ndarray]) -> None:
        # The orbits are chaotic at the border, so a product and sum rounded once changes the rounds of a few points.
        wanted = self._count()
        differing = np.mean(results["image"] != wanted)
        assert differing < 0.02, f"{differing:.1%} of the points differ"
        np.testing.assert_allclose(results["image"].mean(), wanted.mean(), rtol=0.01)

    def _count(self) -> np.ndarray:
        axis = np.arange(self.size, dtype=np.float32) * self.step
        cx, cy = (grid.ravel() for grid in np.meshgrid(X0 + axis, Y0 + axis))
        rounds = np.zeros(cx.size, np.int32)
        running = np.arange(cx.size)
        x, y = np.zeros_like(cx), np.zeros_like(cy)
        for _ in range(ROUNDS):
            stay = x * x + y * y < 4
            running, x, y, cx, cy = (values[stay] for values in (running, x, y, cx, cy))
            x, y = x * x - y * y + cx, 2 * x * y + cy
            rounds[running] += 1
        return rounds.reshape(self.size, self.size)


def rounds_of(cx, cy):
    """How many rounds the orbit of a point stays in the disc; compiled for either side."""
    x = y = ZERO
    count = np.int32(0)
    while count < ROUNDS and x * x + y * y < FOUR:
        x, y = x * x - y * y + cx, (x + x) * y + cy
        count += np.int32(1)
    return count


def hip(problem: Mandelbrot, on: SimpleNamespace) -> Callable[[], None]:
    """One thread for each point."""
    from numba import hip

    count = hip.jit(device=True, fastmath=True)(rounds_of)

    @hip.jit(fastmath=True)
    def draw(image, step):
        j, i = hip.grid(2)
        if i < image.shape[0] and j < image.shape[1]:
            image[i, j] = count(X0 + np.float32(j) * step, Y0 + np.float32(i) * step)

    grid = (-(-problem.size // BLOCK[0]), -(-problem.size // BLOCK[1]))
    return lambda: draw[grid, BLOCK](on.image, problem.step)


def njit(problem: Mandelbrot, on: SimpleNamespace) -> Callable[[], None]:
    """Two loops over the points, rows in parallel."""
    from numba import njit, prange

    count = njit(fastmath=True)(rounds_of)

    @njit(parallel=True, fastmath=True)
    def draw(image, step):
        for i in prange(image.shape[0]):
            for j in range(image.shape[1]):
                image[i, j] = count(X0 + np.float32(j) * step, Y0 + np.float32(i) * step)

    return lambda: draw(on.image, problem.step)


BENCHMARK = Benchmark(
    name="mandelbrot",
    description="1024 x 1024 points, at most 256 rounds, float32",
    peer="njit-parallel",
    scale=1e3,
    unit="ms",
    implementations=implementations("mandelbrot", Mandelbrot, hip=hip, njit=njit, peers=tuple(PEERS)),
    aim=0.12,
)
