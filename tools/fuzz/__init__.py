"""Random kernels, written in Python, whose results must be the same in each form of the CPU device and in plain Python.

The time limit for one program is that of the fuzzer below Numba, among the tests of hip-runtime.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "packages" / "hip-runtime" / "tests"))

from spmd_fuzz.limits import OverdueError, limit_time  # type: ignore[import-not-found]

__all__ = ["OverdueError", "limit_time"]
