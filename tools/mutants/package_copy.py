"""A copy of a package with all mutants of some modules, and the results of those that were tried."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tools.mutants.mutations import Mutation, read_mutations
from tools.mutants.results import Results

ROOT = Path(__file__).parents[2]

CONFIGURATION = ("pyproject.toml", "conftest.py")
"""The files that configure pytest at the top of the repository."""

IGNORED = shutil.ignore_patterns("__pycache__", "*.egg-info")

GENERATE = """
import os
from mutmut.__main__ import copy_also_copy_files, copy_src_dir, create_mutants
os.makedirs("mutants", exist_ok=True)
copy_src_dir()
copy_also_copy_files()
create_mutants(1)
"""
"""Creates the mutants in the working directory as ``mutmut run`` does, without running anything, for which it has no
command."""

GOLDEN = (5**0.5 - 1) / 2
"""Its multiples, modulo 1, are far from each other: samples with different seeds share few mutants."""


T = TypeVar("T")


class PackageCopy:
    """The package of *target* in *folder*, with mutmut's settings; an existing *folder* is updated."""

    def __init__(self, target: dict[str, Any], folder: Path) -> None:
        self.folder = folder
        self._mutated = folder / "mutants"
        self._tests = [*(f"tests/{test}" for test in target["tests"]), *target.get("options", [])]
        self._warm_up = target.get("warm-up", "")
        package = ROOT / "packages" / target["package"]
        shutil.copytree(package, folder, dirs_exist_ok=True, ignore=IGNORED)
        for file in CONFIGURATION:
            shutil.copy(ROOT / file, folder)
        self._configure(target["modules"])
        self._run_mutmut()
        self.mutations = list(self._read(target["modules"]))

    def _configure(self, modules: list[str]) -> None:
        mutated = "".join(f"\n    src/{module}" for module in modules)
        copied = "".join(f"\n    {path}" for path in ("tests", "src", *CONFIGURATION))
        top = modules[0].split("/")[0]
        (self.folder / "setup.cfg").write_text(
            f"[mutmut]\nsource_paths=src/{top}\nonly_mutate={mutated}\nalso_copy={copied}\n"
        )

    def _run_mutmut(self) -> None:
        ran = subprocess.run(
            [sys.executable, "-c", GENERATE], cwd=self.folder, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        if ran.returncode:
            sys.exit(f"{ran.stdout[-8000:]}\nmutmut failed in {self.folder}; above is what it says")

    def _read(self, modules: list[str]) -> Iterator[Mutation]:
        digest = hashlib.sha256()
        for module in modules:
            file = self._mutated / "src" / module
            digest.update(file.read_bytes())
            yield from read_mutations(file, module.removesuffix(".py").replace("/", "."))
        self.results = Results(self.folder / "results.jsonl", digest.hexdigest())

    def try_mutants(self, mutations: Sequence[Mutation], processes: int, *, more: bool) -> None:
        """Run the tests for each of *mutations*; results are stored as they come, in addition to earlier ones if
        *more*."""
        self.results.begin(more=more)
        if not mutations:
            return
        log = self.folder / "log.txt"
        command = [sys.executable, "-m", "tools.mutants.runner", str(processes), self._warm_up, *self._tests]
        paths = os.pathsep.join((str(self._mutated / "src"), str(ROOT)))
        # The mutants of a module share a file, so the CPU device would take all for the same sources and load its own
        # code from the cache, which it does not write where Python is to write no bytecode.
        variables = {"NUMBA_HIP_DEVICE": "cpu", "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
        environment = os.environ | variables
        with log.open("w") as errors, self.results.path.open("a") as results:
            process = subprocess.Popen(
                command, cwd=self._mutated, env=environment, stdin=subprocess.PIPE, stdout=results, stderr=errors,
            )  # fmt: skip
            process.communicate(json.dumps([mutation.name for mutation in mutations]).encode())
        if process.returncode:
            sys.exit(f"{log.read_text()[-8000:]}\nthe tests of {self._mutated} cannot be run; above is what they say")


def sample(mutations: Sequence[T], count: int, seed: int) -> list[T]:
    """*count* of *mutations*, evenly spread over them; each *seed* begins elsewhere."""
    if count >= len(mutations):
        return list(mutations)
    step = len(mutations) / count
    start = seed * GOLDEN % 1
    return [mutations[int((number + start) * step)] for number in range(count)]
