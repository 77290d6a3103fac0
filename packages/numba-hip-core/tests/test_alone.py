"""Tests that need a process of their own.

Numba keeps the implementations of array methods for the target that first asked for them. Where its CPU target has,
in the same process, NumPy's reductions as methods do not compile in kernels: a known defect.
"""

import subprocess
import sys
from pathlib import Path


def test_numpy_in_kernels():
    module = Path(__file__).parent / "alone" / "numpy_in_kernels.py"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(module)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout[-5000:]
