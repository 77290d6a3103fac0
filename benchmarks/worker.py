"""The process that runs one implementation. It gets commands and answers through pipes, one line of JSON each.

``python -m benchmarks.worker BENCHMARK IMPLEMENTATION QUICK``; commands are ``run``, ``check`` and ``quit``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import IO

from benchmarks.case import Benchmark, Case
from benchmarks.catalog import BENCHMARKS

LEAST_SECONDS = 0.1
"""What a round takes at least, but for quick ones. Linux counts the time of a thread that goes on running, as those of
OpenMP do between two calls, every 4 ms only; in rounds that are not much longer most of that time would be missing."""


def measure(case: Case, least: float = 0.0) -> dict[str, float]:
    """Seconds of one operation: by the clock, and of processor time of all threads of this process. It is done until
    *least* seconds are over, and once at least."""
    wall, cpu = time.perf_counter(), time.process_time()
    runs = 0
    while not runs or time.perf_counter() - wall < least:
        case.run()
        runs += 1
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    case.settle()
    operations = runs * case.operations
    return {"wall": wall / operations, "cpu": cpu / operations}


def answer(case: Case, command: str, least: float) -> dict[str, object]:
    """Do *command*; what to answer. A round takes *least* seconds."""
    if command == "run":
        return dict(measure(case, least))
    if command == "check":
        try:
            case.check()
        except AssertionError as error:
            return {"wrong": str(error)}
        return {"right": True}
    raise ValueError(f"unknown command {command!r}")


def serve(case: Case, commands: IO[str], answers: IO[str], least: float = 0.0) -> None:
    """Answer *commands*, a line each, until ``quit`` or the end of them."""
    for line in commands:
        command = line.strip()
        if command == "quit":
            return
        print(json.dumps(answer(case, command, least)), file=answers, flush=True)


def find(name: str) -> Benchmark:
    """The benchmark called *name*, or the kernel of the users' collection."""
    if name in BENCHMARKS:
        return BENCHMARKS[name]
    from benchmarks.user_kernels.catalog import KERNELS  # only then, as it reads all of them

    return KERNELS[name]


def main(benchmark: str, implementation: str, quick: str) -> None:
    # The pipe is for answers alone: whatever a library prints goes where errors go.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    case = find(benchmark).implementations[implementation](quick == "quick")
    measure(case)  # compiles
    print(json.dumps({"device": case.device()}), file=answers, flush=True)
    serve(case, sys.stdin, answers, 0.0 if quick == "quick" else LEAST_SECONDS)


if __name__ == "__main__":
    main(*sys.argv[1:])
