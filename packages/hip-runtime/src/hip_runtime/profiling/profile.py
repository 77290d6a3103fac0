"""Profiles: the start and duration of the work on devices during a block of a program."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hip_runtime import activity
from hip_runtime.activity import Activity
from hip_runtime.device import Device, devices
from hip_runtime.driver import DEFAULT_STREAM
from hip_runtime.errors import ProfileError
from hip_runtime.event import Event
from hip_runtime.profiling.spans import Span, Sum, add_up
from hip_runtime.said_names import our

if TYPE_CHECKING:
    from types import TracebackType

_running: list[Profile] = []
_lock = threading.Lock()


class _Measured:
    """One piece of work, between two events on its stream."""

    def __init__(self, activity: Activity, start: Event, end: Event) -> None:
        self.activity, self.start, self.end = activity, start, end


class Profile:
    """The work on devices within a ``with`` block, from all threads.

    Events are recorded before and after each kernel, copy and graph on its stream, which costs some microseconds each.
    The block begins when the devices have finished earlier work, and its end waits for its own work; errors of that
    work are raised there. Work that is captured into a graph is measured when the graph is launched, as a whole.
    """

    def __init__(self) -> None:
        self._measured: list[_Measured] = []
        self._on_host: list[Span] = []
        # an event on each device, and the host's time at that event
        self._origins: dict[Device, tuple[Event, float]] = {}
        self._began = 0.0
        self._spans: list[Span] | None = None

    def __enter__(self) -> Profile:
        if self._spans is not None or self in _running:
            raise ProfileError(f"this profile was used before; call {our('profile')}() for a new one")
        self._began = time.perf_counter()
        for device in devices():
            origin = _recorded(device, DEFAULT_STREAM)
            origin.synchronize()
            self._origins[device] = origin, (time.perf_counter() - self._began) * 1e3
        with _lock:
            _running.append(self)
            _observe()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with _lock:
            _running.remove(self)
            _observe()
        try:
            for measured in self._measured:
                measured.end.synchronize()
        except BaseException:
            if error is None:
                raise
        finally:
            self._spans = sorted([*self._on_host, *self._finished()], key=lambda span: span.start)
            self._measured.clear()

    @property
    def spans(self) -> tuple[Span, ...]:
        """All spans, in the order in which they began; `ProfileError` before the end of the block."""
        if self._spans is None:
            raise ProfileError("the profile has not ended: use it after its with block")
        return tuple(self._spans)

    def sums(self) -> list[Sum]:
        """Sums of the spans by kind, name and stream, the longest first."""
        return add_up(self.spans)

    def __str__(self) -> str:
        """The sums as a table."""
        from hip_runtime.profiling.table import as_text

        return as_text(self.sums())

    def __repr__(self) -> str:
        return "<Profile, being taken>" if self._spans is None else f"<Profile of {len(self._spans)} spans>"

    def _repr_html_(self) -> str:
        from hip_runtime.profiling.table import as_html

        return as_html(self.sums())

    def to_chrome_trace(self, path: str | PathLike[str]) -> Path:
        """Write the spans to the file *path* for ``chrome://tracing`` and https://ui.perfetto.dev; returns its path."""
        from hip_runtime.profiling.chrome_trace import write

        return write(self.spans, Path(path))

    def plot(self, axes: Any = None) -> Any:
        """Draw the spans along time, one row per stream, on matplotlib's *axes*, by default new ones; returns them.
        `ProfileError` if matplotlib is not installed."""
        from hip_runtime.profiling.timeline import draw

        return draw(self.spans, axes)

    def add(self, kind: str, name: str, start: float, end: float) -> None:
        """Record a span of the host, a range or a compilation: *start* and *end* are seconds of `time.perf_counter`."""
        self._on_host.append(Span(kind, name, (start - self._began) * 1e3, (end - self._began) * 1e3))

    def begin(self, work: Activity) -> Event | None:
        """Record an event before *work* on its stream; returns ``None`` if the stream is being captured."""
        if work.device.driver.is_capturing(work.stream):
            return None
        return _recorded(work.device, work.stream)

    def end(self, work: Activity, start: Event) -> None:
        """Record *work*, which was launched between *start* and now."""
        self._measured.append(_Measured(work, start, _recorded(work.device, work.stream)))

    def _finished(self) -> list[Span]:
        spans = []
        for measured in self._measured:
            work = measured.activity
            if not measured.end.query():
                continue  # the stream was abandoned
            origin, offset = self._origins[work.device]
            start, end = (offset + origin.elapsed_time(event) for event in (measured.start, measured.end))
            spans.append(
                Span(work.kind, work.name, start, end, work.device.id, work.stream, work.nbytes, work.grid, work.block)
            )
        return spans


def profile() -> Profile:
    """A new profile: ``with hip.profile() as p: ...``, then ``print(p)``."""
    return Profile()


def running() -> list[Profile]:
    """The profiles that are active."""
    return list(_running)


def _recorded(device: Device, stream: int) -> Event:
    event = Event(device)
    event.record(stream)
    return event


class _Observer:
    """Passes activity on to each active profile."""

    def measure(self, activity: Activity, ask: Callable[[], None]) -> None:
        """Launch the work between two events."""
        started = [(taken, start) for taken in running() if (start := taken.begin(activity)) is not None]
        ask()
        for taken, start in started:
            taken.end(activity, start)

    def compiled(self, kernel: str, start: float, end: float) -> None:
        """Record the time."""
        for taken in running():
            taken.add("compile", kernel, start, end)


def _observe() -> None:
    observer = _Observer() if _running else None
    activity.set_observer(observer)
