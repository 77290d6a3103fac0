"""Benchmarks: our kernels compared with hand-written code, in separate processes that take turns."""

from benchmarks.processors import pretend_processor

pretend_processor()
