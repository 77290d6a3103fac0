"""The sessions with debuggers on the guide's page happen as they are written there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "guide" / "debuggers.md").read_text()
PROGRAM = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0]
IN_PDB, IN_GDB = re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
PROMPT = "(Pdb) "


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the program."""
    (tmp_path / "smooth.py").write_text(PROGRAM)
    return tmp_path


def said(folder: Path, command: list[str], typed: str = "", **environment: str) -> str:
    """What *command* writes when that is typed, with files by their names."""
    settings = {**os.environ, "NUMBA_HIP_DEVICE": "cpu", "NO_COLOR": "1", "PYTHON_COLORS": "0", **environment}
    done = subprocess.run(
        command, input=typed, capture_output=True, text=True, cwd=folder, env=settings, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.replace(f"{folder}{os.sep}", "")


def test_pdb_in_the_simulator(folder: Path) -> None:
    """What is typed is written, too, by a terminal; here it is not."""
    lines = IN_PDB.splitlines()[1:]
    typed = [line.removeprefix(PROMPT) for line in lines if line.startswith(PROMPT)]
    expected = "".join(PROMPT if line.startswith(PROMPT) else f"{line}\n" for line in lines)
    found = said(folder, [sys.executable, "smooth.py"], "\n".join([*typed, ""]), NUMBA_HIP_SIMULATOR="1")
    if sys.version_info >= (3, 13):  # stops in the line of `breakpoint`, not in the one after it
        found = found.replace("(10)smooth()\n-> breakpoint()", "\n".join(lines[:2]).partition("smooth.py")[2])
    assert found == expected


def test_gdb_on_the_cpu_device(folder: Path) -> None:
    if shutil.which("gdb") is None:
        pytest.skip("needs gdb")
    command = shlex.split(IN_GDB.splitlines()[0].removeprefix("$ "))
    command[-2:] = [sys.executable, "smooth.py"]
    quiet = ["-nx", "-iex", "set debuginfod enabled off", "-ex", "handle SIGSEGV nostop noprint"]
    found = said(folder, [command[0], *quiet, *command[1:]])
    for line in IN_GDB.splitlines()[1:]:
        assert line in found
