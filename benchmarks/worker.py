"""The process that runs one implementation, told what to do over pipes, one line of JSON in each direction.

``python -m benchmarks.worker BENCHMARK IMPLEMENTATION QUICK``; commands are ``run``, ``check`` and ``quit``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import IO

from benchmarks.case import Case
from benchmarks.catalog import BENCHMARKS


def measure(case: Case) -> dict[str, float]:
    """Seconds of one operation: by the clock, and of processor time of all threads of this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    case.run()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    case.settle()
    return {"wall": wall / case.operations, "cpu": cpu / case.operations}


def answer(case: Case, command: str) -> dict[str, object]:
    """Do *command*; what to answer."""
    if command == "run":
        return dict(measure(case))
    if command == "check":
        try:
            case.check()
        except AssertionError as error:
            return {"wrong": str(error)}
        return {"right": True}
    raise ValueError(f"unknown command {command!r}")


def serve(case: Case, commands: IO[str], answers: IO[str]) -> None:
    """Answer *commands*, a line each, until ``quit`` or the end of them."""
    for line in commands:
        command = line.strip()
        if command == "quit":
            return
        print(json.dumps(answer(case, command)), file=answers, flush=True)


def main(benchmark: str, implementation: str, quick: str) -> None:
    # The pipe is for answers alone: whatever a library prints goes where errors go.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    case = BENCHMARKS[benchmark].implementations[implementation](quick == "quick")
    measure(case)  # compiles
    print(json.dumps({"device": case.device()}), file=answers, flush=True)
    serve(case, sys.stdin, answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
