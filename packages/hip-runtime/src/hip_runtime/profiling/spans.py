"""Spans of time, and sums of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hip_runtime.driver import Dim3


@dataclass(frozen=True, slots=True)
class Span:
    """What a device or the program did, from ``start`` to ``end``, in milliseconds from the start of the profile."""

    kind: str
    """``"kernel"``, ``"copy"`` or ``"graph"`` for what a device did; for what the host did ``"compile"``, or
    ``"range"`` for what the program named."""
    name: str
    start: float
    end: float
    device: int | None = None
    """The number of the device in `hip_runtime.devices`; ``None`` for the host."""
    stream: int | None = None
    """The number of the stream, 0 for the default one; ``None`` for the host."""
    nbytes: int | None = None
    """Bytes that a copy moved."""
    grid: Dim3 | None = None
    block: Dim3 | None = None

    @property
    def duration(self) -> float:
        """Milliseconds."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Sum:
    """The spans of one kind and name on one stream together; times in milliseconds."""

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
        """Milliseconds of one of them."""
        return self.total / self.count

    @property
    def bytes_per_second(self) -> float | None:
        """How fast they moved bytes; ``None`` where they moved none, or took no time that can be measured."""
        return self.nbytes / (self.total * 1e-3) if self.nbytes and self.total > 0 else None


def add_up(spans: Iterable[Span]) -> list[Sum]:
    """*spans* by kind, name, device and stream; those of devices first, and those that took longest together."""
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
