"""``python -m benchmarks.forms``: whether the CPU device chooses the best form for each kernel.

A kernel runs as the device chooses, and as each of `REQUESTS` makes it: another form, or gangs of another width. They
run in turns, in a process each, so that ratios are those of code alone. A form that cannot run a kernel is left out.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from statistics import median

from benchmarks.catalog import BENCHMARKS
from benchmarks.environments import Environment
from benchmarks.runner import OWN, BenchmarkError, Worker

OURS = "hip"
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


def measure(name: str, rounds: int, quick: bool) -> dict[str, float]:
    """The processor time of benchmark *name* under each request that can run it, as a multiple of what the chosen form
    takes: medians over *rounds* rounds."""
    with ExitStack() as stack:
        workers = {}
        for request, variables in REQUESTS.items():
            worker = stack.enter_context(_worker(name, variables, quick, is_chosen=request == CHOSEN))
            try:
                worker.receive()
                worker.check()
            except BenchmarkError:
                if request == CHOSEN:
                    raise
                continue
            workers[request] = worker
        order = list(workers)
        times = []
        for turn in range(rounds):
            first = turn % len(order)
            times.append({one: float(workers[one].ask("run")["cpu"]) for one in order[first:] + order[:first]})
        return {one: median(taken[one] / taken[CHOSEN] for taken in times) for one in order}


def _worker(name: str, variables: Mapping[str, str], quick: bool, is_chosen: bool) -> Worker:
    errors = None if is_chosen else subprocess.DEVNULL  # of a form that cannot run the kernel
    return Worker(name, OURS, quick, Environment(OWN.python, variables), errors=errors)


def compare(names: Sequence[str], rounds: int, quick: bool) -> list[str]:
    """Print a line for each benchmark in *names*; returns those for which another request is clearly faster."""
    far = []
    for name in names:
        ratios = measure(name, rounds, quick)
        best = min(ratios, key=lambda one: ratios[one])
        told = ", ".join(f"{one} {ratio:.2f}" for one, ratio in ratios.items() if one != CHOSEN)
        print(f"{name:18} best: {best:9} chosen takes {1 / ratios[best]:5.2f} times as long   ({told})", flush=True)
        if 1 / ratios[best] > NEAR:
            far.append(name)
    return far


def main(arguments: list[str] | None = None) -> int:
    """Compare the forms of the benchmarks that *arguments* select; returns 1 if a choice is far from the best."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forms", description=__doc__)
    parser.add_argument("benchmark", nargs="*", help=f"which to run, of {', '.join(BENCHMARKS)}; all by default")
    parser.add_argument("--rounds", type=int, default=7, help="how often each request has its turn")
    parser.add_argument("--quick", action="store_true", help="little data: shows that the forms run, no more")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.benchmark if name not in BENCHMARKS]:
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    if options.rounds < 1:
        parser.error("there has to be at least one round")
    far = compare(options.benchmark or list(BENCHMARKS), options.rounds, options.quick)
    print(f"chosen forms that take more than {NEAR} of the best: {', '.join(far) or 'none'}")
    return 1 if far and not options.quick else 0


if __name__ == "__main__":
    sys.exit(main())
