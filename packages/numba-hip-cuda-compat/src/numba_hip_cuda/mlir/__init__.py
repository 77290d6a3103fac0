"""`numba_cuda_mlir`, which succeeds numba-cuda: its names, and what it has that `numba.cuda` has not."""
