"""Runs the implementations of a benchmark in turns.

Each has a process of its own, so that none has the threads, the allocator or the warm caches of another; and they take
turns round by round, so that a machine that grows slow, or warm, does so for all of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any

from benchmarks.case import Benchmark

ROOT = Path(__file__).resolve().parent.parent


class BenchmarkError(Exception):
    """An implementation that failed, or whose result is wrong."""


class Worker:
    """A process that runs one implementation; it is stopped at the end of a ``with`` block."""

    def __init__(self, benchmark: str, implementation: str, quick: bool) -> None:
        self.name = f"{benchmark}/{implementation}"
        command = [sys.executable, "-m", "benchmarks.worker", benchmark, implementation, "quick" if quick else "full"]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

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
        """Have *command* done; the answer to it."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended: there will be no answer either
            self._process.stdin.write(command + "\n")
        return self.receive()

    def check(self) -> None:
        """`BenchmarkError` if the implementation computes something else than NumPy."""
        wrong = self.ask("check").get("wrong")
        if wrong is not None:
            raise BenchmarkError(f"{self.name} is wrong: {wrong}")


def run(benchmark: Benchmark, *, rounds: int, quick: bool = False) -> dict[str, Any]:
    """Time each implementation of *benchmark* *rounds* times, in turns; each is checked before and after.

    Returns, for each implementation, its device, the seconds of an operation in every round (``wall`` and ``cpu``, the
    processor time of all its threads), their medians, and the ratios of the medians to those of the peer.
    """
    names = list(benchmark.implementations)
    with ExitStack() as stack:
        workers = {name: stack.enter_context(Worker(benchmark.name, name, quick)) for name in names}
        devices = {name: worker.receive()["device"] for name, worker in workers.items()}
        for worker in workers.values():
            worker.check()
        times: dict[str, list[dict[str, float]]] = {name: [] for name in names}
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
