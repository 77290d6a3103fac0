"""Functions of elements and of rows: `vectorize` and `guvectorize`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace

import numpy as np

from benchmarks.case import Benchmark
from benchmarks.problem import UNWRITTEN, Problem, implementations

HALF = np.float32(0.5)


class Elements(Problem):
    """4M float32."""

    outputs = ("result",)

    def __init__(self, quick: bool) -> None:
        size = 2**10 if quick else 2**22
        rng = np.random.default_rng(19)
        self.arrays = {name: rng.random(size, dtype=np.float32) for name in ("left", "right")}
        self.arrays["result"] = np.zeros(size, np.float32)

    def verify(self, results: Mapping[str, np.ndarray]) -> None:
        left, right = self.arrays["left"], self.arrays["right"]
        np.testing.assert_allclose(results["result"], np.sqrt(left * left + right * right) * HALF, rtol=1e-6)


class Rows(Problem):
    """8000 rows of 256 float32."""

    outputs = ("result",)

    def __init__(self, quick: bool) -> None:
        rows, columns = (16, 24) if quick else (8000, 256)
        values = np.random.default_rng(20).random((rows, columns), dtype=np.float32)
        self.arrays = {"values": values, "result": np.zeros_like(values)}

    def verify(self, results: Mapping[str, np.ndarray]) -> None:
        values = self.arrays["values"]
        np.testing.assert_allclose(results["result"], values - values.mean(axis=1, keepdims=True), atol=1e-5)


def hypotenuse(left, right):
    """Half of it; compiled for either side."""
    return np.sqrt(left * left + right * right) * HALF


def centre(values, result):
    """A row without its mean; compiled for either side."""
    total = np.float32(0)
    for i in range(values.size):
        total += values[i]
    mean = total / np.float32(values.size)
    for i in range(values.size):
        result[i] = values[i] - mean


def elements(problem: Elements, on: SimpleNamespace) -> Callable[[], None]:
    """`vectorize` for device arrays."""
    from numba import vectorize

    function = vectorize(["float32(float32, float32)"], target="hip")(hypotenuse)
    return lambda: function(on.left, on.right, out=on.result)


def njit_elements(problem: Elements, on: SimpleNamespace) -> Callable[[], None]:
    """`vectorize` for all cores."""
    from numba import vectorize

    function = vectorize(["float32(float32, float32)"], target="parallel")(hypotenuse)
    return lambda: function(on.left, on.right, out=on.result)


def rows(problem: Rows, on: SimpleNamespace) -> Callable[[], None]:
    """`guvectorize` for device arrays."""
    from numba import guvectorize

    function = guvectorize(["float32[:], float32[:]"], "(n)->(n)", target="hip")(centre)
    return lambda: function(on.values, out=on.result)


def njit_rows(problem: Rows, on: SimpleNamespace) -> Callable[[], None]:
    """`guvectorize` for all cores."""
    from numba import guvectorize

    function = guvectorize(["float32[:], float32[:]"], "(n)->(n)", target="parallel")(centre)
    return lambda: function(on.values, on.result)


VECTORIZE = Benchmark(
    name="vectorize",
    description="a function of two numbers over 4M float32, by vectorize",
    peer="njit-parallel",
    scale=1e3,
    unit="ms",
    implementations=implementations("vectorize", Elements, hip=elements, njit=njit_elements, peers=()),
    aim=1.3,
    unable=UNWRITTEN,
)
GUVECTORIZE = Benchmark(
    name="guvectorize",
    description="8000 rows of 256 float32 without their means, by guvectorize",
    peer="njit-parallel",
    scale=1e3,
    unit="ms",
    implementations=implementations("guvectorize", Rows, hip=rows, njit=njit_rows, peers=()),
    aim=1.3,
    unable=UNWRITTEN,
)
