"""Runs all tests, examples and benchmarks on this machine's AMD GPU, and writes a report:
``python -m tools.gpu_report``.

The exit status is 0 if everything that should pass on a GPU did, 1 if something failed, and 75 if there is no GPU.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tools.gpu_report import report
from tools.gpu_report.children import INTERRUPTED, ROOT, Children
from tools.gpu_report.programs import run_benchmarks, run_examples
from tools.gpu_report.suites import run_suite

NO_GPU = 75
"""The exit status of all tools of this project if a requirement is missing."""

RUNTIME_TESTS, CORE_TESTS = "packages/hip-runtime/tests", "packages/numba-hip-core/tests"
CONTRACT = [
    f"{RUNTIME_TESTS}/{name}.py" for name in ("test_driver_contract", "test_driver_graphs", "test_copies_on_streams")
]
QUICK = ("kernels", "atomics", "shared_memory", "warp", "records", "print", "streams", "graphs")
"""Modules of core's tests that ``--quick`` runs."""

PARTS = ("contract", "core", "examples", "benchmarks")


class NoGpuError(Exception):
    """There is no GPU to test; the text says why."""


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.gpu_report", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="which to do: all by default")
    parser.add_argument("--quick", action="store_true", help=f"of core's tests only {', '.join(QUICK)}")
    parser.add_argument("--tests", nargs="+", default=[], help="run these tests in the place of core's")
    parser.add_argument("--benchmarks", nargs="+", default=[], help="run these benchmarks only")
    parser.add_argument("--emulated", default="", metavar="TARGET", help="execute the code of this target here instead")
    parser.add_argument("--seconds", type=float, default=900, help="how long one test may take: %(default)s")
    parser.add_argument("--output", type=Path, default=ROOT / "gpu-reports", help="where reports are put: %(default)s")
    return parser.parse_args(arguments)


def describe(children: Children, folder: Path) -> dict[str, Any]:
    """The GPU's properties; `NoGpuError` if there is none, or none that works."""
    output, told = folder / "device.txt", folder / "device.json"
    ending = children.run(["-m", "tools.gpu_report.device", str(told)], output)
    lines = output.read_text(errors="replace").strip().splitlines() or ["it said nothing"]
    if ending.is_last:
        raise KeyboardInterrupt
    if not ending.is_good:
        raise NoGpuError(f"a simple kernel does not run on the GPU of this machine ({ending.reason}): {lines[-1]}")
    facts: dict[str, Any] = json.loads(told.read_text())
    if "missing" in facts:
        raise NoGpuError(f"there is no AMD GPU to be had on this machine: {facts['missing']}")
    return facts


def ask(options: argparse.Namespace, children: Children, folder: Path, facts: dict[str, Any]) -> dict[str, Any]:
    """Run the parts that *options* select; returns the contents of the report."""
    start, taken = time.monotonic(), datetime.now(timezone.utc).isoformat(timespec="seconds")
    core = options.tests or ([f"{CORE_TESTS}/test_{name}.py" for name in QUICK] if options.quick else [CORE_TESTS])
    parts: dict[str, list[dict[str, Any]]] = {}
    times: dict[str, Any] = {}
    for part in options.parts:
        print(f"{part} ... (what it says is in {folder})", flush=True)
        if part == "contract":
            parts[part] = run_suite(children, part, CONTRACT, folder)
        elif part == "core":
            parts[part] = run_suite(children, part, core, folder)
        elif part == "examples":
            parts[part] = run_examples(children, folder, facts["speed"]["elements"])
        else:
            target, elements = facts["device"]["target"], facts["speed"]["elements"]
            parts[part], times = run_benchmarks(children, folder, target, elements, options.benchmarks)
        print(f"{part}: {', '.join(f'{n} {outcome}' for outcome, n in report.count(parts[part]).items())}", flush=True)
        if any(result.get("cause") == INTERRUPTED for result in parts[part]):
            break  # the report has the parts that were run
    return {
        "taken": taken,
        "seconds": time.monotonic() - start,
        "revision": _revision(),
        "facts": facts,
        "parts": parts,
        "times": times,
    }


def main(arguments: list[str] | None = None) -> int:
    """Run and write the report; returns the exit status."""
    options = parse(arguments)
    folder = options.output.resolve() / f"{datetime.now():%Y%m%d-%H%M%S}"
    folder.mkdir(parents=True)
    children = Children(options.emulated, options.seconds)
    try:
        facts = describe(children, folder)
    except NoGpuError as error:
        shutil.rmtree(folder)
        print(error, file=sys.stderr)
        return NO_GPU
    document = ask(options, children, folder, facts)
    report.write(folder, document)
    archive = shutil.make_archive(str(folder), "zip", folder.parent, folder.name)
    results = [result for part in document["parts"].values() for result in part]
    for cause, tests in report.group(results, "failed"):
        print(f"failed, {len(tests)}: {cause} ({tests[0]})")
    print(f"The report is {folder / 'report.md'}; to send it back, take all of it: {archive}")
    return int(report.count(results)["failed"] > 0)


def _revision() -> str:
    """The commit that was tested, and whether files were changed."""
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as for Ctrl-C: no process is left behind
    sys.exit(main())
