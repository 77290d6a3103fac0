"""Results as a table to read and as JSON to keep."""

from __future__ import annotations

import json
import os
import platform
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.case import Benchmark


def table(benchmark: Benchmark, results: dict[str, Any]) -> str:
    """A line for each implementation: medians of one operation, and their ratios to the peer's."""
    lines = [f"{benchmark.name}: {benchmark.description}; ratios to {benchmark.peer}"]
    for name, result in results.items():
        cpu, wall = (result["median"][kind] * benchmark.scale for kind in ("cpu", "wall"))
        lines.append(
            f"  {name:16} cpu {cpu:9.3f} {benchmark.unit} ({result['ratio']['cpu']:5.2f}x)   "
            f"wall {wall:9.3f} {benchmark.unit} ({result['ratio']['wall']:5.2f}x)   on {result['device']}"
        )
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


def save(path: Path, results: dict[str, dict[str, Any]], *, quick: bool) -> None:
    """Write the results of all benchmarks, by their names, to *path*; times are in seconds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    taken = datetime.now(timezone.utc).isoformat(timespec="seconds")
    document = {"taken": taken, "quick": quick, "machine": describe_machine(), "benchmarks": results}
    path.write_text(json.dumps(document, indent=1) + "\n")
