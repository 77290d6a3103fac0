"""``python -m benchmarks.forms``: whether the CPU device chooses the best form for each kernel.

A kernel runs as the device chooses, and as each of `REQUESTS` makes it: another form, or gangs of another width. They
run in turns, in processes with their arrays at the same addresses (see `form_worker`), so that ratios are those of code
alone. A form that cannot run a kernel is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from statistics import geometric_mean, median

from benchmarks.catalog import BENCHMARKS
from benchmarks.runner import ROOT, BenchmarkError
from benchmarks.user_kernels.catalog import KERNELS

CHOSEN = "chosen"
"""The name of what the device chooses by itself."""

NEAR = 1.1
"""A choice is good if it takes at most so many times as long as the best."""

REQUESTS: Mapping[str, Mapping[str, str]] = {
    CHOSEN: {},
    **{form: {"NUMBA_HIP_CPU_FORM": form} for form in ("loop", "regions", "vectors")},
    **{f"{width} lanes": {"NUMBA_HIP_CPU_WIDTH": str(width)} for width in (8, 16, 32, 64)},
}
"""Environment variables of each request."""


def measure(name: str, rounds: int, quick: bool, processes: int = 1) -> dict[str, float]:
    """The processor time of benchmark *name* under each request that can run it, as a multiple of what the chosen form
    takes: medians over *rounds* rounds, the least of *processes*, as the memory of each lies better or worse."""
    taken: dict[str, list[float]] = {}
    for _ in range(processes):
        for request, seconds in _measure_once(name, rounds, quick).items():
            taken.setdefault(request, []).append(seconds)
    return {request: min(seconds) / min(taken[CHOSEN]) for request, seconds in taken.items()}


def _measure_once(name: str, rounds: int, quick: bool) -> dict[str, float]:
    """Seconds under each request, in forks of one process."""
    command = [sys.executable, "-m", "benchmarks.form_worker", name, "quick" if quick else "full", str(rounds)]
    variables = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # forks have no threads that they were not made with
    done = subprocess.run(
        command, cwd=ROOT, env=variables, input=json.dumps(REQUESTS), capture_output=True, text=True,
    )  # fmt: skip
    taken = json.loads(done.stdout) if not done.returncode else {}
    if CHOSEN not in taken:
        raise BenchmarkError(f"{name} ended with status {done.returncode}: {done.stderr}")
    return {request: median(seconds) for request, seconds in taken.items()}


def compare(names: Sequence[str], rounds: int, quick: bool, processes: int = 1) -> dict[str, float]:
    """Print a line for each benchmark in *names*; returns how many times as long as the best its chosen form takes."""
    lost = {}
    for name in names:
        ratios = measure(name, rounds, quick, processes)
        best = min(ratios, key=lambda one: ratios[one])
        lost[name] = 1 / ratios[best]
        told = ", ".join(f"{one} {ratio:.2f}" for one, ratio in ratios.items() if one != CHOSEN)
        print(f"{name:22} best: {best:9} chosen takes {lost[name]:5.2f} times as long   ({told})", flush=True)
    return lost


def main(arguments: list[str] | None = None) -> int:
    """Compare the forms of the benchmarks that *arguments* select; returns 1 if a choice is far from the best."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forms", description=__doc__)
    parser.add_argument("benchmark", nargs="*", help="which to run, kernels of users too; all but these by default")
    parser.add_argument("--users", action="store_true", help="run all kernels of users, too")
    parser.add_argument("--rounds", type=int, default=7, help="how often each request has its turn")
    parser.add_argument("--processes", type=int, default=1, help="how often each is started anew for as many rounds")
    parser.add_argument("--quick", action="store_true", help="little data: shows that the forms run, no more")
    options = parser.parse_args(arguments)
    known = {**BENCHMARKS, **KERNELS}
    if unknown := [name for name in options.benchmark if name not in known]:
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(known)}")
    if min(options.rounds, options.processes) < 1:
        parser.error("there has to be at least one round and one process")
    names = options.benchmark or list(known if options.users else BENCHMARKS)
    lost = compare(names, options.rounds, options.quick, options.processes)
    far = [name for name, ratio in lost.items() if ratio > NEAR]
    mean = geometric_mean(lost.values())
    print(f"{len(lost) - len(far)} of {len(lost)} chosen forms take at most {NEAR} of the best, the mean {mean:.2f}")
    print(f"chosen forms that take more than {NEAR} of the best: {', '.join(far) or 'none'}")
    return 1 if far and not options.quick else 0


if __name__ == "__main__":
    sys.exit(main())
