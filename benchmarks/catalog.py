"""The benchmarks that there are, by name."""

from __future__ import annotations

from benchmarks import empty_launch, saxpy
from benchmarks.case import Benchmark

BENCHMARKS: dict[str, Benchmark] = {
    benchmark.name: benchmark for benchmark in (saxpy.BENCHMARK, empty_launch.BENCHMARK)
}
