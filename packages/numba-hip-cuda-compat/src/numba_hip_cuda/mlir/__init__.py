"""The names of `numba_cuda_mlir`, the successor of numba-cuda, and its features beyond `numba.cuda`."""
