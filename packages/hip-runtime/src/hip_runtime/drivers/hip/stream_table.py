"""The streams of AMD GPUs, by handle: what waits for what, and when streams and the objects that they keep are
released."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from ctypes import byref, c_int, c_uint, c_void_p
from typing import Any

from hip_runtime.driver import PER_THREAD_STREAM
from hip_runtime.drivers.captures import Captures, check_wait
from hip_runtime.drivers.hip.calls import Calls
from hip_runtime.drivers.hip.capture_gate import Gate
from hip_runtime.drivers.hip.events import EventPool, HipEvent
from hip_runtime.drivers.hip.faults import raise_fault
from hip_runtime.drivers.hip.graphs import HipRecording
from hip_runtime.drivers.hip.streams import HipStream
from hip_runtime.errors import InvalidHandleError

_STREAM_NON_BLOCKING = 1
"""``hipStreamNonBlocking``"""


class HipStreamTable:
    """All streams of all devices, and their events.

    *held* are the streams on which a callback is still to run, see `HipStream`.
    """

    def __init__(self, calls: Calls) -> None:
        devices = range(calls.device_count)
        self.held: set[HipStream] = set()
        self.captures: Captures[Any] = Captures()
        self.gate = Gate()
        """Within it whole devices are waited for; no capture is going then."""
        self.points = [EventPool(calls, device) for device in devices]
        self.timers = [EventPool(calls, device, timing=True) for device in devices]
        self._calls = calls
        self.defaults = [self._make(device, 0, blocking=True) for device in devices]
        self._streams: dict[int, HipStream] = {}
        self._transfers: dict[int, HipStream] = {}
        self._theirs = HipRecording()
        """What other libraries may have recorded in graphs of their own; nobody tells when these are gone."""
        self._making = threading.Lock()
        # destroyed streams with unfinished work, or with a fault that was not reported yet
        self._closing: set[HipStream] = set()

    def create(self, device: int, *, blocking: bool, priority: int) -> int:
        """Handle of a new stream."""
        self.tidy(list(self._closing))
        handle = self._create(device, 0 if blocking else _STREAM_NON_BLOCKING, priority)
        self._streams[handle] = self._make(device, handle, blocking=blocking)
        return handle

    def destroy(self, handle: int) -> None:
        """Forget a stream, which is destroyed once its work is done."""
        found = self.find(handle)
        del self._streams[handle]
        self._closing.add(found)
        self.tidy([found])

    def find(self, handle: int) -> HipStream:
        """The stream of that handle, not a default one, whoever in this process made it; `InvalidHandleError`."""
        return self._streams.get(handle) or self._adopt(handle)

    def on_device(self, handle: int, device: int) -> HipStream:
        """The stream of that handle; where it means the default stream, that of *device*."""
        return self.find(handle) if handle > PER_THREAD_STREAM else self.defaults[device]

    def transfers(self, device: int) -> HipStream:
        """The stream on which the driver does copies of the default stream: HIP's own copies there, and waiting for
        them, would end every capture in the process."""
        found = self._transfers.get(device)
        if found is None:
            with self._making:
                found = self._transfers.get(device)
                if found is None:
                    handle = self._create(device, _STREAM_NON_BLOCKING, 0)
                    found = self._transfers[device] = self._make(device, handle, blocking=False)
        return found

    def wait_for_device(self, device: int) -> None:
        """Wait for all work of *device* that the runtime has been given, also on streams that are not in this table.

        Costs the captures of other libraries: only for callers who ask for it.
        """
        self._calls.activate(device)
        with self.gate:
            if not self.captures.going:
                self._calls.call("hipDeviceSynchronize")
                return
        self.wait_for_work(device)

    def wait_for_work(self, device: int) -> None:
        """Wait for all work that this driver gave to *device*, except on streams that others capture."""
        gone = [stream for stream in list(self._streams.values()) if stream.device == device and stream.is_gone]
        for stream in gone:
            self._streams.pop(stream.handle, None)
        if gone:
            self.wait_for_device(device)  # nothing else tells whether work was left on them
            return
        self._calls.activate(device)
        for stream in self.everything(device):
            stream.wait()

    def everything(self, device: int | None = None) -> list[HipStream]:
        """All streams, those that were destroyed and have work left among them; only those of *device*, if given."""
        streams = [*self.defaults, *list(self._streams.values()), *list(self._closing)]
        return [stream for stream in streams if device in (None, stream.device)]

    def settle(self) -> None:
        """Wait until the runtime has been given all work that comes before the next work on the default stream."""
        self.wait_issued(stream for stream in list(self.held) if stream.blocking)

    def wait_issued(self, streams: Iterable[HipStream]) -> None:
        """Wait until the runtime has been given all work of *streams*.

        Not where a callback asks: two callbacks that wait for each other's streams would never end.
        """
        if not any(stream.is_current for stream in list(self.held)):
            for stream in streams:
                stream.wait_issued()

    def tidy(self, streams: Iterable[HipStream]) -> None:
        """Release the objects that *streams* no longer need, and streams that were destroyed.

        Later, where the calling thread captures: to ask whether work is done would spoil that. A stream that was
        destroyed goes once, whichever threads come to it, and not while one of them asks HIP about it.
        """
        if self.captures.here:
            return
        for stream in streams:
            self._calls.activate(stream.device)
            stream.reap()
            if stream in self._closing and stream.is_done():
                stream.look_for_fault()
                if stream.fault is None and stream.gate.end():
                    self._closing.discard(stream)
                    self._calls.call("hipStreamDestroy", stream.handle)

    def forget_others(self) -> None:
        """Forget the streams of other libraries, and what is kept for graphs of theirs: none of these is used again."""
        self._theirs = HipRecording()
        for stream in [stream for stream in list(self._streams.values()) if stream.is_theirs]:
            self._streams.pop(stream.handle, None)

    def abandon(self) -> None:
        """Forget, in a forked child, what is still to be done."""
        for stream in list(self.held):
            stream.abandon()

    def close(self) -> None:
        """Destroy the streams that were given back, the driver's own, and the events that are not in use."""
        streams = self.everything()
        for stream in streams:
            stream.end_thread()  # which may not have seen that it has no work left
        self.tidy(streams)
        while self._transfers:
            self._calls.call("hipStreamDestroy", self._transfers.popitem()[1].handle)
        for pool in (*self.points, *self.timers):
            self._calls.activate(pool.device)
            pool.close()

    # what callers ask of streams

    def is_done(self, handle: int) -> bool:
        """Whether the stream has no work left."""
        self.captures.forbid_on(handle, "ask about")
        if handle > PER_THREAD_STREAM:
            found = self.find(handle)
            found.check_own("ask about")
            self.tidy([found])
            return found.is_done()
        if any(held.blocking for held in list(self.held)):
            return False
        return all(self.activate(found).is_done() for found in self.defaults)

    def synchronize(self, handle: int) -> None:
        """Wait for the work of the stream, and raise its fault."""
        self.captures.forbid_on(handle, "wait for")
        if handle > PER_THREAD_STREAM:
            streams = [self.find(handle)]
        else:
            streams = self.defaults
            self.settle()
        for found in streams:
            self.activate(found).synchronize()
        faults = [found.take_fault() for found in streams]
        self.tidy(streams)
        raise_fault(next(filter(None, faults), None))

    def add_callback(self, handle: int, callback: Callable[[BaseException | None], None]) -> None:
        """Call *callback* with the stream's fault, if any, once the work before it is done."""
        self.captures.forbid_on(handle, "call back from")
        if handle > PER_THREAD_STREAM:
            found = self.find(handle)
            found.check_own("call back from")
            found.add_callback(callback)
            return
        self.settle()
        first, *others = self.defaults
        first.add_callback(callback, others)

    def wait_event(self, handle: int, event: HipEvent) -> None:
        """Let the stream's next work wait for the point that *event* was last recorded at."""
        recording = self.captures.of(handle)
        if event.recording is not None or (recording is not None and event.recorded is not None):
            check_wait(event.recording, recording)
            return
        point = event.recorded
        if point is None:
            return
        if handle <= PER_THREAD_STREAM:
            self.captures.forbid("use the default stream")
            self.settle()
            if point.issued is not None:
                point.issued.wait()
        self.activate(self.on_device(handle, event.device)).wait_for(point)

    def record_event(self, handle: int, event: HipEvent) -> None:
        """Let *event* stand for the end of the work that the stream has been given."""
        found = self.on_device(handle, event.device)
        if found.device != event.device:
            raise InvalidHandleError(f"the event is of device {event.device}, the stream of device {found.device}")
        found.check_own("record an event on")
        event.recording = found.recording
        if found.recording is not None:
            event.stream = None  # an event between the work recorded before and after it, on one stream
            return
        if found.handle == 0:
            self.captures.forbid("use the default stream")
            self.settle()
        self.activate(found).record(event)

    def perform(self, stream: HipStream, work: Callable[[], None]) -> None:
        """Do *work* on *stream*: now, or behind the callbacks that are still to run."""
        if stream.handle:
            self.activate(stream).submit(work)
            return
        self.captures.forbid("use the default stream")
        self.settle()
        self.activate(stream)
        work()

    def activate(self, stream: HipStream) -> HipStream:
        """*stream*, whose device is the current one from now on: a handle 0 means that device's."""
        self._calls.activate(stream.device)
        return stream

    def _adopt(self, handle: int) -> HipStream:
        """A stream that somebody else made; HIP knows which there are."""
        flags, device = c_uint(), c_int()
        ours = any(stream.handle == handle for stream in list(self._closing))
        # First, as not every release checks the handle in the other function.
        if ours or self._calls.hipStreamGetDevice(handle, byref(device)):
            self._calls.hipGetLastError()
            raise InvalidHandleError(f"stream {handle} does not exist on a HIP device, or was destroyed")
        self._calls.call("hipStreamGetFlags", handle, byref(flags))
        blocking = flags.value == 0
        found = self._streams[handle] = self._make(device.value, handle, blocking=blocking, theirs=self._theirs)
        return found

    def _create(self, device: int, flags: int, priority: int) -> int:
        self._calls.activate(device)
        place = c_void_p()
        self._calls.call("hipStreamCreateWithPriority", byref(place), flags, priority)
        return place.value or 0

    def _make(self, device: int, handle: int, *, blocking: bool, theirs: HipRecording | None = None) -> HipStream:
        return HipStream(self._calls, self.points[device], handle, blocking=blocking, holding=self.held, theirs=theirs)
