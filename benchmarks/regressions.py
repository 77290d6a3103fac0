"""``python -m benchmarks.regressions --against REV``: whether `hip` is slower than in revision *REV*.

The packages of *REV* are checked out into a worktree, with a separate environment that has the same releases of
everything else; both use the benchmarks of this tree. A group of three processes runs a benchmark in turns, round by
round: this tree, the other revision, and the other revision again. The difference of the last two is noise, of the
machine and of the memory addresses of a process, so several groups are started. A benchmark is slower if the median of
its ratios over the groups exceeds 1 by more than twice the largest difference of a revision from itself, and by more
than a few percent. Benchmarks that seem slower are measured again with as many further groups, and judged by all of
them.
"""

from __future__ import annotations

import argparse
import math
import signal
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.catalog import BENCHMARKS
from benchmarks.environments import Environment
from benchmarks.runner import OWN, ROOT, BenchmarkError, Worker

PACKAGES = ("hip-devicelib", "hip-runtime", "numba-hip-core", "numba-hip-cuda-compat")
OURS = "hip"
"""The implementation that is compared."""

LEAST = 0.04
"""Differences below this are never regressions: identical code was seen to differ by as much."""

SELF = 2.0
"""A difference counts if it is this many times the difference of a revision from itself."""

Times = tuple[float, float, float]
"""Seconds of processor time of one operation: of this tree, of the other revision, and of that again."""


@dataclass(frozen=True)
class Verdict:
    """A benchmark's time relative to the other revision, and the ratio above which it is more than noise."""

    ratio: float
    limit: float

    @property
    def is_slower(self) -> bool:
        """Whether this tree is slower, beyond noise."""
        return self.ratio > self.limit

    @property
    def is_faster(self) -> bool:
        """Whether this tree is faster, beyond noise."""
        return self.ratio * self.limit < 1


def judge(groups: Sequence[Sequence[Times]]) -> Verdict:
    """The result of the rounds of *groups* of processes."""
    ratios = [math.log(median(ours / theirs for ours, theirs, _ in rounds)) for rounds in groups]
    noise = max(abs(math.log(median(again / theirs for _, theirs, again in rounds))) for rounds in groups)
    return Verdict(math.exp(median(ratios)), math.exp(max(math.log1p(LEAST), SELF * noise)))


def measure(name: str, other: Environment, rounds: int, groups: int, quick: bool) -> list[list[Times]]:
    """The times of benchmark *name* in each round of each group of processes; *other* is the environment with the other
    revision."""
    return [_measure_group(name, (OWN, other, other), rounds, quick) for _ in range(groups)]


def _measure_group(name: str, environments: Sequence[Environment], rounds: int, quick: bool) -> list[Times]:
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(name, OURS, quick, environment)) for environment in environments]
        for worker in workers:
            worker.receive()
            worker.check()
        found = []
        for turn in range(rounds):
            order = [(turn + number) % len(workers) for number in range(len(workers))]
            taken = {number: float(workers[number].ask("run")["cpu"]) for number in order}
            found.append((taken[0], taken[1], taken[2]))
        for worker in workers:
            worker.check()
        return found


@contextmanager
def environment_of(revision: str) -> Iterator[Environment]:
    """An environment with the packages of *revision* of this repository, and otherwise the same packages as this one.

    Raises `BenchmarkError` if there is no such revision.
    """
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        _git("worktree", "add", "--detach", str(tree), revision)
        try:
            home = Path(folder) / "environment"
            venv.create(home, symlinks=True)
            (library,) = (home / "lib").glob("python*/site-packages")
            paths = [*(tree / "packages" / name / "src" for name in PACKAGES), sysconfig.get_path("purelib")]
            (library / "revision.pth").write_text("".join(f"{path}\n" for path in paths))
            yield Environment(str(home / "bin" / "python"))
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _git(*command: str) -> None:
    said = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    if said.returncode:
        raise BenchmarkError(f"git {' '.join(command[:2])}: {said.stderr.strip()}")


@contextmanager
def ending_cleanly(*signals: signal.Signals) -> Iterator[None]:
    """A block that one of *signals* ends as an exit does, so that what it made is removed. In the main thread."""

    def end(number: int, frame: Any) -> None:
        for one in signals:
            signal.signal(one, signal.SIG_IGN)  # the end is not to be interrupted
        raise SystemExit(128 + number)

    before = {one: signal.signal(one, end) for one in signals}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def compare(names: Sequence[str], other: Environment, rounds: int, groups: int, quick: bool) -> list[str]:
    """Print a line for each benchmark in *names*; returns those that are slower."""
    slower = []
    for name in names:
        times = measure(name, other, rounds, groups, quick)
        if judge(times).is_slower:
            times += measure(name, other, rounds, groups, quick)
        verdict = judge(times)
        told = "SLOWER" if verdict.is_slower else "faster" if verdict.is_faster else "the same"
        print(f"{name:18}{verdict.ratio:7.3f}  noise up to {verdict.limit:5.3f}  {told}", flush=True)
        if verdict.is_slower:
            slower.append(name)
    return slower


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regressions", description=__doc__)
    parser.add_argument("benchmark", nargs="*", help=f"which to run, of {', '.join(BENCHMARKS)}; all by default")
    parser.add_argument("--against", required=True, metavar="REV", help="the revision to compare with")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of each group of processes")
    parser.add_argument("--groups", type=int, default=3, help="how often the processes are started anew")
    parser.add_argument("--quick", action="store_true", help="little data: shows that both revisions run, no more")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.benchmark if name not in BENCHMARKS]:
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    if min(options.rounds, options.groups) < 1:
        parser.error("there has to be at least one round, and one group")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Compare the benchmarks that *arguments* select; returns 1 if something is slower."""
    options = _parse(arguments)
    names = options.benchmark or list(BENCHMARKS)
    try:
        with ending_cleanly(signal.SIGTERM, signal.SIGHUP), environment_of(options.against) as other:
            slower = compare(names, other, options.rounds, options.groups, options.quick)
    except BenchmarkError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"slower than {options.against}: {', '.join(slower) or 'none'}")
    return 1 if slower and not options.quick else 0


if __name__ == "__main__":
    sys.exit(main())
