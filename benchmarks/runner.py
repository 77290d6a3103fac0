"""Runs the implementations of a benchmark in turns.

Each has a separate process, so that none uses the threads, the allocator or the warm caches of another. They take turns
round by round, so that a change in the machine's speed affects all of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any

from benchmarks.case import Benchmark
from benchmarks.environments import ON_GPUS, REQUIREMENTS, Environment

ROOT = Path(__file__).resolve().parent.parent

OWN = Environment(sys.executable)
"""The environment of this process, which has our packages and Numba."""


class BenchmarkError(Exception):
    """An implementation that failed, or whose result is wrong."""


class Worker:
    """A process that runs one implementation. It is stopped at the end of a ``with`` block. What it writes to stderr
    goes where that of this process does, or to *errors* as `subprocess` takes it."""

    def __init__(
        self, benchmark: str, implementation: str, quick: bool, environment: Environment = OWN,
        errors: int | None = None,
    ) -> None:  # fmt: skip
        self.name = f"{benchmark}/{implementation}"
        size = "quick" if quick else "full"
        command = [environment.python, "-m", "benchmarks.worker", benchmark, implementation, size]
        variables = {**os.environ, **environment.variables}
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, bufsize=1,
            env=variables,
        )  # fmt: skip

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self._process.kill()
        self._process.communicate(None if self._process.poll() is not None else "quit\n")

    def receive(self) -> dict[str, Any]:
        """The next answer; `BenchmarkError` if the process has ended instead."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise BenchmarkError(f"{self.name} ended with status {self._process.wait()}; its errors are above")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, command: str) -> dict[str, Any]:
        """Send *command*; returns the answer."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, so it does not answer
            self._process.stdin.write(command + "\n")
        return self.receive()

    def check(self) -> None:
        """`BenchmarkError` if the implementation's result differs from NumPy's."""
        wrong = self.ask("check").get("wrong")
        if wrong is not None:
            raise BenchmarkError(f"{self.name} is wrong: {wrong}")


def unmeasured(benchmark: Benchmark, environments: Mapping[str, Environment]) -> dict[str, str]:
    """The peers that `run` leaves out, with reasons."""
    reasons = dict(benchmark.unable)
    for name in benchmark.implementations:
        if name in ON_GPUS and name not in environments:
            reasons[name] = "for AMD GPUs: nox -s gpu"
        elif name in REQUIREMENTS and name not in environments:
            reasons[name] = "its environment was not made"
        elif name in environments and environments[name].missing:
            reasons[name] = environments[name].missing
    return reasons


def run(
    benchmark: Benchmark, *, rounds: int, quick: bool = False, environments: Mapping[str, Environment] | None = None,
    processes: int = 1,
) -> dict[str, Any]:  # fmt: skip
    """Time each implementation of *benchmark* *rounds* times, in turns. Each is checked before and after. This is
    repeated with *processes* processes, one after another, as memory addresses affect the speed of each.

    Peers with separate installations run in their *environments*; `unmeasured` tells which are left out.

    Returns, for each implementation, its device, the seconds of an operation in every round (``wall`` and ``cpu``, the
    processor time of all its threads), their medians, and the ratios of the medians to those of the peer.
    """
    environments = environments or {}
    left_out = unmeasured(benchmark, environments)
    names = [name for name in benchmark.implementations if name not in left_out]
    devices: dict[str, str] = {}
    times: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for _ in range(processes):
        with ExitStack() as stack:
            workers = {}
            for name in names:  # one after another, as compiling is work, too
                worker = Worker(benchmark.name, name, quick, environments.get(name, OWN))
                workers[name] = stack.enter_context(worker)
                devices[name] = worker.receive()["device"]
            for worker in workers.values():
                worker.check()
            for turn in range(rounds):
                first = turn % len(names)
                for name in names[first:] + names[:first]:
                    times[name].append(workers[name].ask("run"))
            for worker in workers.values():
                worker.check()
    return summarise(benchmark.peer, devices, times)


def summarise(peer: str, devices: dict[str, str], times: dict[str, Sequence[dict[str, float]]]) -> dict[str, Any]:
    """Medians of *times*, and their ratios to those of *peer*."""
    medians = {name: {kind: median(time[kind] for time in rounds) for kind in ("wall", "cpu")}
               for name, rounds in times.items()}  # fmt: skip
    return {
        name: {
            "device": devices[name],
            "median": medians[name],
            "ratio": {kind: medians[name][kind] / medians[peer][kind] for kind in ("wall", "cpu")},
            "rounds": list(times[name]),
        }
        for name in times
    }
