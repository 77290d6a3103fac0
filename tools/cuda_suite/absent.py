"""Stands for a private module of numba-cuda that tests import whether they use it or not: it has nothing."""
