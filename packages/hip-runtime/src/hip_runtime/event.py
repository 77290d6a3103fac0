"""Events: points in the work of streams, to wait for and to measure time between."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, NoReturn

from hip_runtime.device import Device, current_device
from hip_runtime.errors import EventTypeError
from hip_runtime.said_names import our
from hip_runtime.stream_handle import stream_handle

if TYPE_CHECKING:
    from hip_runtime.stream import Stream


class Event:
    """A point in the work of a stream of *device* (the current one by default), once it is recorded.

    With ``timing=False`` it does not measure times, which is cheaper on some devices.
    """

    def __init__(self, device: Device | None = None, *, timing: bool = True) -> None:
        self.device = current_device() if device is None else device
        driver = self.device.driver
        self.handle = driver.create_event(self.device.ordinal, timing=timing)
        weakref.finalize(self, driver.destroy_event, self.handle).atexit = False

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} is of this process; another one makes its own with {our('event')}()")

    def __repr__(self) -> str:
        return f"<Event on device {self.device.id}>"

    def record(self, stream: Stream | int | None = None) -> None:
        """Record this event behind the work queued on *stream* so far, replacing any earlier record."""
        self.device.driver.record_event(self.handle, stream_handle(stream))

    def query(self) -> bool:
        """Whether the work before the point is done; true where nothing was recorded."""
        return self.device.driver.query_event(self.handle)

    def synchronize(self) -> None:
        """Return when the work before the point is done; raises the fault of a kernel in it, if there was one."""
        self.device.driver.synchronize_event(self.handle)

    def wait(self, stream: Stream | int | None = None) -> None:
        """Work given to *stream* from now on waits for the point."""
        self.device.driver.wait_event(stream_handle(stream), self.handle)

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this point to *end*; `EventError` where one of them is not there yet."""
        return self.device.driver.elapsed_time(self.handle, event_handle("end", end))


def event_handle(name: str, event: Event) -> int:
    """The handle of *event*, which is argument *name*; `EventTypeError` for what is no event."""
    if not isinstance(event, Event):
        raise EventTypeError(f"{name} is {event!r}; it must be an event of {our('event')}()")
    handle: int = event.handle
    return handle
