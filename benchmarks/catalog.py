"""The benchmarks that there are, by name."""

from __future__ import annotations

from benchmarks import (
    atomics,
    black_scholes,
    elementwise,
    empty_launch,
    histogram,
    integration,
    mandelbrot,
    matmul,
    nbody,
    reduction,
    saxpy,
    stencil,
)
from benchmarks.case import Benchmark

BENCHMARKS: dict[str, Benchmark] = {
    benchmark.name: benchmark
    for benchmark in (
        saxpy.BENCHMARK,
        saxpy.FEW,
        black_scholes.BENCHMARK,
        mandelbrot.BENCHMARK,
        nbody.BENCHMARK,
        matmul.NAIVE,
        matmul.TILED,
        reduction.TREE,
        reduction.SHUFFLES,
        reduction.REDUCE,
        reduction.REDUCE_FEW,
        histogram.BENCHMARK,
        stencil.BENCHMARK,
        elementwise.ROWS,
        elementwise.COLUMNS,
        elementwise.SPACE,
        integration.BENCHMARK,
        atomics.TOTAL,
        atomics.SELECTION,
        empty_launch.BENCHMARK,
        empty_launch.LAUNCH_FORMS,
    )
}

FAMILIES: dict[str, tuple[str, ...]] = {
    "elementwise": ("saxpy", "stencil", "elementwise-ij", "elementwise-ji", "elementwise-ijk"),
    "arithmetic": ("black-scholes", "mandelbrot", "n-body", "integration"),
    "matrices": ("matmul-naive", "matmul-tiled"),
    "reductions": ("tree-reduction", "warp-reduction", "reduce"),
    "atomics": ("histogram", "atomic-sum", "atomic-places"),
    "few elements": ("saxpy-few", "reduce-few"),
}
"""Benchmarks that have something in common. Those of launches are in none: their peers do not do the same."""
