"""Stands for ``numba_cuda_mlir.testing``: the base class of tests, and helpers. Nothing is compared with MLIR."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import Any, NoReturn

import numpy as np
from numba.cuda.testing import CUDATestCase as NumbaCUDATestCase

IS_NUMPY_2 = np.lib.NumpyVersion(np.__version__) >= "2.0.0"


def captured_output(capfd: Any) -> str:
    """What was written so far, to both streams."""
    captured = capfd.readouterr()
    return str(captured.out + captured.err)


def run_in_subprocess(code: str, timeout: int = 60) -> tuple[str, str]:
    """What a program writes to both streams; it has to end well."""
    command = [sys.executable, "-u", "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, f"process failed with code {done.returncode}:\n{done.stdout}\n\n{done.stderr}"
    return done.stdout, done.stderr


def filecheck(*args: Any) -> NoReturn:
    """Patterns of MLIR are not compared with what is made here."""
    raise AssertionError("the test compares what is made with patterns of MLIR")


filecheck_with_comments = filecheck

__all__ = [
    "IS_NUMPY_2", "NumbaCUDATestCase", "captured_output", "filecheck", "filecheck_with_comments", "run_in_subprocess",
]  # fmt: skip
