"""Pieces of Python in a fresh interpreter: what is imported first, and how, can be tried only once in each."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from numba.core import config as numba_config

from numba_hip_cuda import posing

QUIET = {"NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS": "0", "NUMBA_CUDA_WARN_ON_IMPLICIT_COPY": "0"}
"""Variables of Numba CUDA's that turn its advice off: programs of tests are small, and warnings are errors."""

Result = subprocess.CompletedProcess[str]


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for what a test runs in this process, where Numba has read its variables already. It reads them again
    when it compiles, if one was set."""
    for variable, value in QUIET.items():
        monkeypatch.setattr(numba_config, variable.removeprefix("NUMBA_"), 0)
        monkeypatch.setenv(variable, value)


@pytest.fixture
def run_python() -> Callable[..., Result]:
    """Runs Python with some arguments, warnings being errors, in *folder*, with the folder *path* before its own."""

    def run(*arguments: str, path: Path | None = None, folder: Path | None = None) -> Result:
        environment = {"NUMBA_HIP_DEVICE": "cpu", **QUIET, **os.environ}
        if path is not None:
            environment["PYTHONPATH"] = str(path)
        return subprocess.run(
            [sys.executable, "-W", "error", *arguments], capture_output=True, text=True, env=environment, cwd=folder
        )

    return run


@pytest.fixture
def check(run_python: Callable[..., Result]) -> Callable[..., str]:
    """Runs a piece of code, which must succeed, and gives what it printed."""

    def run(code: str, path: Path | None = None) -> str:
        result = run_python("-c", textwrap.dedent(code), path=path)
        assert result.returncode == 0, result.stderr
        return result.stdout

    return run


@pytest.fixture
def cuda() -> Iterator[ModuleType]:
    """`numba.cuda`, posed as for the time of a test."""
    with posing() as module:
        yield module
