"""The streams of the CPU device, by handle: what waits for what, and where work on a handle is queued."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count

from hip_runtime import config
from hip_runtime.driver import PER_THREAD_STREAM
from hip_runtime.drivers.captures import Captures, check_wait
from hip_runtime.drivers.cpu.graphs import CpuRecording
from hip_runtime.drivers.cpu.streams import CpuEvent, CpuStream, Record, abort, raise_fault
from hip_runtime.errors import InvalidHandleError, KernelFault, LaunchError
from hip_runtime.stream_handle import LEAST_HANDLE

_DEFAULT_QUEUE = LEAST_HANDLE
"""Handle below those of the streams that callers create; it is never handed out."""

_new_handle = count(_DEFAULT_QUEUE + 1).__next__
"""No two streams have one handle, whatever devices they are of: copies may be put on streams of any device."""

_tables: weakref.WeakValueDictionary[int, CpuStreamTable] = weakref.WeakValueDictionary()
"""The table of each stream, by its handle."""


class CpuStreamTable:
    """The streams of one driver, those that were destroyed with work left, and the captures of them."""

    def __init__(self) -> None:
        self.captures: Captures[CpuRecording] = Captures()
        self.default = CpuStream(blocking=True)
        """The default stream's callbacks, and its launches where these are asynchronous."""
        self.asynchronous = config.cpu_async()
        """Whether launches on the default stream return before they are done."""
        self.by_handle: dict[int, CpuStream] = {_DEFAULT_QUEUE: self.default}
        self.closing: set[CpuStream] = set()
        """Destroyed, with work left to do."""
        self.failed: deque[CpuStream] = deque()
        """Destroyed before anybody asked what went wrong."""

    @property
    def has_only_default(self) -> bool:
        """Whether there is no stream but the default one, which has never been given work to do later: so it is in most
        programs, and nothing has to be waited for."""
        return len(self.by_handle) == 1 and not self.closing and not self.default.used

    @property
    def is_at_once(self) -> bool:
        """Whether work on the default stream is done by the caller, and has nothing to wait for."""
        return self.has_only_default and not self.asynchronous

    def all(self) -> list[CpuStream]:
        """All streams that may have work to do."""
        found = list(self.by_handle.values())
        return [*found, *list(self.closing)] if self.closing else found

    def of(self, handle: int) -> CpuStreamTable:
        """The table of the stream: this one, unless it is a stream of another device."""
        if handle <= PER_THREAD_STREAM or handle in self.by_handle:
            return self
        return _tables.get(handle, self)

    def find(self, handle: int) -> CpuStream:
        """The stream that a caller created as *handle*, on whatever device."""
        found = self.of(handle).by_handle.get(handle)
        if found is None or found is self.default:
            raise InvalidHandleError(f"stream {handle} does not exist on the CPU device, or was destroyed")
        return found

    def check_own(self, handle: int, kernel: str) -> None:
        """Raise `LaunchError` for a stream of another device, and `InvalidHandleError` for what is none."""
        self.find(handle)
        if self.of(handle) is not self:
            raise LaunchError(
                f"kernel {kernel!r} is loaded on one CPU device, and stream {handle} is of another: select the device "
                "of the stream, or use a stream of this one"
            )

    def create(self, *, blocking: bool) -> int:
        """The handle of a new stream."""
        handle = _new_handle()
        self.by_handle[handle] = CpuStream(blocking=blocking)
        _tables[handle] = self
        return handle

    def destroy(self, handle: int) -> None:
        """Take the handle away; the stream still does the work that it was given."""
        found = self.find(handle)
        del self.by_handle[handle]
        _tables.pop(handle, None)
        self.captures.drop(handle)
        found.recording = None
        self.closing.add(found)
        found.keep(partial(self._forget, found))
        found.close()

    def _forget(self, stream: CpuStream) -> None:
        """A destroyed stream has done its work."""
        if stream.fault is not None:
            self.failed.append(stream)
        self.closing.discard(stream)

    # waiting

    def wait_for_all(self) -> None:
        """Wait for the work of all streams; faults stay where they are."""
        for stream in self.all():
            stream.wait()

    def wait_for_blocking(self) -> None:
        """Wait for what work on the default stream comes after."""
        if self.captures.going:
            self.captures.forbid("use the default stream")
        for stream in self.all():
            if not stream.idle and stream.blocking:
                stream.wait()

    def synchronize_all(self) -> None:
        """Wait for the work of all streams, and raise the first of their faults."""
        faults = []
        for stream in self.all():
            stream.wait()
            faults.append(stream.take_fault())
        with suppress(IndexError):  # another thread may have taken the last one
            while self.failed:
                faults.append(self.failed.popleft().take_fault())
        raise_fault(next(filter(None, faults), None))

    def synchronize(self, handle: int) -> None:
        """Wait for the work of the stream, and raise its fault."""
        self.captures.forbid_on(handle, "wait for")
        if handle <= PER_THREAD_STREAM:
            self.wait_for_blocking()
            found = self.default
        else:
            found = self.find(handle)
            found.wait()
        raise_fault(found.take_fault())

    def is_idle(self, handle: int) -> bool:
        """Whether the stream has no work left."""
        self.captures.forbid_on(handle, "ask about")
        if handle <= PER_THREAD_STREAM:
            return all(other.idle for other in self.all() if other.blocking)
        return self.find(handle).idle

    def abort(self, handle: int) -> None:
        """End the kernel that runs on the stream, and drop the work behind it."""
        self.captures.forbid_on(handle, "abort")
        if handle <= PER_THREAD_STREAM:
            raise InvalidHandleError("the default stream has no work of its own; Ctrl-C ends a kernel on it")
        abort([self.find(handle)])

    def abort_all(self) -> None:
        """The same for all streams together: some may wait for others."""
        abort([*self.all(), *self.failed])
        self.failed.clear()

    # work

    def is_queued(self, handle: int) -> bool:
        """Whether work on the stream is done later, by the stream's thread."""
        return handle > PER_THREAD_STREAM or self.asynchronous

    def queue(self, handle: int) -> CpuStream:
        """The queue for work on the stream, behind what it has to wait for; the default stream has one, too."""
        if handle > PER_THREAD_STREAM:
            found = self.by_handle.get(handle)
            if found is None or found is self.default:
                owner = self.of(handle)
                return self.find(handle) if owner is self else owner.queue(handle)
            if self.asynchronous and found.blocking and found.recording is None and not self.default.idle:
                found.submit(self.default.record().wait)
            return found
        self.captures.forbid("use the default stream")
        for other in self.all():
            if other.blocking and other is not self.default and not other.idle:
                self.default.submit(other.record().wait)
        return self.default

    def perform(self, handle: int, work: Callable[[], None]) -> None:
        """Do *work*, a copy or a fill, on the stream: at once where that is the default stream."""
        if handle > PER_THREAD_STREAM:
            self.queue(handle).submit(work)
            return
        self.wait_for_blocking()
        if self.asynchronous:
            raise_fault(self.default.take_fault())  # a copy would miss the kernel's writes
        work()

    def add_callback(self, handle: int, callback: Callable[[BaseException | None], None]) -> None:
        """Call *callback* with the stream's fault, if any, once the work before it is done."""
        self.captures.forbid_on(handle, "call back from")
        if not self.is_queued(handle):
            self.wait_for_blocking()
        self.queue(handle).submit_always(lambda fault: callback(_described(fault)))

    def call_after_all(self, release: Callable[[], None]) -> None:
        """Call *release* once, when all streams have done the work that they were given so far: it may use the memory
        that is released. The last stream to pass this point calls."""
        busy = [stream for stream in self.all() if not stream.idle]
        if not busy:
            release()
            return
        # Two may pass it at once, and one alone may find that there is nothing left to take.
        others = [None] * (len(busy) - 1)

        def pass_point() -> None:
            try:
                others.pop()
            except IndexError:
                release()

        for stream in busy:
            stream.keep(pass_point)

    # events

    def wait_event(self, handle: int, event: CpuEvent) -> None:
        """Let the stream's next work wait for the point that *event* was last recorded at."""
        recording = self.captures.of(handle)
        if event.recording is not None or (recording is not None and event.record is not None):
            check_wait(event.recording, recording)
            return
        record = event.record
        if record is None:
            return
        if handle <= PER_THREAD_STREAM:
            self.captures.forbid("use the default stream")
        if self.is_queued(handle):
            self.queue(handle).submit(partial(_pass, record))
        else:
            record.wait()

    def record_event(self, handle: int, event: CpuEvent) -> None:
        """Let *event* stand for the end of the work that the stream has been given."""
        if self.of(handle) is not self:
            raise InvalidHandleError(f"the event is of one CPU device, and stream {handle} is of another")
        event.recording = self.captures.of(handle)
        if event.recording is not None:
            event.record = None  # an event between the work recorded before and after it, on one stream
            return
        if self.is_queued(handle):
            event.record = self.queue(handle).record()
            return
        self.wait_for_blocking()
        record = Record(None)
        record.reach(None)
        event.record = record


def _pass(record: Record) -> None:
    """Wait for *record*. Work that depends on failed work fails with it."""
    record.wait()
    if record.fault is not None:
        raise record.fault


def _described(fault: BaseException | None) -> BaseException | None:
    return fault.exception() if isinstance(fault, KernelFault) else fault
