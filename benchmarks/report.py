"""Results as a table to read and as JSON to keep."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.case import Benchmark
from benchmarks.catalog import BENCHMARKS
from benchmarks.environments import Environment


def table(benchmark: Benchmark, results: dict[str, Any], unmeasured: Mapping[str, str] | None = None) -> str:
    """A line for each implementation: medians of one operation, and their ratios to the peer's; then who is missing."""
    aim = "" if benchmark.aim is None else f"; aim {benchmark.aim} of its processor time"
    lines = [f"{benchmark.name}: {benchmark.description}; ratios to {benchmark.peer}{aim}"]
    for name, result in results.items():
        cpu, wall = (result["median"][kind] * benchmark.scale for kind in ("cpu", "wall"))
        lines.append(
            f"  {name:16} cpu {cpu:9.3f} {benchmark.unit} ({result['ratio']['cpu']:5.2f}x)   "
            f"wall {wall:9.3f} {benchmark.unit} ({result['ratio']['wall']:5.2f}x)   on {result['device']}"
        )
    lines += [f"  {name:16} not measured: {reason}" for name, reason in (unmeasured or {}).items()]
    return "\n".join(lines)


def describe_machine() -> dict[str, Any]:
    """What the times were taken on, and with."""
    packages = ("hip-devicelib", "hip-runtime", "numba-hip-core", "numba", "llvmlite", "numpy")
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": {name: version(name) for name in packages},
    }


def _processor() -> str:
    """The name that Linux gives to the processor; what Python calls it where there is none."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def save(
    path: Path,
    results: dict[str, dict[str, Any]],
    *,
    quick: bool,
    unmeasured: Mapping[str, Mapping[str, str]],
    environments: Mapping[str, Environment],
) -> None:
    """Write the results of all benchmarks, by their names, to *path*; times are in seconds.

    *unmeasured* says, for each benchmark, which peers are missing and why; *environments* are those of the peers.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    taken = datetime.now(timezone.utc).isoformat(timespec="seconds")
    document = {
        "taken": taken,
        "quick": quick,
        "machine": describe_machine(),
        "peers": {name: dict(environment.packages) for name, environment in environments.items()},
        "benchmarks": results,
        "unmeasured": unmeasured,
    }
    path.write_text(json.dumps(document, indent=1) + "\n")


def plot(path: Path, results: dict[str, dict[str, Any]]) -> None:
    """Draw the ratios of processor time to the peer's into *path*, with the aims; a format that matplotlib writes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 5), layout="constrained")
    axes = figure.subplots()
    names = list(results)
    kinds = [*dict.fromkeys(kind for result in results.values() for kind in result)]
    width = 0.8 / len(kinds)
    for place, kind in enumerate(kinds):
        shown = [(at, results[name][kind]["ratio"]["cpu"]) for at, name in enumerate(names) if kind in results[name]]
        offset = (place - (len(kinds) - 1) / 2) * width
        axes.bar([at + offset for at, _ in shown], [ratio for _, ratio in shown], width, label=kind)
    aims = [(at, BENCHMARKS[name].aim) for at, name in enumerate(names) if BENCHMARKS[name].aim is not None]
    starts, ends = [at - 0.4 for at, _ in aims], [at + 0.4 for at, _ in aims]
    axes.hlines([aim for _, aim in aims], starts, ends, "black", label="aim of hip")
    axes.set_yscale("log")
    axes.set_xticks(range(len(names)), names, rotation=20)
    axes.set_ylabel("processor time, as a ratio to the peer written by hand")
    axes.legend(ncols=3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
