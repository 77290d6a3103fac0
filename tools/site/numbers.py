"""Pages of numbers, made of data in the tree: benchmarks, other projects' tests, and what was executed where."""

from __future__ import annotations

import json
import math
import re
from html import escape
from pathlib import Path
from typing import Any

from tools.cuda_suite.expectations import Section, read_file
from tools.cuda_suite.suites import SUITES

ROOT = Path(__file__).parents[2]
REACHED = ROOT / "benchmarks" / "reached"
COLOURS = {
    "hip": "#c8102e",
    "opencl-intel": "#3b78b0",
    "opencl-pocl": "#7a5aa0",
    "taichi": "#7a9a3a",
    "warp": "#b07a1e",
}
PEER = "njit-parallel"
COMMANDS = {
    "reached": "python -m benchmarks --rounds 5 --processes 2 --environments PEERS",
}
"""What made each file of results."""


def benchmarks() -> str:
    """The page of benchmarks: a picture and a table for each file of results, the worst ratio first."""
    text = (
        "# Benchmarks\n\nProcessor time as a ratio to `njit(parallel=True)` written by hand: the line at 1. Further "
        "left is better; where ours is worst comes first. The axis is logarithmic. What is compared, and how, is in "
        "[the document of the benchmarks](../project/benchmarks.md).\n"
    )
    for name, command in COMMANDS.items():
        found = json.loads((REACHED / f"{name}.json").read_text())
        machine, picture = found["machine"], bars(ratios(found["benchmarks"]))
        text += (
            f"\n## {found['taken'][:10]}, {machine['processor']}, {machine['cores']} cores: {name}\n\n"
            f"Made by\n\n    {command}\n\nwith Python {machine['python']}, Numba {machine['packages']['numba']}.\n\n"
            f'```{{raw}} html\n<div class="wide">\n{picture}\n</div>\n```\n'
        )
    return text


def ratios(results: dict[str, Any]) -> dict[str, dict[str, float]]:
    """For each benchmark that has the peer the ratios of all others, our largest first."""
    found = {
        name: {kind: one["ratio"]["cpu"] for kind, one in result.items() if kind != PEER}
        for name, result in results.items()
        if PEER in result and "hip" in result
    }
    return dict(sorted(found.items(), key=lambda item: -item[1]["hip"]))


def bars(found: dict[str, dict[str, float]]) -> str:
    """A picture (SVG) of *found*: a group of bars for each benchmark, from the line at 1 to the ratio."""
    high = max(value for one in found.values() for value in one.values())
    low = min(value for one in found.values() for value in one.values())
    left, width, line, gap = 150, 720, 12, 10
    scale = (width - left - 60) / (math.log10(high) - math.log10(low))
    one = left + -math.log10(low) * scale
    parts, top = [], 34
    shown = [kind for kind in COLOURS if any(kind in one for one in found.values())]
    for place, kind in enumerate(shown):
        colour = COLOURS[kind]
        parts.append(f'<rect x="{left + 140 * place}" y="4" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{left + 140 * place + 17}" y="14">{kind}</text>')
    for name, values in found.items():
        middle = top + len(values) * line / 2 + 4
        parts.append(f'<text x="{left - 8}" y="{middle:.0f}" text-anchor="end">{escape(name)}</text>')
        for kind, value in values.items():
            end = one + math.log10(value) * scale
            start, length = min(one, end), max(abs(end - one), 1)
            fill = COLOURS.get(kind, "#888888")
            parts.append(f'<rect x="{start:.1f}" y="{top}" width="{length:.1f}" height="{line - 2}" fill="{fill}"/>')
            parts.append(f'<text x="{max(one, end) + 4:.1f}" y="{top + 9}" class="value">{value:.2f}</text>')
            top += line
        top += gap
    parts.append(f'<path d="M{one:.1f} 24V{top}" stroke="currentColor"/>')
    style = "font: 12px sans-serif; fill: currentColor"
    head = f'<svg class="bars" role="img" viewBox="0 0 {width} {top + 4}" style="{style}">'
    return "\n".join([head, "<title>Ratios of processor time, the worst first</title>", *parts, "</svg>"])


def conformance() -> str:
    """The page of other projects' tests: how many do not pass or do not apply, by cause."""
    counts = (ROOT / "docs" / "guide" / "cuda-programs.md").read_text()
    table = re.search(r"^\| folder \|.*?\n\n", counts, re.MULTILINE | re.DOTALL)
    assert table is not None, "docs/guide/cuda-programs.md has no table of the suite's results"
    text = (
        "# Other projects' tests\n\nThe tests of Numba CUDA, of `numba_cuda_mlir` and of AMD's numba-hip, unchanged. "
        "The results of Numba CUDA's, on the CPU device; the others' are in [the guide](../guide/cuda-programs.md"
        f"#what-differs).\n\n    nox -s cuda_suite\n\n{table[0]}"
        "Below are the lists that these runs are compared with: entries by cause, where an entry is a test, a pattern "
        "of tests, or a module of them.\n"
    )
    for name, suite in SUITES.items():
        text += f"\n## {name}\n\n    nox -s cuda_suite -- --suite {name}\n"
        for list_name, heading in (("known_failures", "Does not pass"), ("not_applicable", "Does not apply")):
            text += f"\n### {heading}: {name}\n\n{causes(read_file(suite.expected / f'{list_name}.txt'))}"
    return text


def causes(sections: list[Section]) -> str:
    """A table of causes, the most frequent first."""
    filled = sorted((one for one in sections if one.entries), key=lambda one: -len(one.entries))
    if not filled:
        return "Nothing.\n"
    rows = "\n".join(f"| {one.name} | {len(one.entries)} | {one.reason} |" for one in filled)
    return f"| cause | entries | what it is |\n| --- | --- | --- |\n{rows}\n"


EXECUTED_BY = """| what | command |
| --- | --- |
| core's tests and the examples, machine code executed in Python | `nox -s emulated -- gfx942` |
| everything for GPUs, over the stand-in of HIP's runtime | `nox -s gpu -- --emulated gfx942` |
| each generation of hip-python | `nox -s hip_python` |
| HIP's own runtime over rocjitsu | `HSA_ENABLE_SDMA=0 rocjitsu --config CONFIG -- python3 -m nox -s gpu` |
"""


def executed() -> tuple[str, str]:
    """The page of what was executed on which AMD target, from the README; and the path whose links it has."""
    readme = (ROOT / "README.md").read_text()
    found = re.search(r"^\*\*Nothing of this has ever been run.*?(?=^If you have an AMD GPU)", readme, re.M | re.S)
    assert found is not None, "README.md does not say what was executed"
    return f"# What was executed on which target\n\n{found[0]}\n{EXECUTED_BY}", "README.md"
