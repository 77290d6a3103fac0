"""Runs the examples and the benchmarks, each in a separate process."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.catalog import BENCHMARKS
from benchmarks.environments import INDEX, Environment
from benchmarks.peers import hipcc
from tools.gpu_report.children import ROOT, Children, Ending

SLOW_ELEMENTS = 1e8
"""The elements per second that any GPU reaches. If it is slower, it is an emulator, and its benchmarks are made
small."""

_LONGEST_TEXT = 4000


def run_examples(children: Children, folder: Path, elements: float) -> list[dict[str, Any]]:
    """Run each example, the demo last, as it runs all others in one process; *elements* as in `run_benchmarks`."""
    found, size = [], ["--small"] if elements < SLOW_ELEMENTS else []
    for program in sorted((ROOT / "examples").glob("*.py"), key=lambda path: (path.stem == "demo", path)):
        output = folder / f"example-{program.stem}.txt"
        start = perf_counter()
        ending = children.run([str(program), *size], output)
        found.append(_result(f"examples/{program.name}", ending, output, perf_counter() - start))
        if ending.is_last:
            break
    return found


def run_benchmarks(
    children: Children, folder: Path, target: str, elements: float, names: Sequence[str] = ()
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Run the benchmarks on a GPU that computes *elements* per second: their results, and the times."""
    size = ["--quick"] if elements < SLOW_ELEMENTS else ["--rounds", "15"]
    peers = folder / "peers"
    peers.mkdir()
    (peers / INDEX).write_text(json.dumps({"hipcc": asdict(_make_hipcc(peers, target))}))
    found, times = [], {}
    for name in names or BENCHMARKS:
        output, results = folder / f"benchmark-{name}.txt", folder / f"benchmark-{name}.json"
        start = perf_counter()
        command = ["-m", "benchmarks", name, *size, "--environments", str(peers), "--output", str(results)]
        ending = children.run(command, output)
        found.append(_result(f"benchmarks/{name}", ending, output, perf_counter() - start))
        if ending.is_last:
            break
        if ending.is_good:
            document = json.loads(results.read_text())
            times[name] = {
                "quick": document["quick"],
                "medians": {one: result["median"]["wall"] for one, result in document["benchmarks"][name].items()},
                "unmeasured": document["unmeasured"][name],
                "hipcc": document["peers"]["hipcc"].get("hipcc", ""),
            }
    return found, times


def _make_hipcc(folder: Path, target: str) -> Environment:
    """The tool that runs hipcc's kernels, or why there is none."""
    try:
        told = hipcc.compile_sources(target, folder)
    except hipcc.CompileError as error:
        return Environment(missing=str(error))
    return Environment(sys.executable, {hipcc.FOLDER: str(folder)}, {"hipcc": told})


def _result(name: str, ending: Ending, output: Path, seconds: float) -> dict[str, Any]:
    result: dict[str, Any] = {"test": name, "outcome": "passed" if ending.is_good else "failed", "seconds": seconds}
    if not ending.is_good:
        text = output.read_text(errors="replace")[-_LONGEST_TEXT:]
        lines = text.strip().splitlines()
        said = "" if ending.is_last else f": {lines[-1] if lines else 'it said nothing'}"
        result |= {"cause": ending.reason + said, "text": text}
    return result
