"""Sums of spans as tables: text for terminals, HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from hip_runtime.profiling.spans import Sum

HEADINGS = ("what", "name", "stream", "count", "total ms", "mean us", "min us", "GB/s", "share")
_TO_THE_LEFT = 2  # the text columns; columns of numbers are aligned to the right


def as_text(sums: Sequence[Sum]) -> str:
    """One line for each of *sums* below a heading; a sentence if there are none."""
    if not sums:
        return "nothing was done on a device"
    rows = [HEADINGS, *_rows(sums)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(_cells(row, widths)).rstrip() for row in rows)


def as_html(sums: Sequence[Sum]) -> str:
    """The same as an HTML table."""
    if not sums:
        return f"<p>{as_text(sums)}</p>"
    head = "".join(f"<th>{heading}</th>" for heading in HEADINGS)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in _rows(sums))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cells(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [
        cell.ljust(width) if column < _TO_THE_LEFT else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]


def _rows(sums: Sequence[Sum]) -> list[tuple[str, ...]]:
    """The cells for each of *sums*. Shares are relative to the time that devices worked."""
    worked = sum(found.total for found in sums if found.device is not None)
    several = len({found.device for found in sums if found.device is not None}) > 1
    return [
        (
            found.kind,
            found.name,
            _stream(found, several),
            str(found.count),
            f"{found.total:.3f}",
            f"{found.mean * 1e3:.1f}",
            f"{found.least * 1e3:.1f}",
            "" if found.bytes_per_second is None else f"{found.bytes_per_second / 1e9:.2f}",
            "" if found.device is None or not worked else f"{found.total / worked:.0%}",
        )
        for found in sums
    ]


def _stream(found: Sum, several: bool) -> str:
    if found.stream is None:
        return ""
    stream = "default" if found.stream == 0 else f"{found.stream:#x}"
    return f"{found.device}: {stream}" if several else stream
