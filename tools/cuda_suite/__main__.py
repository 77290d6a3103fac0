"""``python -m tools.cuda_suite [WORD ...]``: run a suite's tests: all, or those whose path contains a WORD.

Prints the numbers of passed, failed and not applicable tests for each folder, the failures that are not listed, and the
listed failures that pass. The exit status is 1 if there are any of these.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import textwrap
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from tools.cuda_suite import expectations, suites
from tools.cuda_suite.run import Result, Results, quick_modules, run_modules, test_modules
from tools.cuda_suite.wheel import NOT_FETCHED, FetchError, default_cache

COLUMNS = ("passed", "failed", "crashed", "hung", "skipped", "not applicable")


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser("python -m tools.cuda_suite", description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*", metavar="WORD", help="part of the path of the modules to run")
    parser.add_argument(
        "--quick", action="store_true", help="the modules that expected/quick.txt names, where no WORD is given"
    )
    parser.add_argument("--suite", choices=suites.SUITES, default=suites.NUMBA_CUDA.name, help="whose tests to run")
    parser.add_argument("--source", type=Path, help="a copy of the suite's repository, instead of downloading it")
    parser.add_argument("--fetch", action="store_true", help="print the folder of the tests, and run none")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="folder for what is downloaded")
    parser.add_argument("--jobs", type=int, default=2, help="modules that run at a time (2)")
    parser.add_argument("--seconds", type=float, default=300, help="what a test may take (300)")
    parser.add_argument("--all", action="store_true", help="run what does not apply, too")
    parser.add_argument("--results", type=Path, help="write the result of each test there, as JSON")
    parser.add_argument("--update", action="store_true", help="bring the list of known failures up to date")
    return parser.parse_args(arguments)


class Report:
    """Compares results with expectations."""

    def __init__(self) -> None:
        self.not_applicable = expectations.Index(expectations.read("not_applicable"))
        self.known = expectations.read("known_failures")
        self.index = expectations.Index(self.known)

    def column(self, test: str, result: Result) -> str:
        """The row of the table in which *test* is counted."""
        return "not applicable" if result.outcome == "left out" or self.not_applicable.find(test) else result.outcome

    def table(self, results: dict[str, Results]) -> str:
        """Counts per group."""
        groups: dict[str, Counter[str]] = {}
        for module, outcomes in results.items():
            counts = groups.setdefault(module.partition("/")[0], Counter())
            counts.update(self.column(test, result) for test, result in outcomes.items())
        groups["all"] = sum(groups.values(), Counter())
        lines = [f"{'':14}" + "".join(f"{name:>16}" for name in COLUMNS)]
        for group, counts in groups.items():
            lines.append(f"{group:14}" + "".join(f"{counts[name]:16}" for name in COLUMNS))
        return "\n".join(lines)

    def causes(self, results: dict[str, Results]) -> str:
        """Counts of the known failures by cause."""
        counts: Counter[str] = Counter()
        for outcomes in results.values():
            for test, result in outcomes.items():
                section = self.index.find(test)
                if result.bad and section is not None and not self.not_applicable.find(test):
                    counts[section.name] += 1
        reasons = {section.name: section.reason for section in self.known}
        return "\n".join(f"{count:5}  [{name}] {reasons[name]}" for name, count in counts.most_common())

    def surprises(self, results: dict[str, Results]) -> tuple[list[tuple[str, Result]], list[str]]:
        """The failures that are not listed, and the listed ones that pass."""
        failures, passes = [], []
        for outcomes in results.values():
            for test, result in outcomes.items():
                listed = self.index.find(test) or self.not_applicable.find(test)
                if result.bad and listed is None:
                    failures.append((test, result))
                elif result.outcome == "passed" and listed is not None:
                    passes.append(test)
        return failures, passes

    def update(self, results: dict[str, Results]) -> None:
        """Add new failures to the list of known ones by their messages, and remove those that pass now."""
        ran = {test: result for outcomes in results.values() for test, result in outcomes.items()}
        for section in self.known:
            section.entries = [
                entry for entry in section.entries if entry not in ran or ran[entry].bad or "*" in entry
            ]  # fmt: skip
        for test, result in self.surprises(results)[0]:
            expectations.assign(self.known, f"{result.outcome}: {result.message}").entries.append(test)
        expectations.write("known_failures", self.known)


def main(arguments: list[str]) -> int:
    """Run, print, and return the exit status."""
    chosen = parse(arguments)
    try:
        tests = suites.choose(chosen.suite).fetch(chosen.cache.absolute(), chosen.source)
    except FetchError as error:
        lines = str(error).strip().splitlines()
        print(" ".join(dict.fromkeys([lines[0], lines[-1]])) if chosen.fetch else error)
        return NOT_FETCHED
    if chosen.fetch:
        print(tests)
        return 0
    os.environ.setdefault("NUMBA_HIP_DEVICE", "cpu")
    report = Report()
    modules = quick_modules() if chosen.quick and not chosen.words else test_modules(tests, chosen.words)
    if not modules:
        print(f"no test module has {' or '.join(chosen.words)} in its path", file=sys.stderr)
        return 2

    everything: dict[str, object] = {}

    def show(module: str, outcomes: Results) -> None:
        counts = Counter(report.column(test, result) for test, result in outcomes.items())
        if chosen.results:
            everything.update({test: asdict(one) for test, one in outcomes.items()})
            chosen.results.write_text(json.dumps(everything, indent=1))
        print(f"{module}: {', '.join(f'{counts[name]} {name}' for name in COLUMNS if counts[name])}", flush=True)

    results = run_modules(tests, modules, everything=chosen.all, jobs=chosen.jobs, seconds=chosen.seconds, done=show)
    if chosen.update:
        report.update(results)
        report = Report()
    failures, passes = report.surprises(results)
    print(f"\n{report.table(results)}\n\nknown failures by cause:\n{report.causes(results)}")
    for test, result in failures:
        print(f"\nnew failure ({result.outcome}): {test}\n    " + result.message.strip().replace("\n", "\n    "))
    for test in passes:
        print(f"\npasses, and is listed as not expected to: {test}")
    print()
    for test, result in failures:
        print(f"FAILED {test} - {textwrap.shorten(result.message, 400)}")
    print(f"{len(failures)} new failures, {len(passes)} new passes")
    return 1 if failures or passes else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
