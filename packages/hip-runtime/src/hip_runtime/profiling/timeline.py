"""Spans drawn along time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hip_runtime.errors import ProfileError
from hip_runtime.profiling.spans import Span

Row = tuple[int | None, int | None]


def draw(spans: Sequence[Span], axes: Any = None) -> Any:
    """Draw *spans* on *axes*, new ones by default: a row for each stream, a colour for each name."""
    if axes is None:
        axes = _new_axes()
    rows = sorted({(span.device, span.stream) for span in spans}, key=str)
    colours = {name: f"C{number % 10}" for number, name in enumerate(sorted({span.name for span in spans}))}
    for name, colour in colours.items():
        label: str | None = name
        for number, row in enumerate(rows):
            bars = [
                (span.start, span.duration) for span in spans if span.name == name and (span.device, span.stream) == row
            ]
            if bars:
                axes.broken_barh(bars, (number - 0.4, 0.8), facecolors=colour, label=label)
                label = None  # one entry of the legend for each name
    axes.set_yticks(range(len(rows)), [_title(row) for row in rows])
    axes.set_xlabel("ms")
    if colours:
        axes.legend(loc="upper right", fontsize="small")
    return axes


def _title(row: Row) -> str:
    device, stream = row
    if device is None:
        return "host"
    return f"device {device}, {'default stream' if stream == 0 else f'stream {stream:#x}'}"


def _new_axes() -> Any:
    try:
        from matplotlib import pyplot  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise ProfileError(f"timelines need matplotlib, which cannot be imported: {error}; install it") from None
    _, axes = pyplot.subplots(figsize=(10, 3), layout="constrained")
    return axes
