"""Kernels run by plain Python, one thread at a time, so that a debugger sees every line: ``NUMBA_HIP_SIMULATOR=1``."""
