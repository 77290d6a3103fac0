"""``python -m benchmarks.user_kernels``: each kernel beside loops of ``njit``, both in one thread of the processor.

They run in turns, in a process each. Printed is the median over the rounds of what the kernel takes of processor time,
as a multiple of what the loops take in the same round.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from benchmarks import report, runner
from benchmarks.case import Benchmark
from benchmarks.environments import Environment, load
from benchmarks.user_kernels.catalog import KERNELS
from benchmarks.user_kernels.definition import OPENCL, TRANSLATED

RESULTS = Path(__file__).resolve().parent.parent / "results" / "user-kernels.json"


def measure(
    benchmark: Benchmark, *, rounds: int, threads: int, quick: bool, opencl: Environment | None = None
) -> dict[str, Any]:
    """Milliseconds of processor time of the kernel and of its peer, medians over *rounds*, and the median of their
    ratios, with that of each round; and the median ratio to the translated peer and to that in OpenCL, where there is
    one and *opencl* can run it. The kernel may use so many *threads* of the processor."""
    variables = {"NUMBA_HIP_DEVICE": "cpu", "NUMBA_HIP_CPU_THREADS": str(threads), "NUMBA_NUM_THREADS": str(threads)}
    own = Environment(runner.OWN.python, variables)
    environments = {name: own for name in benchmark.implementations if name != OPENCL}
    if opencl is not None:
        environments[OPENCL] = beside_numba(opencl, variables)
    results = runner.run(benchmark, rounds=rounds, quick=quick, environments=environments)
    times = {name: [taken["cpu"] for taken in result["rounds"]] for name, result in results.items()}
    ratios = [mine / other for mine, other in zip(times["hip"], times["njit"], strict=True)]
    found = {"hip": 1e3 * median(times["hip"]), "njit": 1e3 * median(times["njit"]), "ratio": median(ratios)}
    for key, peer in (("translated", TRANSLATED), (OPENCL, OPENCL)):
        if peer in times:
            found[key] = median(mine / other for mine, other in zip(times["hip"], times[peer], strict=True))
    return {**found, "ratios": ratios}


def beside_numba(opencl: Environment, variables: Mapping[str, str]) -> Environment:
    """This environment, with the packages of *opencl* behind its own: a kernel's module makes its data, and needs
    Numba."""
    (packages,) = (Path(opencl.python).parent.parent / "lib").glob("python*/site-packages")
    path = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(packages)])
    return Environment(runner.OWN.python, {**variables, **opencl.variables, "PYTHONPATH": path})


def table(results: Mapping[str, Mapping[str, Any]]) -> str:
    """A line for each kernel, the largest ratio first, and their geometric mean. Where the peer is a better algorithm,
    the ratio to a translation of the kernel stands behind, and so does that to OpenCL where that was measured."""
    lines = [f"{'kernel':22}{'hip, ms':>10}{'njit, ms':>10}{'ratio':>8}"]
    for name in sorted(results, key=lambda one: float(results[one]["ratio"]), reverse=True):
        found = results[name]
        lines.append(f"{name:22}{found['hip']:10.3f}{found['njit']:10.3f}{found['ratio']:8.2f}")
        if "translated" in found:
            lines[-1] += f"  ({found['translated']:.2f} of the same in njit)"
        if OPENCL in found:
            lines[-1] += f"  ({found[OPENCL]:.2f} of {OPENCL})"
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
    parser.add_argument(
        "--environments", type=Path, help="where python -m benchmarks.environments put the peers: some kernels have one"
    )
    parser.add_argument("--output", type=Path, default=RESULTS, help="where results are written (%(default)s)")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.kernel if name not in KERNELS]:
        parser.error(f"there is no kernel {', '.join(unknown)}; there are {', '.join(KERNELS)}")
    if min(options.rounds, options.threads) < 1:
        parser.error("there has to be at least one round and one thread")
    opencl = load(options.environments)[OPENCL] if options.environments else None
    results = {}
    for name in options.kernel or KERNELS:
        results[name] = measure(
            KERNELS[name], rounds=options.rounds, threads=options.threads, quick=options.quick, opencl=opencl
        )
        print(f"{name:22}{results[name]['ratio']:8.2f}", flush=True)
    print(table(results))
    save(options.output, results, {"rounds": options.rounds, "threads": options.threads, "quick": options.quick})
    return 0


if __name__ == "__main__":
    sys.exit(main())
