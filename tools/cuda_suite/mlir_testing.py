"""Stands for ``numba_cuda_mlir.testing``: the base class of tests, and helpers."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
from numba.cuda.testing import CUDATestCase as NumbaCUDATestCase

IS_NUMPY_2 = np.lib.NumpyVersion(np.__version__) >= "2.0.0"


def captured_output(capfd: Any) -> str:
    """The output so far, of both streams."""
    captured = capfd.readouterr()
    return str(captured.out + captured.err)


def run_in_subprocess(code: str, timeout: int = 60) -> tuple[str, str]:
    """The output of a program on both streams; it must exit successfully. The program is a file, as its source may be
    looked up."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        program.write_text(textwrap.dedent(code))
        command = [sys.executable, "-u", str(program)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, f"process failed with code {done.returncode}:\n{done.stdout}\n\n{done.stderr}"
    return done.stdout, done.stderr


def filecheck(patterns: str, text: str) -> None:
    """Find the lines ``CHECK:`` of *patterns* in *text*, one after another, and ``CHECK-NEXT:`` on the next line.

    Regular expressions are within ``{{`` and ``}}``, there are no variables, and any number of spaces matches. Patterns
    of MLIR, PTX and the like do not match the output here.
    """
    lines, place = [" ".join(line.split()) for line in text.splitlines()], -1
    for kind, wanted in re.findall(r"^\W*CHECK(-NEXT)?:\s*(.*?)\s*$", patterns, re.MULTILINE):
        rest = lines[place + 1 : place + 2] if kind else lines[place + 1 :]
        parts = re.split(r"\{\{(.*?)\}\}", wanted)
        pattern = re.compile("".join(part if index % 2 else re.escape(part) for index, part in enumerate(parts)))
        found = next((number for number, line in enumerate(rest) if pattern.search(line)), None)
        assert found is not None, f"what is made has no line {wanted!r} after line {place + 1}:\n{text}"
        place += found + 1


def filecheck_with_comments(text: str) -> None:
    """`filecheck` with the comments of the function that calls this."""
    frame = inspect.currentframe()
    caller = frame.f_back if frame is not None else None
    assert caller is not None
    filecheck(inspect.getsource(caller), text)


__all__ = [
    "IS_NUMPY_2", "NumbaCUDATestCase", "captured_output", "filecheck", "filecheck_with_comments", "run_in_subprocess",
]  # fmt: skip
