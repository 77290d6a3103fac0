"""A plugin for pytest that records the result of each test at once.

The file that ``GPU_REPORT_RESULTS`` names gets a line of JSON when a test begins, and one when it has ended. Tests that
are already in it are skipped, so that a run continues after a test that crashed the process. After a failure that makes
the device unusable for its process, the process ends.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path

import pytest

from hip_runtime.drivers.hip.errors import DeviceFailure

RESULTS = Path(os.environ["GPU_REPORT_RESULTS"])
_LONGEST_TEXT = 20_000
_ORDER = ("passed", "skipped", "failed")

_worst: dict[str, dict[str, object]] = {}
_failed_devices: set[str] = set()


def write(line: dict[str, object]) -> None:
    with RESULTS.open("a") as file:
        file.write(json.dumps(line) + "\n")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    known = {json.loads(line)["test"] for line in RESULTS.read_text().splitlines()} if RESULTS.exists() else set()
    done = [item for item in items if item.nodeid in known]
    items[:] = [item for item in items if item.nodeid not in known]
    config.hook.pytest_deselected(items=done)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        write({"test": report.nodeid, "outcome": "failed", **_explain(report), "seconds": 0.0})
    elif report.skipped and report.longrepr is not None:
        write({"test": report.nodeid, "outcome": "skipped", **_explain(report), "seconds": 0.0})


def pytest_runtest_logstart(nodeid: str) -> None:
    write({"test": nodeid, "outcome": "begun"})
    _worst[nodeid] = {"test": nodeid, "outcome": "passed", "seconds": 0.0}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Detect that the device has failed."""
    if call.excinfo is not None and call.excinfo.errisinstance(DeviceFailure):
        _failed_devices.add(item.nodeid)
    return (yield)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    if item.nodeid in _failed_devices:
        item.session.shouldstop = "the device has failed, and goes on in another process"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    found = _worst[report.nodeid]
    seconds = float(str(found["seconds"])) + report.duration
    if _ORDER.index(report.outcome) > _ORDER.index(str(found["outcome"])):
        found.update(outcome=report.outcome, **_explain(report))
    found["seconds"] = seconds


def pytest_runtest_logfinish(nodeid: str) -> None:
    write(_worst.pop(nodeid))


def _explain(report: pytest.CollectReport | pytest.TestReport) -> dict[str, str]:
    """Why it failed or was skipped: in one line, and in full."""
    if report.skipped:
        place = report.longrepr
        reason = place[2] if isinstance(place, tuple) else str(getattr(report, "wasxfail", "") or "expected to fail")
        return {"cause": str(reason).removeprefix("Skipped: ")}
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = (crash.message if crash is not None else report.longreprtext).strip().splitlines() or ["no reason given"]
    text = "\n".join([report.longreprtext, *(f"--- {title}\n{body}" for title, body in report.sections)])
    return {"cause": lines[0] if crash is not None else lines[-1], "text": text[-_LONGEST_TEXT:]}
