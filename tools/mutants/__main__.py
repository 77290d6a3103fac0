"""Mutation testing with mutmut: ``python -m tools.mutants layout caches``; without names, all of targets.toml.

A package is copied to a folder of its own, where mutmut puts all mutants of a module into one file and runs, for each
in a child process, those tests that come through the function that is changed. Tests that hang are ended after a
multiple of their usual time. Mutants that no test notices, and that ``explained.toml`` does not explain, are shown.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
NOTICED = ("killed", "timeout", "suspicious", "segfault", "caught by type check")
TIMEOUT = 600
"""Seconds for the tests of a listed change; those that take longer hang."""

LETTERS = "only the words of a message are others"
STRICT = "what is gone through together has been made as long before"


@dataclass(frozen=True)
class Survivor:
    """A change that no test noticed: the *function*, and the lines before and after."""

    function: str
    before: str
    after: str

    def reason(self, explained: list[dict[str, str]]) -> str:
        """Why it may survive; empty where nobody has said."""
        for entry in explained:
            if entry["function"] in self.function and entry["before"] in self.before and entry["after"] in self.after:
                return entry["why"]
        return _common_reason(self.before, self.after)

    def __str__(self) -> str:
        return f"{self.function}\n    - {self.before}\n    + {self.after}"


def _common_reason(before: str, after: str) -> str:
    """Reasons that hold for changes of one kind wherever they are."""
    if before.count('"') >= 2 and after.replace("XX", "").lower() == before.lower():
        return LETTERS
    if "strict=" in before and "strict=" not in after.replace("strict=None", "").replace("strict=False", "").replace(
        "strict=True", ""
    ):
        return STRICT
    return ""


def main() -> int:
    """Mutate what is asked for; 1 where a mutant survives that is not explained."""
    targets = tomllib.loads((HERE / "targets.toml").read_text())
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(targets)}; by default all of them")
    parser.add_argument("--folder", type=Path, required=True, help="where packages are copied to; it may be kept")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args()
    unknown = set(chosen.names) - set(targets)
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: choose from {', '.join(targets)}")
    explained = tomllib.loads((HERE / "explained.toml").read_text())
    left = 0
    for name in chosen.names or targets:
        if "changes" in targets[name]:
            left += try_changes(name, targets[name], chosen.folder / name)
            continue
        folder = prepare(targets[name], chosen.folder / name)
        run_mutmut(folder, "run", "--max-children", str(chosen.processes))
        left += report(name, folder, explained.get(name, []))
    return 1 if left else 0


def try_changes(name: str, target: dict[str, Any], folder: Path) -> int:
    """Make the changes that are listed, one at a time, in a copy of all packages; how many no test noticed."""
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "packages", folder / "packages", dirs_exist_ok=True, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    paths = os.pathsep.join(str(path) for path in sorted(folder.glob("packages/*/src")))
    environment = os.environ | {"NUMBA_HIP_DEVICE": "cpu", "PYTHONPATH": paths}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *target["tests"]]
    original = (ROOT / target["file"]).read_text()
    left = 0
    for before, after in [["", ""], *target["changes"]]:
        if before not in original:
            sys.exit(f"{name}: {target['file']} holds no {before!r}")
        (folder / target["file"]).write_text(original.replace(before, after, 1))
        try:
            status = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, timeout=TIMEOUT, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            status = -1
        if not before and status:
            sys.exit(f"{name}: the tests fail without any change")
        if before and not status:
            left += 1
            print(Survivor(name, before, after))
    print(f"{name}: {left} of {len(target['changes'])} changes survived", flush=True)
    return left


def prepare(target: dict[str, Any], folder: Path) -> Path:
    """A copy of the package of *target* in *folder*, with what mutmut has to know."""
    package = ROOT / "packages" / target["package"]
    shutil.copytree(package, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    top = target["modules"][0].split("/")[0]
    modules = "".join(f"\n    src/{module}" for module in target["modules"])
    tests = "".join(f"\n    tests/{module}" for module in target["tests"])
    (folder / "setup.cfg").write_text(
        f"[mutmut]\nsource_paths=src/{top}\nonly_mutate={modules}\n"
        f"pytest_add_cli_args_test_selection={tests}\nalso_copy=\n    tests\n    pyproject.toml\n    src\n"
    )
    return folder


def run_mutmut(folder: Path, *arguments: str) -> str:
    """What ``mutmut`` says in *folder*, where our packages are the mutated ones."""
    environment = os.environ | {"NUMBA_HIP_DEVICE": "cpu"}
    command = [sys.executable, "-m", "mutmut", *arguments]
    ran = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if ran.returncode:
        sys.exit(f"mutmut failed in {folder}; above is what it says")
    return ran.stdout


def survivors(folder: Path) -> Iterator[Survivor]:
    """The mutants in *folder* that no test noticed."""
    for line in run_mutmut(folder, "results").splitlines():
        mutant, _, status = line.strip().partition(": ")
        if not status or status in NOTICED:
            continue
        changed = run_mutmut(folder, "show", mutant).splitlines()
        before, after = (
            " ".join(text[1:].strip() for text in changed if text[:1] == sign and not text.startswith(sign * 3))
            for sign in "-+"
        )
        yield Survivor(mutant.rpartition("__mutmut_")[0], before, after)


def report(name: str, folder: Path, explained: list[dict[str, str]]) -> int:
    """Print what survived in *folder*; how many of that nobody has explained."""
    left = 0
    counted = 0
    for survivor in survivors(folder):
        counted += 1
        if not survivor.reason(explained):
            left += 1
            print(survivor)
    print(f"{name}: {counted} mutants survived, {left} of them without an explanation", flush=True)
    return left


if __name__ == "__main__":
    sys.exit(main())
