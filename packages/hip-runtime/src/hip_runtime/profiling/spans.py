"""Spans of time, and sums of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hip_runtime.driver import Dim3


@dataclass(frozen=True, slots=True)
class Span:
    """Something that a device or the program did, from ``start`` to ``end``, in milliseconds since the profile
    began."""

    kind: str
    """``"kernel"``, ``"copy"`` or ``"graph"`` for devices, ``"compile"`` or ``"range"`` for the host."""
    name: str
    start: float
    end: float
    device: int | None = None
    """The number of the device in `hip_runtime.devices`; ``None`` for the host."""
    stream: int | None = None
    """The number of the stream, 0 for the default stream; ``None`` for the host."""
    nbytes: int | None = None
    """The bytes that a copy moved."""
    grid: Dim3 | None = None
    block: Dim3 | None = None

    @property
    def duration(self) -> float:
        """The duration in milliseconds."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of all spans of one kind and name on one stream; times in milliseconds."""

    kind: str
    name: str
    device: int | None
    stream: int | None
    count: int
    total: float
    least: float
    nbytes: int | None

    @property
    def mean(self) -> float:
        """The mean duration in milliseconds."""
        return self.total / self.count

    @property
    def bytes_per_second(self) -> float | None:
        """The rate at which they moved bytes; ``None`` if they moved none, or took no measurable time."""
        return self.nbytes / (self.total * 1e-3) if self.nbytes and self.total > 0 else None


def add_up(spans: Iterable[Span]) -> list[Sum]:
    """*spans* by kind, name, device and stream; devices before the host, the longest total first."""
    groups: dict[tuple[str, str, int | None, int | None], list[Span]] = {}
    for span in spans:
        groups.setdefault((span.kind, span.name, span.device, span.stream), []).append(span)
    return sorted(_sums(groups), key=lambda found: (found.device is None, -found.total))


def _sums(groups: dict[tuple[str, str, int | None, int | None], list[Span]]) -> Iterator[Sum]:
    for (kind, name, device, stream), spans in groups.items():
        moved = [span.nbytes for span in spans if span.nbytes is not None]
        durations = [span.duration for span in spans]
        total = sum(durations)
        yield Sum(kind, name, device, stream, len(spans), total, min(durations), sum(moved) if moved else None)
