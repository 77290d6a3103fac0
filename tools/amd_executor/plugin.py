"""A plugin for pytest: tests run on an AMD GPU whose machine code is executed here.

``EMULATED_TARGET=gfx942 python -m pytest -p tools.amd_executor.plugin PATHS``. The project's stand-in for libamdhip64
is loaded before hip-python looks for the real one, and the executor attached to it; all above is what runs on a GPU.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tools.amd_executor.decoding import FAMILIES
from tools.amd_executor.hook import StandinExecutor

TARGET = os.environ.get("EMULATED_TARGET", "gfx942")
if TARGET not in FAMILIES:
    raise pytest.UsageError(f"EMULATED_TARGET={TARGET}: one of {', '.join(FAMILIES)}")
os.environ.update(NUMBA_HIP_DEVICE="hip", STANDIN_TARGET=TARGET, STANDIN_DEVICES="1")
for _name in ("LOW_OCCUPANCY", "IMPLICIT_COPY"):  # the launches of tests are small, their arrays on the host
    os.environ.setdefault(f"NUMBA_HIP_{_name}_WARNINGS", "0")

_TESTS = Path(__file__).parents[2] / "packages" / "hip-runtime" / "tests"
sys.path.append(str(_TESTS))

import hip_standin  # noqa: E402 - found in the folder above

hip_standin.MEMORY = 4 << 30
_standin = hip_standin.standin()
_executor = StandinExecutor(_standin.ranges)
_standin.attach(_executor)


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
def pytest_runtest_makereport(item: pytest.Item) -> object:
    """Show what the executor said of a test that failed."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.failed and _executor.errors:
        report.sections.append(("amd_executor", "\n".join(_executor.errors)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(
        f"{TARGET}: {_executor.launches} launches, {_executor.instructions} instructions of waves"
    )
