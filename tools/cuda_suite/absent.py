"""Stands for a private module of numba-cuda that tests import even if they do not use it. It is empty."""
