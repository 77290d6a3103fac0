"""A trial: tests that run in a fork of the process that collected them, with or without a mutant."""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from mmap import mmap
from typing import Any, NoReturn

import pytest

PATIENCE = 5
"""A test hangs if it takes more than this many times as long as without a mutant."""

SECONDS = 10.0
"""Seconds that are added to that, as other programs may use the processors."""

COLLECTION = 600.0
"""The seconds that tests may take without a mutant."""

SHARED = 1 << 20
"""The bytes that a trial shares with the process that collected the tests, enough for the lines of any module."""

COUNT = struct.Struct("=q")

_STARTS = ("os.fork", "os.posix_spawn", "subprocess.Popen")
"""The events of Python's auditing when a process starts another."""


class Trial:
    """*tests* in a fork, one after another until one fails.

    *limits* gives the seconds that each may take. With *files*, their lines that are run are recorded.
    """

    def __init__(
        self, mutant: str, tests: Sequence[pytest.Item], limits: Sequence[float], files: Sequence[str] = ()
    ) -> None:
        self.mutant = mutant
        self.tests = tests
        self._limits = limits
        self._shared = mmap(-1, SHARED)  # the number of tests that passed, then the observation
        self._passed, self._since = 0, time.monotonic()
        self._process = os.fork()
        if not self._process:
            self._run(files)

    def is_over(self) -> bool:
        """Whether the tests have ended, or were killed because one took too long."""
        passed = self._count()
        if passed > self._passed:
            self._passed, self._since = passed, time.monotonic()
        at = min(passed, len(self.tests) - 1)
        self.hangs = time.monotonic() - self._since > self._limits[at]
        if self.hangs:
            os.kill(self._process, signal.SIGKILL)
        process, self._status = os.waitpid(self._process, 0 if self.hangs else os.WNOHANG)
        if not process:
            return False
        with suppress(ProcessLookupError):
            os.killpg(self._process, signal.SIGKILL)  # child processes of the tests
        self._passed = self._count()
        return True

    @property
    def passes(self) -> bool:
        """Whether no test detected the mutant."""
        return self._status == 0 and not self.hangs

    @property
    def noticed_by(self) -> pytest.Item:
        """The test that failed."""
        return self.tests[min(self._passed, len(self.tests) - 1)]

    def told(self) -> dict[str, Any]:
        """The `Observation` of the process, if it ended normally, and the messages of a failure."""
        text = self._shared[COUNT.size :].partition(b"\0")[0]
        return dict(json.loads(text)) if text else {}

    def _count(self) -> int:
        return int(COUNT.unpack_from(self._shared)[0])

    def _run(self, files: Sequence[str]) -> NoReturn:
        status, failures = 1, Failures()
        try:
            os.setsid()
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(nowhere, stream)
            os.environ["MUTANT_UNDER_TEST"] = self.mutant
            if files:
                observation = Observation(files)
                status = observation.make(lambda: self._run_tests(failures))
                told = {**observation.told(), "failure": failures.text[-SHARED // 4 :]}
                text = json.dumps(told, default=sorted).encode()
                self._shared[COUNT.size : COUNT.size + len(text)] = text
            else:
                status = self._run_tests(failures)
        finally:
            os._exit(status)

    def _run_tests(self, failures: Failures) -> int:
        """0 where all of them pass."""
        for number, (item, following) in enumerate(zip(self.tests, [*self.tests[1:], None], strict=True), 1):
            item.config.pluginmanager.register(failures, "failures")
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            item.config.pluginmanager.unregister(failures)
            if failures.text:
                return 1
            COUNT.pack_into(self._shared, 0, number)
        return 0


class Failures:
    """A plugin of pytest that stores the message of a failed test."""

    text = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Called by pytest for each part of a test."""
        if report.failed:
            self.text = report.longreprtext or report.nodeid


class Observation:
    """What tests do: the lines of *files* that they run, whether they start processes, and how long they take.

    A test that overflows the stack, after which Python stops tracing, counts as one that starts processes, as the rest
    of its lines is not seen.
    """

    def __init__(self, files: Sequence[str]) -> None:
        self._lines: dict[str, set[int]] = {file: set() for file in files}
        self._starts = False
        self._seconds = 0.0

    def make(self, function: Callable[[], int]) -> int:
        """The result of *function*, which is observed. The auditing of processes cannot be turned off afterwards."""
        sys.addaudithook(self._hear)
        threading.settrace(self._trace)
        sys.settrace(self._trace)
        start = time.monotonic()
        try:
            return function()
        finally:
            self._starts |= sys.gettrace() != self._trace
            sys.settrace(None)
            self._seconds = time.monotonic() - start

    def told(self) -> dict[str, Any]:
        """As JSON, with sets as lists."""
        return {"lines": self._lines, "starts": self._starts, "seconds": self._seconds}

    def _hear(self, event: str, _: object) -> None:
        if event in _STARTS:
            self._starts = True

    def _trace(self, frame: Any, event: str, _: object) -> Any:
        lines = self._lines.get(frame.f_code.co_filename)
        if lines is None:
            return None
        lines.add(frame.f_lineno)

        def note(frame: Any, event: str, _: object) -> Any:
            lines.add(frame.f_lineno)
            return note

        return note
