"""Which `numba_cuda_mlir` is posed as."""

VERSION = "0.6.0"
"""The release whose names and behaviour these are."""
