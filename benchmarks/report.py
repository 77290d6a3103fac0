"""Results as a table, and as JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from benchmarks.case import Benchmark
from benchmarks.catalog import BENCHMARKS, FAMILIES
from benchmarks.environments import Environment


def table(benchmark: Benchmark, results: dict[str, Any], unmeasured: Mapping[str, str] | None = None) -> str:
    """A line for each implementation: medians of one operation, and their ratios to the peer's; then the missing
    peers."""
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


WORST = 5
"""The number of benchmarks that a summary names."""


def means(results: dict[str, dict[str, Any]]) -> dict[str, float]:
    """For each family with *results*, the geometric mean of our ratios of processor time."""
    ratios = _our_ratios(results)
    found = {family: [ratios[name] for name in names if name in ratios] for family, names in FAMILIES.items()}
    return {family: geometric_mean(those) for family, those in found.items() if those}


def _our_ratios(results: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Our ratio of processor time to the peer's in each benchmark of a family."""
    names = [name for family in FAMILIES.values() for name in family if name in results]
    return {name: results[name]["hip"]["ratio"]["cpu"] for name in names}


def summarise(results: dict[str, dict[str, Any]]) -> str:
    """The geometric mean of each family, that of all together, and the benchmarks with the largest ratios; empty if
    *results* have nothing in a family."""
    ratios = _our_ratios(results)
    if not ratios:
        return ""
    lines = ["geometric means of the ratios of hip's processor time to the peer's"]
    lines += [f"  {family:16}{mean:6.2f}" for family, mean in means(results).items()]
    lines.append(f"  {'all of these':16}{geometric_mean(ratios.values()):6.2f}")
    worst = sorted(ratios, key=ratios.__getitem__, reverse=True)[:WORST]
    lines.append(f"largest: {', '.join(f'{name} {ratios[name]:.2f}' for name in worst)}")
    return "\n".join(lines)


def describe_machine() -> dict[str, Any]:
    """The machine and the software of the measurement."""
    packages = ("hip-devicelib", "hip-runtime", "numba-hip-core", "numba", "llvmlite", "numpy")
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": {name: version(name) for name in packages},
    }


def _processor() -> str:
    """Linux's name for the processor, otherwise Python's."""
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

    *unmeasured* gives for each benchmark the missing peers, with reasons; *environments* are those of the peers.
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
    """Draw the ratios of processor time to the peer's into *path*, with the aims, and the geometric means of families,
    both without those of launches; a format that matplotlib writes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 9), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=(2, 1))
    launches = BENCHMARKS.keys() - {name for names in FAMILIES.values() for name in names}
    _plot_ratios(above, {name: result for name, result in results.items() if name not in launches})
    families = means(results)
    bars = below.bar(range(len(families)), list(families.values()), 0.5)
    below.set_xticks(range(len(families)), list(families), rotation=30, ha="right")
    below.bar_label(bars, fmt="%.2f")
    below.axhline(1, color="black", linewidth=0.8)
    below.set_yscale("log")
    below.margins(y=0.15)
    below.set_ylabel("geometric mean of hip")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def _plot_ratios(axes: Any, results: dict[str, dict[str, Any]]) -> None:
    """A bar for each implementation of each benchmark, and a line for each aim."""
    names = list(results)
    kinds = [*dict.fromkeys(kind for result in results.values() for kind in result)]
    width = 0.8 / max(len(kinds), 1)
    for place, kind in enumerate(kinds):
        shown = [(at, results[name][kind]["ratio"]["cpu"]) for at, name in enumerate(names) if kind in results[name]]
        offset = (place - (len(kinds) - 1) / 2) * width
        axes.bar([at + offset for at, _ in shown], [ratio for _, ratio in shown], width, label=kind)
    aims = [(at, BENCHMARKS[name].aim) for at, name in enumerate(names) if BENCHMARKS[name].aim is not None]
    starts, ends = [at - 0.4 for at, _ in aims], [at + 0.4 for at, _ in aims]
    axes.hlines([aim for _, aim in aims], starts, ends, "black", label="aim of hip")
    axes.set_yscale("log")
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axes.set_ylabel("processor time, as a ratio to the peer written by hand")
    axes.legend(ncols=3)
