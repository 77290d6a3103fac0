"""Kernels as users write them for `numba.cuda`, each beside loops of ``njit`` that one writes for a processor."""
