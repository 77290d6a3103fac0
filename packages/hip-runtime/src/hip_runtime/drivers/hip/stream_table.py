"""The streams that there are, by handle, and what concerns all of them: order, and giving back."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from ctypes import byref, c_int, c_uint, c_void_p
from typing import Any

from hip_runtime.driver import PER_THREAD_STREAM
from hip_runtime.drivers.captures import Captures
from hip_runtime.drivers.hip.calls import Calls
from hip_runtime.drivers.hip.capture_gate import Gate
from hip_runtime.drivers.hip.events import EventPool
from hip_runtime.drivers.hip.graphs import Recording
from hip_runtime.drivers.hip.streams import Stream
from hip_runtime.errors import InvalidHandleError

_STREAM_NON_BLOCKING = 1
"""``hipStreamNonBlocking``"""


class StreamTable:
    """All streams of all devices, and their events.

    *held* are the streams on which a callback is still to run, see `Stream`.
    """

    def __init__(self, calls: Calls) -> None:
        devices = range(calls.device_count)
        self.held: set[Stream] = set()
        self.captures: Captures[Any] = Captures()
        self.gate = Gate()
        """Within it whole devices are waited for; no capture is going then."""
        self.points = [EventPool(calls, device) for device in devices]
        self.timers = [EventPool(calls, device, timing=True) for device in devices]
        self._calls = calls
        self.defaults = [self._make(device, 0, blocking=True) for device in devices]
        self._streams: dict[int, Stream] = {}
        self._transfers: dict[int, Stream] = {}
        self._theirs = Recording()
        """What other libraries may have recorded in graphs of their own; nobody tells when these are gone."""
        self._making = threading.Lock()
        self._closing: set[Stream] = set()  # destroyed, with work left to do, or a fault that nobody was told of

    def create(self, device: int, *, blocking: bool, priority: int) -> int:
        """Handle of a new stream."""
        self.tidy(list(self._closing))
        handle = self._create(device, 0 if blocking else _STREAM_NON_BLOCKING, priority)
        self._streams[handle] = self._make(device, handle, blocking=blocking)
        return handle

    def destroy(self, handle: int) -> None:
        """Forget a stream, which goes once its work is done."""
        found = self.find(handle)
        del self._streams[handle]
        self._closing.add(found)
        self.tidy([found])

    def find(self, handle: int) -> Stream:
        """The stream of that handle, not a default one, whoever in this process made it; `InvalidHandleError`."""
        return self._streams.get(handle) or self._adopt(handle)

    def on_device(self, handle: int, device: int) -> Stream:
        """The stream of that handle; where it means the default stream, that of *device*."""
        return self.find(handle) if handle > PER_THREAD_STREAM else self.defaults[device]

    def transfers(self, device: int) -> Stream:
        """The stream that the driver itself copies on for the default stream: HIP's own copies there, and the calls
        that wait, end every capture of the process."""
        found = self._transfers.get(device)
        if found is None:
            with self._making:
                found = self._transfers.get(device)
                if found is None:
                    handle = self._create(device, _STREAM_NON_BLOCKING, 0)
                    found = self._transfers[device] = self._make(device, handle, blocking=False)
        return found

    def wait_for_device(self, device: int) -> None:
        """Return when all work of *device* is done that the runtime was told of, also on streams not known here.

        Costs the captures of other libraries: only for callers who ask for it.
        """
        self._calls.activate(device)
        with self.gate:
            if not self.captures.going:
                self._calls.call("hipDeviceSynchronize")
                return
        self.wait_for_work(device)

    def wait_for_work(self, device: int) -> None:
        """Return when all work is done that this driver gave to *device*, but for streams that others capture."""
        gone = [stream for stream in list(self._streams.values()) if stream.device == device and stream.is_gone]
        for stream in gone:
            self._streams.pop(stream.handle, None)
        if gone:
            self.wait_for_device(device)  # nothing else tells of work that was left on them
            return
        self._calls.activate(device)
        for stream in self.everything(device):
            stream.wait()

    def everything(self, device: int | None = None) -> list[Stream]:
        """All streams, those that were destroyed and have work left among them; only those of *device*, if given."""
        streams = [*self.defaults, *list(self._streams.values()), *list(self._closing)]
        return [stream for stream in streams if device in (None, stream.device)]

    def settle(self) -> None:
        """Return when the runtime was told of all work that comes before what the default stream is given now."""
        self.wait_issued(stream for stream in list(self.held) if stream.blocking)

    def wait_issued(self, streams: Iterable[Stream]) -> None:
        """Return when the runtime was told of all work of *streams*.

        Not where a callback asks: two callbacks that wait for each other's streams would never end.
        """
        if not any(stream.is_current for stream in list(self.held)):
            for stream in streams:
                stream.wait_issued()

    def tidy(self, streams: Iterable[Stream]) -> None:
        """Let go of what *streams* do not need any more, and of themselves, if they were destroyed.

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
        self._theirs = Recording()
        for stream in [stream for stream in list(self._streams.values()) if stream.is_theirs]:
            self._streams.pop(stream.handle, None)

    def abandon(self) -> None:
        """Forget, in a forked child, what is still to be done."""
        for stream in list(self.held):
            stream.abandon()

    def close(self) -> None:
        """Destroy the driver's own stream, and the events that are not in use."""
        while self._transfers:
            self._calls.call("hipStreamDestroy", self._transfers.popitem()[1].handle)
        for pool in (*self.points, *self.timers):
            self._calls.activate(pool.device)
            pool.close()

    def _adopt(self, handle: int) -> Stream:
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

    def _make(self, device: int, handle: int, *, blocking: bool, theirs: Recording | None = None) -> Stream:
        return Stream(self._calls, self.points[device], handle, blocking=blocking, holding=self.held, theirs=theirs)
