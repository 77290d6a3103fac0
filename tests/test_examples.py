"""Each example is a program: it runs by itself, without a warning, and prints one line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
PROGRAMS = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem != "demo")


def run(name: str, folder: Path) -> list[str]:
    """Run an example in an unrelated *folder*; the lines that it printed."""
    result = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py")],
        capture_output=True,
        text=True,
        cwd=folder,
        env={"NUMBA_HIP_DEVICE": "cpu", **os.environ},
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return result.stdout.splitlines()


@pytest.mark.sample(1)  # the demo runs them all
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_example_computes_what_it_says(name: str, tmp_path: Path) -> None:
    (line,) = run(name, tmp_path)
    title, _, rest = line.partition(": ")
    assert title.replace(" ", "_") in name
    assert re.search(r"NumPy's|float64", rest), "it says what it was checked against"


def test_the_demo_runs_them_all_and_says_where(tmp_path: Path) -> None:
    lines = run("demo", tmp_path)
    assert re.fullmatch(r"device: .+ \(.+\), numba\.hip \d+\.\d+\.\d+, Python 3\.\d+\.\d+", lines[0])
    assert len(lines) == 2 + 2 * len(PROGRAMS)
    for title, took in zip(lines[1:-1:2], lines[2:-1:2], strict=True):
        assert ": " in title
        assert re.fullmatch(r"    took \d+\.\d\d s, compiling and checking included", took)
    assert re.fullmatch(rf"all {len(PROGRAMS)} examples computed and checked in \d+\.\d\d s", lines[-1])


def test_an_example_notices_a_wrong_result(tmp_path: Path) -> None:
    """The check in an example is one that can fail."""
    source = (EXAMPLES / "vector_add.py").read_text()
    assert source.count("x[i] + y[i]") == 1
    (tmp_path / "wrong.py").write_text(source.replace("x[i] + y[i]", "x[i] - y[i]"))
    result = subprocess.run(
        [sys.executable, str(tmp_path / "wrong.py")],
        capture_output=True,
        text=True,
        env={"NUMBA_HIP_DEVICE": "cpu", **os.environ},
    )
    assert result.returncode == 1
    assert "AssertionError" in result.stderr
    assert result.stdout == ""
