"""An explanation as HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from numba_hip.explanation.text import MOST_FINDINGS, summary

if TYPE_CHECKING:
    from numba_hip.explanation.model import Explanation

_LEFT = "text-align:left;vertical-align:top"


def write_html(told: Explanation) -> str:
    """Three tables: what is to be said of the kernel, its lines, and what is slow."""
    head = "".join(_row([escape(title), escape(words)]) for title, words in summary(told))
    slow = {(one.file, one.line) for one in told.findings}
    lines = "".join(
        _row(
            [str(line.number), f"<code style='white-space:pre'>{escape(line.source)}</code>",
             escape("; ".join(line.notes))],
            marked=(line.file, line.number) in slow,
        )
        for line in told.lines
    )  # fmt: skip
    found = "".join(
        _row([str(number), f"line {one.line}", escape(one.message)])
        for number, one in enumerate(told.findings[:MOST_FINDINGS], 1)
    )
    remark = f"<p>{escape(told.remark)}</p>" if told.remark else ""
    worst = f"<p>What is slow, the worst first</p><table>{found}</table>" if found else ""
    return f"<table>{head}</table>{remark}<table>{lines}</table>{worst}"


def _row(cells: Iterable[str], marked: bool = False) -> str:
    style = f"{_LEFT};background:#fff3cd" if marked else _LEFT
    return "<tr>" + "".join(f"<td style='{style}'>{cell}</td>" for cell in cells) + "</tr>"
