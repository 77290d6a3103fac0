"""A plugin for pytest: tests run on an AMD GPU whose machine code is executed here.

``EMULATED_TARGET=gfx942 python -m pytest -p tools.amd_executor.plugin PATHS``. The project's stand-in for libamdhip64
is loaded before hip-python looks for the real one, with the executor attached. All code above it is the same as on a
GPU.

The last lines show how much was executed, in all processes of pytest-xdist together. If that is nothing, nothing was
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
"""The key under which a worker of pytest-xdist passes its counts on."""

_counts: Counter[str] = Counter()
"""The tests, launches and instructions of finished workers, to which this process's own are added."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Deselect tests that need the CPU device."""
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
    """Show the executor's messages for a failed test."""
    outcome = yield
    report = outcome.get_result()
    if report.failed and _executor.errors:
        report.sections.append(("amd_executor", "\n".join(_executor.errors)))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the counts of a worker of pytest-xdist; one that crashed has none."""
    _counts.update(getattr(node, "workeroutput", {}).get(_OUTPUT, {}))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Pass the counts on. A run that succeeded without executing anything fails."""
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
