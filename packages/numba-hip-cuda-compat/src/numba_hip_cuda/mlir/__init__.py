"""`numba_cuda_mlir`, the successor of numba-cuda: its names, and what it has beyond `numba.cuda`."""
