"""The process that runs one benchmark in several forms: ``python -m benchmarks.form_worker BENCHMARK QUICK ROUNDS``.

It reads the requests from its input, as JSON: environment variables by name. It makes the data once and then forks a
process for each request. All have their arrays at the same addresses, and small ones in the same memory, so what their
times differ by is not where that of each happens to lie. Its only answer is a line of JSON: the seconds of each round
by request, without those that cannot run the kernel.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import IO

from benchmarks.case import Case
from benchmarks.problem import Solution
from benchmarks.worker import LEAST_SECONDS, find, measure, serve

LARGE_BYTES = 4 << 20
"""Arrays from this size on are on large pages of the system; their place in the caches differs little."""


class FormProcess:
    """A fork of this process that runs *case* under *variables* of the environment, and waits between rounds."""

    def __init__(self, case: Case, variables: Mapping[str, str], least: float) -> None:
        own_reader, its_writer = os.pipe()
        its_reader, own_writer = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads: no library that the children use has any
            self._pid = os.fork()
        if not self._pid:
            os.close(own_reader)
            os.close(own_writer)
            _run(case, variables, os.fdopen(its_reader), os.fdopen(its_writer, "w"), least)
        os.close(its_reader)
        os.close(its_writer)
        self._answers, self._commands = os.fdopen(own_reader), os.fdopen(own_writer, "w")
        self.runs = self._receive().get("right") is True
        """Whether the kernel can be run so, and computes what NumPy does."""

    def seconds(self) -> float:
        """The processor time of an operation in one round."""
        return float(self._ask("run")["cpu"])  # type: ignore[arg-type]

    def stop(self) -> None:
        """End it, and wait for that."""
        with suppress(BrokenPipeError):  # it has ended already
            print("quit", file=self._commands, flush=True)
        os.waitpid(self._pid, 0)

    def _ask(self, command: str) -> dict[str, object]:
        print(command, file=self._commands, flush=True)
        return self._receive()

    def _receive(self) -> dict[str, object]:
        line = self._answers.readline()
        return json.loads(line) if line else {}


def _run(case: Case, variables: Mapping[str, str], commands: IO[str], answers: IO[str], least: float) -> None:
    """What the fork does; it does not return."""
    status = 1
    try:
        os.environ.update(variables)
        measure(case)  # compiles
        case.check()
        print(json.dumps({"right": True}), file=answers, flush=True)
        serve(case, commands, answers, least)
        status = 0
    except Exception as error:
        print(f"{dict(variables)}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(status)


def take_turns(
    case: Case, requests: Mapping[str, Mapping[str, str]], rounds: int, least: float
) -> dict[str, list[float]]:
    """Seconds of *case* in each of *rounds* rounds under each of *requests* that can run it."""
    processes = {}
    for request, variables in requests.items():  # one after another, as compiling is work, too
        process = FormProcess(case, variables, least)
        if process.runs:
            processes[request] = process
        else:
            process.stop()
    order = list(processes)
    taken: dict[str, list[float]] = {request: [] for request in order}
    for turn in range(rounds):
        first = turn % len(order)
        for request in order[first:] + order[:first]:
            taken[request].append(processes[request].seconds())
    for process in processes.values():
        process.stop()
    return taken


def share_memory(case: Solution) -> None:
    """Let forks of this process have the arrays of *case* in the same memory, but for large ones, which would lose
    their large pages."""
    for held in vars(case.held).values():
        if held.nbytes < LARGE_BYTES:
            held.get_ipc_handle()  # which moves it to memory that can be shared


def main(name: str, size: str, rounds: str) -> None:
    """Answer on what was the output, which is for the answer alone: what a library prints goes where errors go."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    is_quick = size == "quick"
    case = find(name).implementations["hip"](is_quick)
    if isinstance(case, Solution):
        share_memory(case)
    taken = take_turns(case, json.load(sys.stdin), int(rounds), 0.0 if is_quick else LEAST_SECONDS)
    print(json.dumps(taken), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
