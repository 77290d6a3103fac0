"""Runs tests once for each mutant, in forks of a process that has imported them: a script for the folder of mutants.

``python forks.py PROCESSES ARGUMENT...`` takes the arguments of pytest, reads the names of mutants, and writes the
names of those with which all tests pass. It fails where a test fails without any mutant.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress

import pytest

PATIENCE = 5
"""How many times as long as without a mutant the tests may take; those that take longer hang."""

PAUSE = 0.02


class Fork:
    """A process of its own in which the tests run with *mutant*, for *limit* seconds at most."""

    def __init__(self, mutant: str, arguments: list[str], limit: float) -> None:
        self.mutant = mutant
        self._started = time.monotonic()
        self._end = self._started + limit
        self._status: int | None = None
        self._process = os.fork()
        if not self._process:
            os.setsid()
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(nowhere, stream)
            os.environ["MUTANT_UNDER_TEST"] = mutant
            status = 1
            try:
                status = int(pytest.main(arguments))
            finally:
                os._exit(status)

    def is_done(self) -> bool:
        """Whether the tests are over, or were ended as they took too long."""
        late = time.monotonic() > self._end
        if late:
            os.kill(self._process, signal.SIGKILL)
        process, status = os.waitpid(self._process, 0 if late else os.WNOHANG)
        if not process:
            return False
        self._status = status
        self.seconds = time.monotonic() - self._started
        with suppress(ProcessLookupError):
            os.killpg(self._process, signal.SIGKILL)  # what the tests started
        return True

    @property
    def passes(self) -> bool:
        """Whether no test noticed anything."""
        return self._status == 0


def wait_for(fork: Fork) -> Fork:
    """*fork*, when it is done."""
    while not fork.is_done():
        time.sleep(PAUSE)
    return fork


def main() -> int:
    """See above."""
    processes, arguments = int(sys.argv[1]), ["-q", "-x", "-p", "no:cacheprovider", *sys.argv[2:]]
    standard_output, sys.stdout = sys.stdout, sys.stderr
    if pytest.main(["--collect-only", "-qqq", *arguments]):
        return 1
    clean = wait_for(Fork("", arguments, 3600))
    if not clean.passes:
        print("the tests fail without any mutant", file=sys.stderr)
        return 1
    if wait_for(Fork("fail", arguments, 3600)).passes:
        print("the tests do not come to the mutants", file=sys.stderr)
        return 1
    waiting = list(reversed(sys.stdin.read().split()))
    running: list[Fork] = []
    while waiting or running:
        while waiting and len(running) < processes:
            running.append(Fork(waiting.pop(), arguments, PATIENCE * (clean.seconds + 1)))
        for fork in [fork for fork in running if fork.is_done()]:
            running.remove(fork)
            if fork.passes:
                print(fork.mutant, file=standard_output, flush=True)
        time.sleep(PAUSE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
