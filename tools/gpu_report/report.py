"""Writes the results as a page to read, and as JSON for programs."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

OUTCOMES = ("passed", "failed", "skipped")
_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|\d+")
_SHOWN = 5
_SLOWEST = 10


def count(results: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The numbers of passed, failed and skipped tests."""
    found = Counter(result["outcome"] for result in results)
    return {outcome: found[outcome] for outcome in OUTCOMES}


def group(results: Sequence[Mapping[str, Any]], outcome: str) -> list[tuple[str, list[str]]]:
    """The tests with that *outcome* by cause, the most frequent first. Causes that only differ in numbers are
    merged."""
    grouped: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for result in results:
        if result["outcome"] == outcome:
            grouped[_NUMBERS.sub("#", result["cause"])].append((result["cause"], result["test"]))
    ordered = sorted(grouped.values(), key=lambda tests: (-len(tests), tests))
    return [(tests[0][0], [test for _, test in tests]) for tests in ordered]


def write(folder: Path, document: Mapping[str, Any]) -> None:
    """Write ``report.md`` and ``report.json``. *document* has ``taken``, ``facts``, ``parts`` and ``times``."""
    (folder / "report.json").write_text(json.dumps(document, indent=1) + "\n")
    (folder / "report.md").write_text("\n".join(_page(document)) + "\n")


def _page(document: Mapping[str, Any]) -> list[str]:
    facts = document["facts"]
    lines = [f"# Numba for AMD GPUs on {facts['device']['name']} ({facts['device']['target']})", ""]
    lines += [f"Taken {document['taken']}, in {document['seconds']:.0f} s; revision {document['revision']}.", ""]
    lines += ["| part | passed | failed | skipped |", "| --- | --- | --- | --- |"]
    for part, results in document["parts"].items():
        counted = count(results)
        lines.append(f"| {part} | {counted['passed']} | {counted['failed']} | {counted['skipped']} |")
    for title in ("device", "versions", "environment"):
        lines += ["", f"## The {title}", "", *_table(facts[title])]
    speed = facts["speed"]
    lines += ["", f"A launch that is waited for takes {speed['launch'] * 1e6:.1f} us; a simple kernel computes"]
    lines += [f"{speed['elements'] / 1e6:.1f} million elements in a second, the launch included.", ""]
    lines += _timings(document["times"])
    for outcome in ("failed", "skipped"):
        lines += _causes(document["parts"], outcome)
    return lines + _slowest(document["parts"])


def _table(facts: Mapping[str, Any]) -> list[str]:
    return ["| | |", "| --- | --- |", *(f"| {name} | {_cell(value)} |" for name, value in facts.items())]


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")


def _timings(times: Mapping[str, Any]) -> list[str]:
    if not times:
        return []
    names = list(dict.fromkeys(name for timed in times.values() for name in timed["medians"]))
    lines = ["## Times of the benchmarks", "", "Milliseconds by the clock, medians; `hip` is ours."]
    if any(timed["quick"] for timed in times.values()):
        lines.append("The device is slow, an emulator perhaps: problems are small, and the times say little.")
    ratio = ["hip to hipcc"] if "hipcc" in names else []
    lines += ["", f"| benchmark | {' | '.join([*names, *ratio])} |", f"| --- {'| --- ' * len([*names, *ratio])}|"]
    for benchmark, timed in times.items():
        medians = timed["medians"]
        cells = [f"{medians[name] * 1e3:.4f}" if name in medians else "" for name in names]
        if ratio:
            cells.append(f"{medians['hip'] / medians['hipcc']:.2f}" if "hipcc" in medians else "")
        lines.append(f"| {benchmark} | {' | '.join(cells)} |")
    missing = {timed["unmeasured"]["hipcc"] for timed in times.values() if "hipcc" in timed["unmeasured"]}
    lines += ["", *(f"No times of hipcc: {_cell(reason)}." for reason in sorted(missing))]
    versions = {timed["hipcc"] for timed in times.values() if timed["hipcc"]}
    return [*lines, *(f"hipcc: {_cell(version)}" for version in sorted(versions)), ""]


def _causes(parts: Mapping[str, Sequence[Mapping[str, Any]]], outcome: str) -> list[str]:
    lines = [f"## What {'failed' if outcome == 'failed' else 'was skipped'}, by cause", ""]
    for part, results in parts.items():
        for cause, tests in group(results, outcome):
            lines.append(f"- {part}, {len(tests)}: {_cell(cause)}")
            if outcome == "failed":
                lines += [f"  - `{test}`" for test in tests[:_SHOWN]]
                lines += [f"  - and {len(tests) - _SHOWN} more"] * (len(tests) > _SHOWN)
    return [*lines, *(["Nothing."] if len(lines) == 2 else []), ""]


def _slowest(parts: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    timed = sorted((result for results in parts.values() for result in results), key=lambda one: -one["seconds"])
    return ["## What took longest", "", *(f"- {one['seconds']:.1f} s: `{one['test']}`" for one in timed[:_SLOWEST])]
