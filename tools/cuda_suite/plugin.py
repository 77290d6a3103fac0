"""The pytest plugin in the process of a test module: poses, serves the tests, and records results at once.

Each line of the file that `RECORD` names is one event, so that nothing is lost if the process dies.
"""

from __future__ import annotations

import importlib
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
"""pytest's outcomes of tests that pass although they are expected to fail."""

PATIENCE = {"FUTURE_TIMEOUT": 60}
"""Constants of test modules that limit how long they wait for a child process, with the seconds to use here. One of
them allows four seconds, which is too short to import Numba on a busy machine."""

serve(Path(os.environ[TESTS]))
for _name in chosen().imported:
    importlib.import_module(_name)


def _write(**event: Any) -> None:
    with open(os.environ[RECORD], "a") as record:
        record.write(json.dumps(event) + "\n")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Deselect tests that ran before and, if requested, those that do not apply, which are recorded. Make the others as
    patient as `PATIENCE` says."""
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
    """A module that cannot be imported has no tests to name, so it is recorded as the failure itself."""
    if report.failed:
        _write(event="result", id=report.nodeid, outcome="failed", message=_message(report), seconds=0.0)
    elif report.skipped:
        _write(event="result", id=report.nodeid, outcome="skipped", message=_message(report), seconds=0.0)


def pytest_runtest_logstart(nodeid: str) -> None:
    """Record which test begins, in case it crashes the process."""
    _write(event="start", id=nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """The result of a test is that of its call, or of the phase around it that failed."""
    if report.when == "call" or not report.passed:
        message = _message(report)
        _write(
            event="result", id=report.nodeid, outcome=_outcome(report, message), message=message,
            seconds=report.duration,
        )  # fmt: skip


def _outcome(report: pytest.TestReport, message: str) -> str:
    """The result in *report*. For a test that is expected to fail, whether it did, or whether that is a fault here."""
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
