"""Benchmarks: our kernels compared with hand-written code, in separate processes that take turns."""
