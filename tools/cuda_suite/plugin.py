"""What pytest loads in the process of a test module: poses, serves the tests, and writes down what happens, at once.

Each line of the file that `RECORD` names is one event, so that nothing is lost when the process dies.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tools.cuda_suite import expectations
from tools.cuda_suite.plugin_names import LEAVE_OUT, RECORD, TESTS
from tools.cuda_suite.serve import serve
from tools.cuda_suite.suites import chosen

UNEXPECTED = ("[XPASS(strict)]", "Unexpected success", "Failed: Unexpected success")
"""What pytest says of tests that pass and are expected to fail."""

PATIENCE = {"FUTURE_TIMEOUT": 60}
"""Constants of test modules that limit how long they wait for a process that they started, and the seconds they get
here: four, which one of them allows, are too few to import Numba where the machine does other things, too."""

serve(Path(os.environ[TESTS]))


def _write(**event: Any) -> None:
    with open(os.environ[RECORD], "a") as record:
        record.write(json.dumps(event) + "\n")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what ran before and, where that was asked for, what does not apply; the latter is written down. Let
    the others be as patient as `PATIENCE` says."""
    for item in items:
        module = getattr(item, "module", None)
        for name, seconds in PATIENCE.items():
            if hasattr(module, name):
                setattr(module, name, seconds)
    order = json.loads(Path(os.environ[LEAVE_OUT]).read_text())
    done = set(order["done"])
    items[:] = [item for item in items if item.nodeid not in done]
    if not order["all"]:
        not_applicable = expectations.Index(expectations.read("not_applicable"))
        _write(event="left out", ids=[item.nodeid for item in items if not_applicable.find(item.nodeid)])
        items[:] = [item for item in items if not not_applicable.find(item.nodeid)]


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A module that cannot be imported has no tests to name: it is the failure itself."""
    if report.failed:
        _write(event="result", id=report.nodeid, outcome="failed", message=_message(report), seconds=0.0)
    elif report.skipped:
        _write(event="result", id=report.nodeid, outcome="skipped", message=_message(report), seconds=0.0)


def pytest_runtest_logstart(nodeid: str) -> None:
    """Say which test is under way, for when it takes the process with it."""
    _write(event="start", id=nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A test is what its call was, or the phase around it that went wrong."""
    if report.when == "call" or not report.passed:
        message = _message(report)
        _write(
            event="result", id=report.nodeid, outcome=_outcome(report, message), message=message,
            seconds=report.duration,
        )  # fmt: skip


def _outcome(report: pytest.TestReport, message: str) -> str:
    """What *report* says; of a test that is expected to fail, whether it did, or whether there is its fault here."""
    if not chosen().expects_own_faults:
        if hasattr(report, "wasxfail"):
            return "failed" if report.passed else "passed"  # as the test expects, or not
        return report.outcome
    if hasattr(report, "wasxfail"):
        return "passed" if report.passed else "skipped"
    return "passed" if report.failed and message.startswith(UNEXPECTED) else report.outcome


def _message(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The reason of a skip, or the last lines of a failure."""
    if report.passed:
        return ""
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2]
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    return text if len(text) < 3000 else text[:1500] + "\n...\n" + text[-1500:]
