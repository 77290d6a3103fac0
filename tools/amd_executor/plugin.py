"""A plugin for pytest: tests run on an AMD GPU whose machine code is executed here.

``EMULATED_TARGET=gfx942 python -m pytest -p tools.amd_executor.plugin PATHS``. The project's stand-in for libamdhip64
is loaded before hip-python looks for the real one, and the executor attached to it; all above is what runs on a GPU.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest

from tools.amd_executor.attachment import UnknownTargetError, attach

TARGET = os.environ.get("EMULATED_TARGET", "gfx942")
try:
    _standin, _executor = attach(TARGET)
except UnknownTargetError as error:
    raise pytest.UsageError(f"EMULATED_TARGET: {error}") from None


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
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """Show what the executor said of a test that failed."""
    outcome = yield
    report = outcome.get_result()
    if report.failed and _executor.errors:
        report.sections.append(("amd_executor", "\n".join(_executor.errors)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"{TARGET}: {_executor.summary()}")
