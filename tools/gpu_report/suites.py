"""Runs tests in one process for as long as none of them crashes it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.gpu_report.children import ROOT, Children

MOST_PROCESSES = 40
"""The number of processes that may crash in tests before the rest is given up."""

_GOOD = (0, 1, 5)
"""pytest's exit statuses of complete runs: all passed, some failed, nothing was left to run."""

_STOPPED = 2
"""The exit status if the plugin stopped the run, since its device had failed."""


def run_suite(children: Children, name: str, arguments: Sequence[str], folder: Path) -> list[dict[str, Any]]:
    """Run pytest with *arguments*; returns the result of each test. Its output is in *folder*."""
    results, output = folder / f"{name}.jsonl", folder / f"{name}.txt"
    variables = {**children.variables, "GPU_REPORT_RESULTS": str(results)}
    children = dataclasses.replace(children, variables=variables)
    plugins = ["tools.gpu_report.plugin", *(["tools.amd_executor.plugin"] if children.target else [])]
    chosen = [word for plugin in plugins for word in ("-p", plugin)]
    # The settings of this repository, wherever the tests are; in one process, as there is one GPU.
    settings = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "-p", "no:cacheprovider", "-p", "no:xdist"]
    settings.append("--continue-on-collection-errors")
    command = ["-m", "pytest", "-q", *settings, *chosen, *arguments]
    for _ in range(MOST_PROCESSES):
        ending = children.run(command, output, progress=lambda: results.stat().st_size if results.exists() else 0)
        stuck = [test for test, line in _read(results).items() if line["outcome"] == "begun"]
        if stuck:
            _add(results, stuck[0], ending.reason)
            if ending.is_last:
                break
        elif ending.status in _GOOD:
            break
        elif ending.status != _STOPPED:
            _add(results, name, ending.reason)
            break
    else:
        _add(results, name, f"given up after {MOST_PROCESSES} processes were ended by tests")
    return list(_read(results).values())


def _read(results: Path) -> dict[str, dict[str, Any]]:
    lines = results.read_text().splitlines() if results.exists() else []
    return {line["test"]: line for line in map(json.loads, lines)}


def _add(results: Path, test: str, cause: str) -> None:
    line = {"test": test, "outcome": "failed", "cause": cause, "text": cause, "seconds": 0.0}
    with results.open("a") as file:
        file.write(json.dumps(line) + "\n")
