"""Mutation testing with mutmut: ``python -m tools.mutants layout caches``; without names, all of targets.toml.

A package is copied to a folder, where mutmut puts all mutants of a module into one file. Each mutant is tried in a fork
of a process that has imported the tests. Mutants that no test detects are shown; those that ``explained.toml`` explains
are not tried.

Of a target with many mutants, a sample is tried, evenly spread; ``--all`` tries all of them.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.mutants.explanations import Change, explanations_of, read_table
from tools.mutants.listed_changes import ListedChanges
from tools.mutants.package_copy import PackageCopy, sample
from tools.mutants.results import SURVIVES

SAMPLE = 40
"""The number of mutants of a target that are tried if ``targets.toml`` gives none."""


def main() -> int:
    """Try the requested targets; returns 1 if a mutant survives that is not explained."""
    targets = read_table("targets.toml")
    chosen = _parse_arguments(list(targets))
    left = 0
    for name in chosen.names or targets:
        started = time.monotonic()
        target, folder = targets[name], (chosen.folder / name).absolute()
        try_target = try_changes if "changes" in target else try_mutants
        counts, survivors = try_target(name, target, folder, chosen)
        for survivor in survivors:
            print(survivor)
        left += len(survivors)
        seconds = time.monotonic() - started
        print(f"{name}: {counts}, {len(survivors)} survived; {seconds:.0f} s", flush=True)
    return 1 if left else 0


def _parse_arguments(targets: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(targets)}; by default all of them")
    parser.add_argument("--folder", type=Path, required=True, help="where packages are copied to; it may be kept")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--all", action="store_true", help="try all mutants instead of a sample")
    parser.add_argument("--again", action="store_true", help="try those that survived in this folder the last time")
    parser.add_argument(
        "--continue", action="store_true", dest="more", help="leave out what was noticed in this folder"
    )
    parser.add_argument("--explained", action="store_true", help="try those that are explained, too")
    parser.add_argument("--seed", type=int, default=1, help="which sample (default: 1)")
    chosen = parser.parse_args()
    unknown = set(chosen.names) - set(targets)
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: choose from {', '.join(targets)}")
    return chosen


def try_mutants(
    name: str, target: dict[str, Any], folder: Path, chosen: argparse.Namespace
) -> tuple[str, Sequence[Change]]:
    """Try the mutants of *target* that are *chosen*: a summary, and those that no test detected."""
    copy = PackageCopy(target, folder)
    earlier = copy.results.outcomes()
    if chosen.again:
        mutations = [one for one in copy.mutations if earlier.get(one.name) in SURVIVES]
    elif chosen.all:
        mutations = copy.mutations
    else:
        mutations = sample(copy.mutations, target.get("sample", SAMPLE), chosen.seed)
    explained = explanations_of(name)
    unexplained = [one for one in mutations if chosen.explained or not one.reason(explained)]
    waiting = [one for one in unexplained if not (chosen.more and _is_noticed(earlier, one.name))]
    copy.try_mutants(waiting, chosen.processes, more=chosen.more or chosen.again)
    outcomes = copy.results.outcomes()
    found = [outcomes[one.name] for one in unexplained]
    counts = (
        f"{len(mutations)} of {len(copy.mutations)} mutants, {len(mutations) - len(unexplained)} explained, "
        f"{len(waiting)} tried now, {found.count('hangs')} hang, {found.count('unreached')} are not reached"
    )
    return counts, [one for one, outcome in zip(unexplained, found, strict=True) if outcome in SURVIVES]


def try_changes(
    name: str, target: dict[str, Any], folder: Path, chosen: argparse.Namespace
) -> tuple[str, Sequence[Change]]:
    """Try the changes that *target* lists, in the same way."""
    listed = ListedChanges(name, target, folder)
    earlier = listed.results.outcomes()
    changes = [one for one in listed.changes if not chosen.again or earlier.get(str(one)) in SURVIVES]
    waiting = [one for one in changes if not (chosen.more and _is_noticed(earlier, str(one)))]
    listed.try_changes(waiting, chosen.processes, more=chosen.more or chosen.again)
    outcomes = listed.results.outcomes()
    found = [outcomes[str(one)] for one in changes]
    counts = f"{len(changes)} of {len(listed.changes)} changes, {len(waiting)} tried now, {found.count('hangs')} hang"
    return counts, [one for one, outcome in zip(changes, found, strict=True) if outcome in SURVIVES]


def _is_noticed(outcomes: dict[str, str], mutant: str) -> bool:
    return mutant in outcomes and outcomes[mutant] not in SURVIVES


if __name__ == "__main__":
    sys.exit(main())
