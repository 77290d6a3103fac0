"""The drawings of the documents, as SVG that reads on light and dark ground: ``python -m tools.site.pictures``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[2] / "docs" / "_static"

STYLE = """<style>
text { font: 14px system-ui, sans-serif; fill: #777 }
.title { font-weight: 600 } .small { font-size: 12px } .code { font-family: ui-monospace, monospace }
.box { fill: #8882; stroke: #888; stroke-width: 1.5 }
.gpu { fill: #d8433b33; stroke: #d8433b } .cpu { fill: #2f7fd633; stroke: #2f7fd6 } .off { opacity: 0.35 }
.line { stroke: #888; stroke-width: 1.5; fill: none; marker-end: url(#arrow) }
@media (prefers-color-scheme: dark) { text { fill: #ccc } }
@media (prefers-color-scheme: light) { text { fill: #333 } }
</style>
<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0L8 4L0 8z" fill="#888"/></marker></defs>
"""


class Step(NamedTuple):
    """A box of the drawing of a launch: where it is, what it is called, and what happens there."""

    x: int
    y: int
    width: int
    title: str
    lines: tuple[str, ...]
    kind: str = ""


STEPS = (
    Step(10, 120, 170, "add[grid, block](x)", ("numba-hip-core finds", "what is compiled for", "these types")),
    Step(220, 120, 170, "Numba", ("types, then LLVM IR", "that calls functions", "of HIP by their names")),
    Step(430, 20, 190, "AMD code object", ("hip-devicelib: bitcode of", "ROCm, LLVM, a linker"), "gpu"),
    Step(430, 205, 190, "SPMD bitcode", ("the program of one thread,", "which asks for its number"), "cpu"),
    Step(660, 11, 250, "HIP", ("arguments are packed; waves of", "32 or 64 lanes run on", "compute units"), "gpu"),
    Step(
        660,
        196,
        250,
        "the CPU device",
        ("threads become lanes, blocks", "are shared out among", "all cores"),
        "cpu",
    ),
)
ARROWS = ((180, 165, 216, 165), (390, 150, 426, 55), (390, 180, 426, 240), (620, 55, 656, 55), (620, 240, 656, 240))

ROWS = (
    ("x = values[i]", "4 -1 9 1 -5 -2 16 -3", "one load of a vector", ""),
    ("if x > 0:", "true - true true - - true -", "one comparison: the mask", "cpu"),
    ("    y = sqrt(x)", "2 - 3 1 - - 4 -", "all lanes compute, four count", "cpu"),
    ("else: y = -x", "- 1 - - 5 2 - 3", "the other four count", "gpu"),
    ("out[i] = y", "2 1 3 1 5 2 4 3", "one store of a vector", ""),
)
"""A line of a kernel, what each of eight lanes has there (``-``: it is masked), and how the CPU device runs it."""


def draw_launch() -> str:
    """How a launch travels from Python to lanes."""
    parts = [draw_step(step) for step in STEPS]
    for x1, y1, x2, y2 in ARROWS:
        middle = (x1 + x2) / 2
        parts.append(f'<path class="line" d="M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}"/>')
    return picture(920, 310, "How a launch travels", parts)


def draw_step(step: Step) -> str:
    """One box with its text."""
    middle, height = step.x + step.width / 2, 34 + 18 * len(step.lines)
    lines = [
        f'<rect class="box {step.kind}" x="{step.x}" y="{step.y}" width="{step.width}" height="{height}" rx="6"/>',
        f'<text class="title" x="{middle}" y="{step.y + 22}" text-anchor="middle">{step.title}</text>',
    ]
    for number, line in enumerate(step.lines):
        y = step.y + 42 + 18 * number
        lines.append(f'<text class="small" x="{middle}" y="{y}" text-anchor="middle">{line}</text>')
    return "\n".join(lines)


def draw_lanes() -> str:
    """What the lanes of a gang do at a branch on which they differ."""
    parts = []
    for row, (code, values, told, kind) in enumerate(ROWS):
        y = 16 + 54 * row
        shown = code.replace(">", "&gt;")
        parts.append(f'<text class="code" x="10" y="{y + 25}" xml:space="preserve">{shown}</text>')
        parts.extend(draw_lane(170 + 44 * lane, y, value, kind) for lane, value in enumerate(values.split()))
        parts.append(f'<text class="small" x="540" y="{y + 24}">{told}</text>')
    return picture(740, 290, "Lanes and masks", parts)


def draw_lane(x: int, y: int, value: str, kind: str) -> str:
    """One lane: its value, or an empty box if it is masked."""
    masked = value == "-"
    box = f'<rect class="box {"off" if masked else kind}" x="{x}" y="{y}" width="40" height="38" rx="4"/>'
    return box if masked else f'{box}<text class="small" x="{x + 20}" y="{y + 24}" text-anchor="middle">{value}</text>'


def picture(width: int, height: int, label: str, parts: Sequence[str]) -> str:
    """A whole file."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{label}">'
    return "\n".join([head, STYLE.rstrip(), *parts, "</svg>"]) + "\n"


PICTURES = {"launch.svg": draw_launch, "lanes.svg": draw_lanes}


if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw(), encoding="utf-8")
        print(FOLDER / name)
