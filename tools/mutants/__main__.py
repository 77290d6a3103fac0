"""Mutation testing with mutmut: ``python -m tools.mutants layout caches``; without names, all of targets.toml.

A package is copied to a folder of its own, where mutmut puts all mutants of a module into one file. For each mutant the
tests of the target are run in a fork of a process that has imported them, or, where the target is ``fresh``, in a
process of their own. Mutants that no test notices, and that ``explained.toml`` does not explain, are shown.

Of a target that has many mutants a sample is tried, evenly spread; ``--all`` tries all of them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from tools.mutants.explanations import Survivor, count_unexplained, read_table
from tools.mutants.package_copy import CONFIGURATION, IGNORED, ROOT, PackageCopy, run_tests, sample

SAMPLE = 40
"""Mutants of a target that are tried where ``targets.toml`` does not say how many."""


def main() -> int:
    """Mutate what is asked for; 1 where a mutant survives that is not explained."""
    targets = read_table("targets.toml")
    chosen = _parse_arguments(list(targets))
    left = 0
    for name in chosen.names or targets:
        started = time.monotonic()
        target = targets[name]
        if "changes" in target:
            tried, survivors = len(target["changes"]), try_changes(name, target, chosen.folder / name)
        else:
            tried, survivors = try_mutants(target, chosen.folder / name, chosen)
        unexplained = count_unexplained(name, survivors)
        left += unexplained
        minutes = (time.monotonic() - started) / 60
        print(
            f"{name}: {tried} tried in {minutes:.1f} minutes, {len(survivors)} survived, {unexplained} of them without "
            "an explanation",
            flush=True,
        )
    return 1 if left else 0


def _parse_arguments(targets: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(targets)}; by default all of them")
    parser.add_argument("--folder", type=Path, required=True, help="where packages are copied to; it may be kept")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--all", action="store_true", help="try all mutants instead of a sample")
    parser.add_argument("--again", action="store_true", help="try those that survived in this folder the last time")
    parser.add_argument("--seed", type=int, default=1, help="which sample (default: 1)")
    chosen = parser.parse_args()
    unknown = set(chosen.names) - set(targets)
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: choose from {', '.join(targets)}")
    return chosen


def try_mutants(target: dict[str, Any], folder: Path, chosen: argparse.Namespace) -> tuple[int, list[Survivor]]:
    """Try the mutants of *target* that are *chosen*: how many that are, and what no test noticed."""
    copy = PackageCopy(target, folder.absolute())
    names = copy.survived() if chosen.again else copy.mutants()
    if not (chosen.all or chosen.again):
        names = sample(names, target.get("sample", SAMPLE), chosen.seed)
    return len(names), copy.try_mutants(names, chosen.processes)


def try_changes(name: str, target: dict[str, Any], folder: Path) -> list[Survivor]:
    """Make the changes that are listed, one at a time, in a copy of all packages; what no test noticed."""
    shutil.copytree(ROOT / "packages", folder / "packages", dirs_exist_ok=True, ignore=IGNORED)
    for file in CONFIGURATION:
        shutil.copy(ROOT / file, folder)
    paths = os.pathsep.join(str(path.absolute()) for path in sorted(folder.glob("packages/*/src")))
    environment = os.environ | {"NUMBA_HIP_DEVICE": "cpu", "PYTHONPATH": paths}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *target["tests"]]
    original = (ROOT / target["file"]).read_text()
    survivors = []
    for before, after in [["", ""], *target["changes"]]:
        if before not in original:
            sys.exit(f"{name}: {target['file']} holds no {before!r}")
        (folder / target["file"]).write_text(original.replace(before, after, 1))
        passed = run_tests(command, folder, environment)
        if not before and not passed:
            sys.exit(f"{name}: the tests fail without any change")
        if before and passed:
            survivors.append(Survivor(name, before, after))
    return survivors


if __name__ == "__main__":
    sys.exit(main())
