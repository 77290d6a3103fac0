"""The release of `numba_cuda_mlir` that posing stands for."""

VERSION = "0.6.0"
"""The release whose names and behaviour these are."""
