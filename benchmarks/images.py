"""Images of bytes: grey of RGB, a blur of RGB, and medians that each thread sorts in an array of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace

import numpy as np

from benchmarks.case import Benchmark
from benchmarks.problem import ONLY_OPENCL, OPENCL, Problem, implementations

BLOCK = (32, 8)
RED, GREEN, BLUE = 77, 150, 29


class Image(Problem):
    """1080 rows of 1920 pixels."""

    def __init__(self, quick: bool) -> None:
        self.shape = (20, 36) if quick else (1080, 1920)
        self.grid = tuple(-(-extent // threads) for extent, threads in zip(self.shape[::-1], BLOCK, strict=True))
        colours = np.random.default_rng(17).integers(0, 256, (*self.shape, 3), np.uint8)
        self.arrays = {"colours": colours}


class Grey(Image):
    """What is grey of it."""

    outputs = ("grey",)

    def __init__(self, quick: bool) -> None:
        super().__init__(quick)
        self.arrays["grey"] = np.zeros(self.shape, np.uint8)

    def verify(self, results: Mapping[str, np.ndarray]) -> None:
        weighted = self.arrays["colours"].astype(np.int32) * (RED, GREEN, BLUE)
        np.testing.assert_array_equal(results["grey"], weighted.sum(axis=2) >> 8)


class Blur(Image):
    """Each colour blurred over three by three pixels."""

    outputs = ("blurred",)

    def __init__(self, quick: bool) -> None:
        super().__init__(quick)
        self.arrays["blurred"] = np.zeros_like(self.arrays["colours"])

    def verify(self, results: Mapping[str, np.ndarray]) -> None:
        wide = self.arrays["colours"].astype(np.int32)
        rows = wide[:-2] + 2 * wide[1:-1] + wide[2:]
        wanted = (rows[:, :-2] + 2 * rows[:, 1:-1] + rows[:, 2:]) >> 4
        np.testing.assert_array_equal(results["blurred"][1:-1, 1:-1], wanted)


class Medians(Problem):
    """400 rows of 600 float32."""

    outputs = ("medians",)

    def __init__(self, quick: bool) -> None:
        self.shape = (20, 36) if quick else (400, 600)
        self.grid = tuple(-(-extent // threads) for extent, threads in zip(self.shape[::-1], BLOCK, strict=True))
        pixels = np.random.default_rng(18).random(self.shape, dtype=np.float32)
        self.arrays = {"pixels": pixels, "medians": np.zeros_like(pixels)}

    def verify(self, results: Mapping[str, np.ndarray]) -> None:
        windows = np.lib.stride_tricks.sliding_window_view(self.arrays["pixels"], (3, 3))
        np.testing.assert_array_equal(results["medians"][1:-1, 1:-1], np.median(windows, axis=(2, 3)))


def grey(problem: Grey, on: SimpleNamespace) -> Callable[[], None]:
    """One thread for each pixel."""
    from numba import hip

    @hip.jit
    def mix(colours, grey):
        x, y = hip.grid(2)
        if y < grey.shape[0] and x < grey.shape[1]:
            grey[y, x] = (RED * colours[y, x, 0] + GREEN * colours[y, x, 1] + BLUE * colours[y, x, 2]) >> 8

    return lambda: mix[problem.grid, BLOCK](on.colours, on.grey)


def njit_grey(problem: Grey, on: SimpleNamespace) -> Callable[[], None]:
    """Rows in parallel."""
    from numba import njit, prange

    @njit(parallel=True)
    def mix(colours, grey):
        for y in prange(grey.shape[0]):
            for x in range(grey.shape[1]):
                grey[y, x] = (RED * colours[y, x, 0] + GREEN * colours[y, x, 1] + BLUE * colours[y, x, 2]) >> 8

    return lambda: mix(on.colours, on.grey)


def blur(problem: Blur, on: SimpleNamespace) -> Callable[[], None]:
    """One thread for each pixel, with a loop over its colours."""
    from numba import hip

    @hip.jit
    def smooth(colours, blurred):
        x, y = hip.grid(2)
        height, width = colours.shape[:2]
        if 0 < y < height - 1 and 0 < x < width - 1:
            for c in range(3):
                total = colours[y - 1, x - 1, c] + 2 * colours[y - 1, x, c] + colours[y - 1, x + 1, c]
                total += 2 * colours[y, x - 1, c] + 4 * colours[y, x, c] + 2 * colours[y, x + 1, c]
                total += colours[y + 1, x - 1, c] + 2 * colours[y + 1, x, c] + colours[y + 1, x + 1, c]
                blurred[y, x, c] = total >> 4

    return lambda: smooth[problem.grid, BLOCK](on.colours, on.blurred)


def njit_blur(problem: Blur, on: SimpleNamespace) -> Callable[[], None]:
    """Rows in parallel."""
    from numba import njit, prange

    @njit(parallel=True)
    def smooth(colours, blurred):
        height, width = colours.shape[:2]
        for y in prange(1, height - 1):
            for x in range(1, width - 1):
                for c in range(3):
                    total = colours[y - 1, x - 1, c] + 2 * colours[y - 1, x, c] + colours[y - 1, x + 1, c]
                    total += 2 * colours[y, x - 1, c] + 4 * colours[y, x, c] + 2 * colours[y, x + 1, c]
                    total += colours[y + 1, x - 1, c] + 2 * colours[y + 1, x, c] + colours[y + 1, x + 1, c]
                    blurred[y, x, c] = total >> 4

    return lambda: smooth(on.colours, on.blurred)


def _sort(window):
    """By insertion, of nine; compiled for either side."""
    for i in range(1, 9):
        value = window[i]
        j = i
        while j > 0 and window[j - 1] > value:
            window[j] = window[j - 1]
            j -= 1
        window[j] = value


def median(problem: Medians, on: SimpleNamespace) -> Callable[[], None]:
    """One thread for each pixel, with a private array."""
    from numba import float32, hip

    sort = hip.jit(device=True)(_sort)

    @hip.jit
    def choose(pixels, medians):
        x, y = hip.grid(2)
        window = hip.local.array(9, float32)
        if 0 < y < pixels.shape[0] - 1 and 0 < x < pixels.shape[1] - 1:
            for k in range(9):
                window[k] = pixels[y + k // 3 - 1, x + k % 3 - 1]
            sort(window)
            medians[y, x] = window[4]

    return lambda: choose[problem.grid, BLOCK](on.pixels, on.medians)


def njit_median(problem: Medians, on: SimpleNamespace) -> Callable[[], None]:
    """Rows in parallel, with an array for each."""
    from numba import njit, prange

    sort = njit(_sort)

    @njit(parallel=True)
    def choose(pixels, medians):
        for y in prange(1, pixels.shape[0] - 1):
            window = np.empty(9, np.float32)
            for x in range(1, pixels.shape[1] - 1):
                for k in range(9):
                    window[k] = pixels[y + k // 3 - 1, x + k % 3 - 1]
                sort(window)
                medians[y, x] = window[4]

    return lambda: choose(on.pixels, on.medians)


def _benchmark(name: str, description: str, problem: Callable[[bool], Problem], hip: object, njit: object) -> Benchmark:
    made = implementations(name.replace("-", "_"), problem, hip=hip, njit=njit, peers=OPENCL)  # type: ignore[arg-type]
    return Benchmark(
        name=name, description=description, peer="njit-parallel", scale=1e3, unit="ms", implementations=made,
        aim=1.3, unable=ONLY_OPENCL,
    )  # fmt: skip


GREY = _benchmark("rgb-to-grey", "1080 x 1920 pixels of RGB bytes to grey", Grey, grey, njit_grey)
BLUR = _benchmark("blur-rgb", "1080 x 1920 pixels of RGB bytes, blurred over 3 x 3", Blur, blur, njit_blur)
MEDIAN = _benchmark("median", "medians of 3 x 3, 400 x 600 float32, in private arrays", Medians, median, njit_median)
