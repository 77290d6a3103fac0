"""Spans in the trace event format that Chrome and Perfetto show.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hip_runtime.device import devices
from hip_runtime.profiling.spans import Span

PROGRAM = -1
"""The number of the process for the host's spans. Devices are shown as processes by their numbers, streams as
threads."""


def write(spans: Sequence[Span], path: Path) -> Path:
    """Write *spans* to *path*."""
    path.write_text(json.dumps({"traceEvents": [*_names(spans), *map(_event, spans)], "displayTimeUnit": "ms"}))
    return path


def _event(span: Span) -> dict[str, Any]:
    details = {"bytes": span.nbytes, "grid": span.grid, "block": span.block}
    return {
        "name": span.name,
        "cat": span.kind,
        "ph": "X",  # complete: with a duration
        "ts": span.start * 1e3,
        "dur": span.duration * 1e3,
        "pid": PROGRAM if span.device is None else span.device,
        "tid": span.stream or 0,
        "args": {name: value for name, value in details.items() if value is not None},
    }


def _names(spans: Sequence[Span]) -> list[dict[str, Any]]:
    """Metadata events with the names of processes and threads."""
    known = {device.id: device.name for device in devices()}
    events = []
    for device, stream in sorted({(span.device, span.stream) for span in spans}, key=str):
        process = PROGRAM if device is None else device
        title = "program" if device is None else f"device {device}: {known.get(device, '')}"
        row = "host" if stream is None else "default stream" if stream == 0 else f"stream {stream:#x}"
        events.append(_name("process_name", process, 0, title))
        events.append(_name("thread_name", process, stream or 0, row))
    return events


def _name(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
