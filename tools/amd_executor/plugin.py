"""A plugin for pytest: tests run on an AMD GPU whose machine code is executed here.

``EMULATED_TARGET=gfx942 python -m pytest -p tools.amd_executor.plugin PATHS``. The project's stand-in for libamdhip64
is loaded before hip-python looks for the real one, and the executor attached to it; all above is what runs on a GPU.

The last lines say how much was executed, in all processes of pytest-xdist together. Where that is nothing, nothing was
tested, and the run fails.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest

from tools.amd_executor.attachment import UnknownTargetError, attach

TARGET = os.environ.get("EMULATED_TARGET", "gfx942")
try:
    _standin, _executor = attach(TARGET)
except UnknownTargetError as error:
    raise pytest.UsageError(f"EMULATED_TARGET: {error}") from None

_OUTPUT = "amd_executor"
"""The name under which a process of pytest-xdist hands its counts to the one that started it."""

_counts: Counter[str] = Counter()
"""Tests, launches and instructions of the processes that have ended; this one's own come last."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what says that it needs the CPU device."""
    for item in items:
        marker = item.get_closest_marker("cpu_device")
        if marker is not None:
            item.add_marker(pytest.mark.skip(reason=f"needs the CPU device: {marker.args[0]}"))


def pytest_runtest_setup() -> None:
    _standin.recover()
    _executor.errors.clear()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol() -> Generator[None, Any, None]:
    """Count the tests, and those that executed something."""
    before = _executor.instructions
    yield
    _counts["tests"] += 1
    _counts["executing"] += _executor.instructions > before


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """Show what the executor said of a test that failed."""
    outcome = yield
    report = outcome.get_result()
    if report.failed and _executor.errors:
        report.sections.append(("amd_executor", "\n".join(_executor.errors)))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the counts of a process of pytest-xdist; one that has crashed leaves none."""
    _counts.update(getattr(node, "workeroutput", {}).get(_OUTPUT, {}))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the counts on; where all went well without anything having been executed, it did not."""
    _counts.update(launches=_executor.launches, instructions=_executor.instructions)
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[_OUTPUT] = dict(_counts)
    elif _counts["tests"] and not _counts["instructions"] and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    amount = f"{_counts['launches']:,} launches, {_counts['instructions']:,} instructions of waves"
    tests = f"in {_counts['executing']:,} of {_counts['tests']:,} tests"
    terminalreporter.write_line(f"{TARGET}: {amount}, {tests}")
    if _counts["tests"] and not _counts["instructions"]:
        terminalreporter.write_line(f"{TARGET}: nothing was executed, so nothing was tested", red=True)
