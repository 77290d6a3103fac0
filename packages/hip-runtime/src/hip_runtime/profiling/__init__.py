"""Profiling: the time that kernels, copies, graphs and named ranges of a program take."""

from hip_runtime.profiling.benchmark import Benchmark, benchmark
from hip_runtime.profiling.profile import Profile, profile
from hip_runtime.profiling.ranges import range
from hip_runtime.profiling.spans import Span

__all__ = ["Benchmark", "Profile", "Span", "benchmark", "profile", "range"]
