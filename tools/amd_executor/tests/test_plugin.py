"""What a run of pytest says of the machine code that was executed in it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.parametrize("target", ["gfx942"])  # nothing of this depends on the target

_ROOT = Path(__file__).parents[3]
_KERNELS = """
import numpy as np
import pytest
from numba import hip

@pytest.mark.parametrize("number", [1, 2])
def test_kernel(number):
    @hip.jit("void(int32[:])")
    def kernel(array):
        array[hip.grid(1)] += number
    array = np.arange(64, dtype=np.int32)
    kernel[2, 32](array)
    np.testing.assert_array_equal(array, np.arange(64) + number)

@pytest.mark.cpu_device("it has lanes")
def test_left_out():
    raise AssertionError
"""


def run_pytest(folder: Path, target: str, text: str, *options: str) -> tuple[int, str]:
    (folder / "test_here.py").write_text(text)
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tools.amd_executor.plugin")
    config = ("-c", str(_ROOT / "pyproject.toml"), "--rootdir", str(folder))
    environment = os.environ | {"EMULATED_TARGET": target, "PYTHONPATH": str(_ROOT)}
    given = (*command, *config, *options, "test_here.py")
    result = subprocess.run(given, cwd=folder, env=environment, capture_output=True, text=True, timeout=900)
    return result.returncode, result.stdout + result.stderr


def test_what_all_processes_executed_is_summed(target: str, tmp_path: Path) -> None:
    code, said = run_pytest(tmp_path, target, _KERNELS, "-n", "2")
    assert code == 0, said
    found = re.search(rf"^{target}: (.*) launches, (.*) instructions of waves, in (.*) of (.*) tests$", said, re.M)
    assert found, said
    launches, instructions, executing, tests = (int(part.replace(",", "")) for part in found.groups())
    assert (launches, executing, tests) == (2, 2, 3)
    assert instructions > 2 * 4


def test_a_run_that_executes_nothing_fails(target: str, tmp_path: Path) -> None:
    code, said = run_pytest(tmp_path, target, "def test_numbers():\n    assert 1 + 1 == 2\n")
    assert code == 1, said
    assert "1 passed" in said
    assert f"{target}: nothing was executed, so nothing was tested" in said
