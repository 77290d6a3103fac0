"""A copy of a package in which mutmut has put all mutants of some modules, and what becomes of a run of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tools.mutants.explanations import Survivor

ROOT = Path(__file__).parents[2]

FORKS = Path(__file__).parent / "forks.py"

CONFIGURATION = ("pyproject.toml", "conftest.py")
"""What pytest reads at the top of the repository: how tests are run, and which of them by default."""

IGNORED = shutil.ignore_patterns("__pycache__", "*.egg-info")

TIMEOUT = 600
"""Seconds for the tests of a change that are run in a process of their own; those that take longer hang."""

GENERATE = """
import os
from mutmut.__main__ import copy_also_copy_files, copy_src_dir, create_mutants
os.makedirs("mutants", exist_ok=True)
copy_src_dir()
copy_also_copy_files()
create_mutants(1)
"""
"""Makes the mutants in the working directory, as ``mutmut run`` does, and runs nothing: it has no command for that."""

GOLDEN = (5**0.5 - 1) / 2
"""Its multiples, modulo 1, are far from each other: samples of different seeds share few mutants."""


class PackageCopy:
    """The package of *target* in *folder*, with what mutmut has to know; a *folder* that was kept is brought up to
    date."""

    def __init__(self, target: dict[str, Any], folder: Path) -> None:
        self.folder = folder
        self._fresh = target.get("fresh", False)
        self._mutated = folder / "mutants"
        self._tests = [*(f"tests/{test}" for test in target["tests"]), *target.get("options", [])]
        self._modules = [f"src/{module}" for module in target["modules"]]
        package = ROOT / "packages" / target["package"]
        shutil.copytree(package, folder, dirs_exist_ok=True, ignore=IGNORED)
        for file in CONFIGURATION:
            shutil.copy(ROOT / file, folder)
        self._configure(target["modules"][0].split("/")[0])
        self._run_python("-c", GENERATE)

    def _configure(self, top: str) -> None:
        modules = "".join(f"\n    {module}" for module in self._modules)
        copied = "".join(f"\n    {path}" for path in ("tests", "src", *CONFIGURATION))
        (self.folder / "setup.cfg").write_text(
            f"[mutmut]\nsource_paths=src/{top}\nonly_mutate={modules}\nalso_copy={copied}\n"
        )

    def mutants(self) -> list[str]:
        """The names of all mutants, in the order of the lines."""
        metas = (json.loads((self.folder / "mutants" / f"{module}.meta").read_text()) for module in self._modules)
        return [name for meta in metas for name in meta["exit_code_by_key"]]

    def survived(self) -> list[str]:
        """The names of those that survived when they were tried the last time."""
        try:
            names = set((self.folder / "survived.txt").read_text().split())
        except FileNotFoundError:
            return []
        return [name for name in self.mutants() if name in names]

    def try_mutants(self, names: Sequence[str], processes: int) -> list[Survivor]:
        """Run the tests for each of *names*; what no test noticed."""
        if not names:
            return []
        left = self._try_afresh(names, processes) if self._fresh else self._try_forked(names, processes)
        (self.folder / "survived.txt").write_text("\n".join(left))
        return [self._survivor(name) for name in left]

    def _try_forked(self, names: Sequence[str], processes: int) -> list[str]:
        command = [sys.executable, str(FORKS), str(processes), *self._tests]
        ran = subprocess.run(
            command, cwd=self._mutated, env=self._environment(), input="\n".join(names), text=True, check=False,
            capture_output=True,
        )  # fmt: skip
        if ran.returncode:
            sys.exit(f"{ran.stderr[-8000:]}\nthe tests of {self._mutated} cannot be run; above is what they say")
        left = set(ran.stdout.split())
        return [name for name in names if name in left]

    def _try_afresh(self, names: Sequence[str], processes: int) -> list[str]:
        if not self._passes("") or self._passes("fail"):
            sys.exit(f"the tests of {self._mutated} fail without any change, or do not come to the changes")
        with ThreadPoolExecutor(processes) as pool:
            passes = pool.map(self._passes, names)
            return [name for name, passed in zip(names, passes, strict=True) if passed]

    def _passes(self, mutant: str) -> bool:
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *self._tests]
        return run_tests(command, self._mutated, self._environment() | {"MUTANT_UNDER_TEST": mutant})

    def _environment(self) -> dict[str, str]:
        return os.environ | {"NUMBA_HIP_DEVICE": "cpu", "PYTHONPATH": str(self._mutated / "src")}

    def _survivor(self, name: str) -> Survivor:
        changed = self._run_mutmut("show", name).splitlines()
        before, after = (
            " ".join(text[1:].strip() for text in changed if text[:1] == sign and not text.startswith(sign * 3))
            for sign in "-+"
        )
        return Survivor(name.rpartition("__mutmut_")[0], before, after)

    def _run_mutmut(self, *arguments: str) -> str:
        return self._run_python("-m", "mutmut", *arguments)

    def _run_python(self, *arguments: str) -> str:
        environment = os.environ | {"NUMBA_HIP_DEVICE": "cpu"}
        ran = subprocess.run(
            [sys.executable, *arguments], cwd=self.folder, env=environment, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        if ran.returncode:
            sys.exit(f"{ran.stdout[-8000:]}\nmutmut failed in {self.folder}; above is what it says")
        return ran.stdout


def run_tests(command: Sequence[str], folder: Path, environment: dict[str, str]) -> bool:
    """Whether *command*, which runs tests in *folder*, succeeds in time."""
    try:
        ran = subprocess.run(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False
    return ran.returncode == 0


def sample(names: Sequence[str], count: int, seed: int) -> list[str]:
    """*count* of *names*, evenly spread over them; each *seed* begins elsewhere."""
    if count >= len(names):
        return list(names)
    step = len(names) / count
    start = seed * GOLDEN % 1
    return [names[int((number + start) * step)] for number in range(count)]
