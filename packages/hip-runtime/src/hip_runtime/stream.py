"""Streams: queues of work that a device runs in order."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from hip_runtime.device import Device, current_device
from hip_runtime.driver import DEFAULT_STREAM, PER_THREAD_STREAM
from hip_runtime.errors import HipRuntimeError
from hip_runtime.event import Event, event_handle
from hip_runtime.graph import Graph
from hip_runtime.said_names import our
from hip_runtime.stream_handle import stream_handle


class Stream:
    """A queue of work on *device* (the current one by default).

    Without *handle* a new stream is created, and destroyed with this object once its work is done; with *handle* it
    belongs to another library, and *owner* is kept alive. *blocking* streams wait for work on the default stream and
    the other way round.
    """

    def __init__(
        self,
        device: Device | None = None,
        *,
        handle: int | None = None,
        blocking: bool = True,
        priority: int = 0,
        owner: object = None,
    ) -> None:
        self.device = current_device() if device is None else device
        driver = self.device.driver
        self.owned = handle is None
        self._owner = owner
        self.handle = (
            driver.create_stream(self.device.ordinal, blocking=blocking, priority=priority)
            if handle is None
            else handle
        )
        self._finalizer: Any = None
        if self.owned:
            self._finalizer = weakref.finalize(self, driver.destroy_stream, self.handle)
            self._finalizer.atexit = False

    @property
    def external(self) -> bool:
        """Whether it was created elsewhere: it was given by its handle, and is not a default stream."""
        return not self.owned and self.handle > PER_THREAD_STREAM

    def __int__(self) -> int:
        return self.handle

    __index__ = __int__

    def __cuda_stream__(self) -> tuple[int, int]:
        """The version of the protocol, 0, and the handle: other libraries take this stream by it."""
        return 0, self.handle

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} is of this process; another one makes its own with {our('stream')}()")

    def __repr__(self) -> str:
        kind = "default stream" if self.handle == DEFAULT_STREAM else f"stream {self.handle}"
        return f"<{kind} of device {self.device.id}>"

    def synchronize(self) -> None:
        """Return when all work is done; raises the fault of a kernel on this stream, if there was one."""
        self.device.driver.synchronize_stream(self.handle)

    def query(self) -> bool:
        """Whether all work is done."""
        return self.device.driver.query_stream(self.handle)

    def abort(self) -> None:
        """End the kernel that runs on this stream now, within its blocks, and drop all work behind it.

        Memory keeps what was written; errors of the work are dropped, and the stream can be used again. For kernels
        that do not end. Raises `UnsupportedError` on AMD GPUs, where only the end of the process ends a kernel.
        """
        self.device.driver.abort_stream(self.handle)

    def wait(self, event: Event) -> None:
        """Work given from now on waits for the last record of *event*."""
        self.device.driver.wait_event(self.handle, event_handle("event", event))

    def record(self, event: Event | None = None) -> Event:
        """Record *event*, a new one by default, behind the work given so far."""
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def add_callback(self, callback: Callable[[BaseException | None], None]) -> None:
        """Call *callback*, on another thread, after the work given so far.

        It is given ``None``, or the error that stopped that work. It must not wait for this stream.
        """
        self.device.driver.add_callback(self.handle, callback)

    @contextmanager
    def auto_synchronize(self) -> Iterator[Stream]:
        """A block at whose end the stream is synchronized, also where the block raises."""
        try:
            yield self
        finally:
            self.synchronize()

    @property
    def capturing(self) -> bool:
        """Whether work on the stream is recorded instead of run."""
        return self.device.driver.is_capturing(self.handle)

    @contextmanager
    def capture(self) -> Iterator[Graph]:
        """A block in which work on this stream is recorded instead of run; the `Graph` is complete at its end.

        Launches, copies that are given this stream, and events are recorded, with the arrays, host memory and code that
        they use, which live as long as the graph. What cannot be recorded raises `CaptureError`; see
        `Driver.begin_capture`. Where the block raises, the recording is given up, and the stream works as before.
        """
        driver = self.device.driver
        driver.begin_capture(self.handle)
        graph = Graph(self.device)
        try:
            yield graph
        except BaseException:
            with suppress(HipRuntimeError):  # the capture may be lost already; its error is raised below
                driver.destroy_graph(driver.end_capture(self.handle))
            raise
        graph.complete(driver.end_capture(self.handle))

    def close(self) -> None:
        """Destroy the stream once its work is done."""
        if self._finalizer is not None:
            self._finalizer()


def find_stream(stream: Any) -> Stream | None:
    """What `stream_handle` takes as a `Stream`, which keeps it alive; ``None`` is the default stream. `StreamError`."""
    if stream is None or isinstance(stream, Stream):
        return stream
    handle = stream_handle(stream)
    return None if handle == DEFAULT_STREAM else Stream(handle=handle, owner=stream)
