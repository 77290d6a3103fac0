"""Benchmarks of launches, measured on the device and repeated to show the variation."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hip_runtime.device import Device, current_device
from hip_runtime.errors import ProfileError
from hip_runtime.event import Event
from hip_runtime.stream_handle import stream_handle

BATCH_SECONDS = 2e-4
"""Shorter launches are measured several at a time, as the two events take some microseconds themselves."""

LEAST_BATCHES, MOST_BATCHES = 5, 1000


@dataclass(frozen=True)
class Benchmark:
    """The measurement: seconds per launch in each batch."""

    name: str
    seconds: tuple[float, ...]
    launches: int
    """The number of launches, without the warm-up."""
    nbytes: int
    """The bytes that a launch moves: those of its arrays, unless given."""

    @property
    def median(self) -> float:
        """Seconds per launch in the median batch."""
        return statistics.median(self.seconds)

    @property
    def least(self) -> float:
        """Seconds per launch in the fastest batch."""
        return min(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The first and the third quartile of the batches, in seconds per launch."""
        first, _, third = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return first, third

    @property
    def bytes_per_second(self) -> float:
        """`nbytes` divided by the median."""
        return self.nbytes / self.median if self.median > 0 else 0.0

    def __str__(self) -> str:
        first, third = self.quartiles
        rate = f", {self.bytes_per_second / 1e9:.2f} GB/s" if self.nbytes else ""
        return (
            f"{self.name}: median {_shown(self.median)} (middle half {_shown(first)} to {_shown(third)}), "
            f"least {_shown(self.least)}{rate}; {self.launches} launches"
        )

    __repr__ = __str__


def benchmark(
    work: Callable[..., object], *args: Any, seconds: float = 0.5, nbytes: int | None = None, stream: Any = None
) -> Benchmark:
    """Measure *work*, which is called with *args*: a configured kernel, ``kernel[grid, block]``, or any other callable
    that launches work on the current device.

    It is called once before the measurement, to compile it, and then repeatedly for about *seconds*. Use kernels whose
    result does not depend on how often they run, and arrays on the device, as copies would be measured, too. *nbytes*
    is the number of bytes that one call moves, by default those of all arrays in *args*. *stream* is the stream on
    which *work* launches, by default that of a configured kernel, or the default stream. Raises the errors of *work*,
    and `ProfileError` if *seconds* is not positive.
    """
    if not seconds > 0:
        raise ProfileError(f"seconds is {seconds!r}; it must be more than 0")
    device = current_device()
    number = stream_handle(getattr(work, "stream", None) if stream is None else stream)
    measure = _Batches(device, number, work, args)
    measure.batch(1)
    size = max(1, round(BATCH_SECONDS / max(measure.batch(1), 1e-7)))
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < LEAST_BATCHES or (time.perf_counter() < end and len(times) < MOST_BATCHES):
        times.append(measure.batch(size) / size)
    moved = _bytes_of(args) if nbytes is None else nbytes
    return Benchmark(_name_of(work), tuple(times), size * len(times), moved)


class _Batches:
    """The number of calls of *work* between two events."""

    def __init__(self, device: Device, stream: int, work: Callable[..., object], args: Sequence[Any]) -> None:
        self._stream, self._work, self._args = stream, work, args
        self._start, self._end = Event(device), Event(device)

    def batch(self, count: int) -> float:
        """The time of *count* calls in seconds."""
        self._start.record(self._stream)
        for _ in range(count):
            self._work(*self._args)
        self._end.record(self._stream)
        self._end.synchronize()
        return self._start.elapsed_time(self._end) * 1e-3


def _bytes_of(args: Sequence[Any]) -> int:
    return sum(int(getattr(value, "nbytes", 0)) for value in args if getattr(value, "shape", ()) != ())


def _name_of(work: Any) -> str:
    found = getattr(work, "dispatcher", work)
    return str(getattr(found, "__name__", type(found).__name__))


def _shown(seconds: float) -> str:
    """*seconds* with three digits, in a suitable unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
