"""Benchmarks: our kernels beside what one would write by hand, in processes of their own, taking turns."""
