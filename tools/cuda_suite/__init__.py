"""Runs Numba CUDA's own test suite, unchanged, over `numba.hip` posing as `numba.cuda`.

``python -m tools.cuda_suite`` fetches the distribution numba-cuda from the package index into a cache (it is never
installed), runs each of its test modules in a separate process, and compares the results with the lists in
``expected/``. See `tools.cuda_suite.__main__` for the options.
"""
