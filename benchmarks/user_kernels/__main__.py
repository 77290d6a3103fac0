"""``python -m benchmarks.user_kernels``: each kernel beside loops of ``njit``, both in one thread of the processor.

They run in turns, in a process each. Printed is the median over the rounds of what the kernel takes of processor time,
as a multiple of what the loops take in the same round.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from benchmarks import report, runner
from benchmarks.case import Benchmark
from benchmarks.environments import Environment
from benchmarks.user_kernels.catalog import KERNELS
from benchmarks.user_kernels.definition import TRANSLATED

RESULTS = Path(__file__).resolve().parent.parent / "results" / "user-kernels.json"


def measure(benchmark: Benchmark, *, rounds: int, threads: int, quick: bool) -> dict[str, Any]:
    """Milliseconds of processor time of the kernel and of its peer, medians over *rounds*, and the median of their
    ratios, with that of each round; and the median ratio to the translated peer, where there is one. The kernel may use
    so many *threads* of the processor."""
    variables = {"NUMBA_HIP_DEVICE": "cpu", "NUMBA_HIP_CPU_THREADS": str(threads), "NUMBA_NUM_THREADS": str(threads)}
    own = Environment(runner.OWN.python, variables)
    environments = dict.fromkeys(benchmark.implementations, own)
    results = runner.run(benchmark, rounds=rounds, quick=quick, environments=environments)
    times = {name: [taken["cpu"] for taken in results[name]["rounds"]] for name in benchmark.implementations}
    ratios = [mine / other for mine, other in zip(times["hip"], times["njit"], strict=True)]
    found = {"hip": 1e3 * median(times["hip"]), "njit": 1e3 * median(times["njit"]), "ratio": median(ratios)}
    if TRANSLATED in times:
        found["translated"] = median(a / b for a, b in zip(times["hip"], times[TRANSLATED], strict=True))
    return {**found, "ratios": ratios}


def table(results: Mapping[str, Mapping[str, Any]]) -> str:
    """A line for each kernel, the largest ratio first, and their geometric mean. Where the peer is a better algorithm,
    the ratio to a translation of the kernel stands behind."""
    lines = [f"{'kernel':22}{'hip, ms':>10}{'njit, ms':>10}{'ratio':>8}"]
    for name in sorted(results, key=lambda one: float(results[one]["ratio"]), reverse=True):
        found = results[name]
        lines.append(f"{name:22}{found['hip']:10.3f}{found['njit']:10.3f}{found['ratio']:8.2f}")
        if "translated" in found:
            lines[-1] += f"  ({found['translated']:.2f} of the same in njit)"
    mean = geometric_mean(found["ratio"] for found in results.values())
    return "\n".join([*lines, f"{'geometric mean':42}{mean:8.2f}"])


def save(path: Path, results: Mapping[str, Mapping[str, Any]], options: Mapping[str, object]) -> None:
    """Write *results* to *path*, with the machine, and the *options* of the measurement."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"machine": report.describe_machine(), "options": options, "kernels": results}
    path.write_text(json.dumps(document, indent=1) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the kernels that *arguments* name."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.user_kernels", description=__doc__)
    parser.add_argument("kernel", nargs="*", help=f"which to run, of {', '.join(KERNELS)}; all by default")
    parser.add_argument("--rounds", type=int, default=11, help="how often each has its turn (11)")
    parser.add_argument("--threads", type=int, default=1, help="threads of the processor for our kernels (1)")
    parser.add_argument("--quick", action="store_true", help="little data: shows that they run, no more")
    parser.add_argument("--output", type=Path, default=RESULTS, help="where results are written (%(default)s)")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.kernel if name not in KERNELS]:
        parser.error(f"there is no kernel {', '.join(unknown)}; there are {', '.join(KERNELS)}")
    if min(options.rounds, options.threads) < 1:
        parser.error("there has to be at least one round and one thread")
    results = {}
    for name in options.kernel or KERNELS:
        results[name] = measure(KERNELS[name], rounds=options.rounds, threads=options.threads, quick=options.quick)
        print(f"{name:22}{results[name]['ratio']:8.2f}", flush=True)
    print(table(results))
    save(options.output, results, {"rounds": options.rounds, "threads": options.threads, "quick": options.quick})
    return 0


if __name__ == "__main__":
    sys.exit(main())
