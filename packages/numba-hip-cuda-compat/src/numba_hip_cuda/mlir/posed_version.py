"""The release of `numba_cuda_mlir` that is posed as."""

VERSION = "0.6.0"
"""The release whose names and behaviour are provided."""
