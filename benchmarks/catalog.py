"""All benchmarks by name."""

from __future__ import annotations

from benchmarks import (
    atomics,
    black_scholes,
    block_work,
    elementwise,
    empty_launch,
    grid_sync,
    haversine,
    histogram,
    images,
    integers,
    integration,
    mandelbrot,
    matmul,
    nbody,
    reduction,
    saxpy,
    stencil,
    ufuncs,
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
        atomics.CLUSTER_SUMS,
        grid_sync.BENCHMARK,
        integers.LIFE,
        integers.TRANSPOSE,
        haversine.BENCHMARK,
        block_work.SPARSE,
        block_work.SCAN,
        images.GREY,
        images.BLUR,
        images.MEDIAN,
        ufuncs.VECTORIZE,
        ufuncs.GUVECTORIZE,
        empty_launch.BENCHMARK,
        empty_launch.LAUNCH_FORMS,
    )
}

FAMILIES: dict[str, tuple[str, ...]] = {
    "elementwise": ("saxpy", "stencil", "elementwise-ij", "elementwise-ji", "elementwise-ijk"),
    "arithmetic": ("black-scholes", "mandelbrot", "n-body", "integration"),
    "matrices": ("matmul-naive", "matmul-tiled"),
    "reductions": ("tree-reduction", "warp-reduction", "reduce"),
    "atomics": ("histogram", "atomic-sum", "atomic-places", "atomic-clusters"),
    "grid sync": ("grid-sync",),
    "division": ("life", "transpose-by-index"),
    "float64 math": ("haversine",),
    "rows and scans": ("sparse-rows", "scan"),
    "image bytes": ("rgb-to-grey", "blur-rgb"),
    "private arrays": ("median",),
    "ufuncs": ("vectorize", "guvectorize"),
    "few elements": ("saxpy-few", "reduce-few"),
}
"""Families of benchmarks. Those of launches are in none, as their peers do not do the same."""
