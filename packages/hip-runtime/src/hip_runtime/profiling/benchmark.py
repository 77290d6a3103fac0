"""Benchmarks of launches: measured on the device, often enough to know the variation."""

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
"""Launches that take less are measured several at once: two events take some microseconds themselves."""

LEAST_BATCHES, MOST_BATCHES = 5, 1000


@dataclass(frozen=True)
class Benchmark:
    """What was measured: seconds of a launch in each batch."""

    name: str
    seconds: tuple[float, ...]
    launches: int
    """How many launches that were, without the first ones."""
    nbytes: int
    """Bytes that a launch moves: of its arrays, unless that was said."""

    @property
    def median(self) -> float:
        """Seconds of a launch in the median batch."""
        return statistics.median(self.seconds)

    @property
    def least(self) -> float:
        """Seconds of a launch in the fastest batch."""
        return min(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        """Seconds between which the middle half of the batches lies."""
        first, _, third = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return first, third

    @property
    def bytes_per_second(self) -> float:
        """`nbytes` over the median."""
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
    """Measure *work*, which is called with *args*: a configured kernel, ``kernel[grid, block]``, or anything else that
    asks the current device for work.

    It is called once before, which compiles what has to be compiled, and then again and again for about *seconds*: use
    kernels that give the same however often they run, and arrays that are on the device, as copies are measured, too.
    *nbytes* is what one call moves, by default the bytes of all arrays in *args*. *stream* is where *work* puts its
    work, by default the stream of a configured kernel, or the default stream. Raises what *work* raises, and
    `ProfileError` for *seconds* that are not positive.
    """
    if not seconds > 0:
        raise ProfileError(f"seconds is {seconds!r}; it has to be more than 0")
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
    """Calls of *work* between two events."""

    def __init__(self, device: Device, stream: int, work: Callable[..., object], args: Sequence[Any]) -> None:
        self._stream, self._work, self._args = stream, work, args
        self._start, self._end = Event(device), Event(device)

    def batch(self, count: int) -> float:
        """Seconds of *count* calls."""
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
    """*seconds* with three digits, in the unit that fits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
