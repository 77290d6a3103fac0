"""The observer of work on devices, launches, copies and graphs: none, unless a profile is being taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from hip_runtime.device import Device
    from hip_runtime.driver import Dim3


class Activity(NamedTuple):
    """One piece of work: its kind, its device and stream (by number), and its size."""

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
    """An object that is told of work, in the thread that asks for the work."""

    def measure(self, activity: Activity, ask: Callable[[], None]) -> None:
        """*activity* is about to be done; *ask*, which has to be called, hands it to the device."""

    def compiled(self, kernel: str, start: float, end: float) -> None:
        """*kernel* was compiled in the seconds of `time.perf_counter` from *start* to *end*."""


observer: Observer | None = None
"""The observer of the work of every thread; see `set_observer`."""


def set_observer(new: Observer | None) -> None:
    """Make *new* the observer, or have none."""
    global observer
    observer = new


def do(activity: Activity, ask: Callable[[], None]) -> None:
    """Do *activity*, through the observer if there is one."""
    found = observer
    if found is None:
        ask()
    else:
        found.measure(activity, ask)
