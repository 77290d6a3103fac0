"""Profiles: the work on devices during a block of a program, with start and duration."""

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
from hip_runtime.module import Launch
from hip_runtime.profiling.spans import Span, Sum, add_up

if TYPE_CHECKING:
    from types import TracebackType

_running: list[Profile] = []
_lock = threading.Lock()


class _Measured:
    """Work that was asked for, between two events on its stream."""

    def __init__(self, activity: Activity, start: Event, end: Event) -> None:
        self.activity, self.start, self.end = activity, start, end


class Profile:
    """What devices did within a ``with`` block, from all threads.

    Events are recorded before and behind each kernel, copy and graph on its stream, which costs some microseconds for
    each. The block begins when the devices have done what they were given before, and its end waits for the work; an
    error of that work is raised there. What is captured into graphs is measured when these are launched, as one.
    """

    def __init__(self) -> None:
        self._measured: list[_Measured] = []
        self._on_host: list[Span] = []
        self._origins: dict[Device, tuple[Event, float]] = {}  # a point of each device, and the host's time then
        self._began = 0.0
        self._spans: list[Span] | None = None

    def __enter__(self) -> Profile:
        if self._spans is not None or self in _running:
            raise ProfileError("a profile is taken once; call hip.profile() for another one")
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
        """All that was measured, in the order in which it began; `ProfileError` before the end of the block."""
        if self._spans is None:
            raise ProfileError("the profile is still being taken: look at it behind its with block")
        return tuple(self._spans)

    def sums(self) -> list[Sum]:
        """The spans by kind, name and stream, the longest first."""
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
        """Draw the spans along time, one row for each stream, on matplotlib's *axes*, new ones by default; returns
        them. `ProfileError` where matplotlib is not installed."""
        from hip_runtime.profiling.timeline import draw

        return draw(self.spans, axes)

    def add(self, kind: str, name: str, start: float, end: float) -> None:
        """Note what the program did, a range or compiling: from *start* to *end* in seconds of `time.perf_counter`."""
        self._on_host.append(Span(kind, name, (start - self._began) * 1e3, (end - self._began) * 1e3))

    def begin(self, work: Activity) -> Event | None:
        """An event before *work* on its stream; ``None`` where the stream only records what it is given."""
        if work.device.driver.is_capturing(work.stream):
            return None
        return _recorded(work.device, work.stream)

    def end(self, work: Activity, start: Event) -> None:
        """Note *work*, which was asked for since *start*."""
        self._measured.append(_Measured(work, start, _recorded(work.device, work.stream)))

    def _finished(self) -> list[Span]:
        spans = []
        for measured in self._measured:
            work = measured.activity
            if not measured.end.query():
                continue  # of a stream that was given up
            origin, offset = self._origins[work.device]
            start, end = (offset + origin.elapsed_time(event) for event in (measured.start, measured.end))
            spans.append(
                Span(work.kind, work.name, start, end, work.device.id, work.stream, work.nbytes, work.grid, work.block)
            )
        return spans


def profile() -> Profile:
    """A profile to be taken: ``with hip.profile() as p: ...``, then ``print(p)``."""
    return Profile()


def running() -> list[Profile]:
    """The profiles that are being taken."""
    return list(_running)


def _recorded(device: Device, stream: int) -> Event:
    event = Event(device)
    event.record(stream)
    return event


class _Observer:
    """Tells each profile that is being taken."""

    def measure(self, activity: Activity, ask: Callable[[], None]) -> None:
        """Ask for the work between two events."""
        started = [(taken, start) for taken in running() if (start := taken.begin(activity)) is not None]
        ask()
        for taken, start in started:
            taken.end(activity, start)

    def compiled(self, kernel: str, start: float, end: float) -> None:
        """Note the time."""
        for taken in running():
            taken.add("compile", kernel, start, end)


def _observe() -> None:
    observer = _Observer() if _running else None
    activity.set_observer(observer)
    Launch.observe(observer)
