"""Who is to know of the work that devices are given: nobody, unless a profile is being taken.

Copies and graphs ask here; launches, where each tenth of a microsecond counts, do so only while somebody observes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from hip_runtime.device import Device
    from hip_runtime.driver import Dim3


class Activity(NamedTuple):
    """One piece of work: what it is, on which device and stream (by its number), and how much it is."""

    kind: str
    """``"kernel"``, ``"copy"`` or ``"graph"``."""
    name: str
    device: Device
    stream: int
    nbytes: int | None = None
    """Bytes that a copy moves."""
    grid: Dim3 | None = None
    block: Dim3 | None = None


class Observer(Protocol):
    """Who is told of work, in the thread that asks for it."""

    def measure(self, activity: Activity, ask: Callable[[], None]) -> None:
        """*activity* is to be done: *ask*, which has to be called, asks the device for it."""

    def compiled(self, kernel: str, start: float, end: float) -> None:
        """*kernel* was compiled in the seconds of `time.perf_counter` from *start* to *end*."""


_observer: Observer | None = None


def set_observer(new: Observer | None) -> None:
    """Let *new* observe copies and graphs from now on, in every thread, or nobody. Launches: `Launch.observe`."""
    global _observer
    _observer = new


def observer() -> Observer | None:
    """Who observes at the moment."""
    return _observer


def do(activity: Activity, ask: Callable[[], None]) -> None:
    """Ask for *activity*, through whoever observes."""
    found = _observer
    if found is None:
        ask()
    else:
        found.measure(activity, ask)
