"""Runs test modules, each in a separate process, so that a crash or a hang only costs the test in which it happens."""

from __future__ import annotations

import ast
import contextlib
import json
import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tools.cuda_suite import plugin_names
from tools.cuda_suite.expectations import Index, read
from tools.cuda_suite.suites import SUITE, chosen
from tools.cuda_suite.worker import run_tests

POLL_SECONDS = 0.1

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tools.cuda_suite.preload"])


@dataclass(frozen=True)
class Result:
    """The result of one test. ``outcome``: passed, failed, skipped, crashed, hung or left out."""

    outcome: str
    message: str
    seconds: float

    @property
    def bad(self) -> bool:
        """Whether the test ran and did not pass."""
        return self.outcome in ("failed", "crashed", "hung")


Results = dict[str, Result]


def test_modules(tests: Path, wanted: Iterable[str]) -> list[str]:
    """The test modules in *tests*, as ``cudapy/test_array.py``: all, or those with one of *wanted* in their path."""
    words = list(wanted)
    found = sorted(str(path.relative_to(tests)) for path in tests.rglob("test_*.py"))
    found = [module for module in found if not module.startswith(tuple(f"{name}/" for name in chosen().left_out))]
    return [module for module in found if not words or any(word in module for word in words)]


def quick_modules() -> list[str]:
    """The test modules in the list ``quick``: several hundred of the quicker tests from all areas."""
    lines = (chosen().expected / "quick.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def run_modules(
    tests: Path,
    modules: list[str],
    *,
    everything: bool,
    jobs: int,
    seconds: float,
    done: Callable[[str, Results], None],
) -> dict[str, Results]:
    """Run *modules*, *jobs* at a time. A test may take *seconds*. *everything* also runs tests that do not apply.

    *done* is called for each module when it has ended.
    """
    results: dict[str, Results] = {}
    with ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(_run_module, tests, module, everything, seconds): module for module in modules}
        for future in as_completed(running):
            module = running[future]
            results[module] = future.result()
            done(module, results[module])
    return {module: results[module] for module in modules}


def _run_module(tests: Path, module: str, everything: bool, seconds: float) -> Results:
    """Run a module until each of its tests has a result: after a crash, the rest is run again."""
    results: Results = {}
    if not everything and Index(read("not_applicable")).find(module) is not None:
        return {test: Result("left out", "", 0.0) for test in _written_tests(tests, module)}
    with tempfile.TemporaryDirectory(prefix="cuda-suite-") as folder:
        while True:
            before = len(results)
            ended = _run_rest(tests, module, Path(folder), results, everything, seconds)
            if ended or len(results) == before:
                return results


def _written_tests(tests: Path, module: str) -> list[str]:
    """The ids of the tests in the source of *module*, which may not be importable here."""
    found = []
    for node in ast.parse((tests / module).read_text()).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            found.append(f"{module}::{node.name}")
        elif isinstance(node, ast.ClassDef):
            methods = [method.name for method in node.body if isinstance(method, ast.FunctionDef)]
            found += [f"{module}::{node.name}::{name}" for name in methods if name.startswith("test")]
    return found or [module]


def _run_rest(tests: Path, module: str, folder: Path, results: Results, everything: bool, seconds: float) -> bool:
    """Run the tests that have no result yet, and add theirs; returns whether the process ended normally."""
    process, record = _start(tests, module, folder, {"done": list(results), "all": everything})
    hung = _wait(process, record, seconds)
    written = folder / "output"
    output = written.read_text(errors="replace")[-2000:] if written.exists() else ""
    current = ""
    for event in _events(record):
        if event["event"] == "left out":
            results.update({test: Result("left out", "", 0.0) for test in event["ids"]})
        elif event["event"] == "start":
            current = event["id"]
        elif event["event"] == "result":
            results[event["id"]] = _worse(results.get(event["id"]), event)
            current = ""
    if not hung and process.exitcode in (0, 1, 2, 5):
        return True
    outcome = "hung" if hung else "crashed"
    message = f"no end after {seconds:.0f} s" if hung else f"the process ended with code {process.exitcode}: {output}"
    results[current or module] = Result(outcome, message, seconds if hung else 0.0)
    return False


def _worse(known: Result | None, event: dict[str, Any]) -> Result:
    """A test has several phases; the first failure decides."""
    new = Result(event["outcome"], event["message"], event["seconds"])
    return known if known is not None and known.bad else new


def _start(tests: Path, module: str, folder: Path, order: dict[str, Any]) -> tuple[BaseProcess, Path]:
    record, leave_out = folder / "record", folder / "leave_out"
    record.write_text("")
    leave_out.write_text(json.dumps(order))
    variables = {
        SUITE: chosen().name,
        plugin_names.TESTS: str(tests),
        plugin_names.RECORD: str(record),
        plugin_names.LEAVE_OUT: str(leave_out),
    }
    process = _processes.Process(target=run_tests, args=(str(tests), module, str(folder), variables))
    process.start()
    return process, record


def _wait(process: BaseProcess, record: Path, seconds: float) -> bool:
    """Wait for the end of *process*. If nothing is recorded for *seconds*, kill it and return True."""
    size, since = 0, time.monotonic()
    while process.is_alive():
        process.join(POLL_SECONDS)
        now = record.stat().st_size
        if now != size:
            size, since = now, time.monotonic()
        elif time.monotonic() - since > seconds:
            _kill_with_children(process)
            return True
    return False


def _kill_with_children(process: BaseProcess) -> None:
    """Kill *process* and its children. It leads its own process group, unless it had no time to create one."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid or 0, signal.SIGKILL)
    process.kill()
    process.join()


def _events(record: Path) -> list[dict[str, Any]]:
    """The recorded events. The last line may be incomplete if the process was killed."""
    events = []
    for line in record.read_text().splitlines():
        try:
            events.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return events
