"""Streams of the HIP runtime, and what the driver adds to them: callbacks, owners, and faults of kernels.

A callback runs on a thread of the stream's own, and what comes behind it waits on the host until it has run: the stream
is *held*. So the runtime never waits for Python, whatever it is called by.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from ctypes import byref, c_int
from functools import partial
from typing import TYPE_CHECKING

from hip_runtime.drivers.hip.calls import Calls
from hip_runtime.drivers.hip.capture_gate import Gate
from hip_runtime.drivers.hip.errors import NOT_READY
from hip_runtime.drivers.hip.events import EventPool, HipEvent, Point
from hip_runtime.drivers.hip.faults import FaultRecord, described
from hip_runtime.errors import CaptureError

if TYPE_CHECKING:
    from hip_runtime.drivers.hip.graphs import HipRecording

Work = Callable[[], None]
Callback = Callable[[BaseException | None], None]

OWNERS_PER_POINT = 64
"""After so many pieces of work with owners, an event is recorded that tells when these can go."""


class HipStream:
    """One stream of *device*: the HIP stream *handle*, 0 for the default one of the device.

    *theirs* is there where another library made the stream, and keeps what is given to it while that one captures it.
    """

    def __init__(
        self,
        calls: Calls,
        pool: EventPool,
        handle: int,
        *,
        blocking: bool,
        holding: set[HipStream],
        theirs: HipRecording | None = None,
    ) -> None:
        self.handle = handle
        self.device = pool.device
        self.blocking = blocking
        self.held = False
        self.fault: BaseException | None = None
        """What went wrong on this stream and was not reported yet."""
        self.suspects: set[FaultRecord] = set()
        """Records of the kernels that may have left a fault since the last look."""
        self.recording: HipRecording | None = None
        """What keeps the owners of the work while the stream is captured."""
        self.gate = Gate()
        """Within it HIP is asked about the stream."""
        self._calls = calls
        self._pool = pool
        self._theirs = theirs
        self._holding = holding  # the held streams of the driver
        self._queue: deque[Work] = deque()
        self._thread: threading.Thread | None = None
        # Reentrant: Python may start a finaliser that gives memory back while its thread is inside.
        self._lock = threading.RLock()
        self._owners: list[object] = []
        self._guarded: deque[tuple[Point, list[object]]] = deque()

    # captures

    @property
    def is_captured_by_others(self) -> bool:
        """Whether another library captures the stream: any question about its work would cost that capture."""
        if self._theirs is None or self.recording is not None:
            return False
        status = c_int()
        if self._calls.hipStreamIsCapturing(self.handle, byref(status)):
            self._calls.hipGetLastError()
            return False  # its library has destroyed it: later uses raise an error
        return status.value != 0

    @property
    def is_theirs(self) -> bool:
        """Whether another library made the stream."""
        return self._theirs is not None

    @property
    def is_gone(self) -> bool:
        """Whether another library has destroyed its stream."""
        if self._theirs is None or not self._calls.hipStreamGetDevice(self.handle, byref(c_int())):
            return False
        self._calls.hipGetLastError()
        return True

    @property
    def recording_now(self) -> HipRecording | None:
        """What keeps the owners of work that is recorded in a graph, this driver's or another library's."""
        return self._theirs if self.is_captured_by_others else self.recording

    def check_own(self, action: str) -> None:
        """`CaptureError` where another library captures the stream: *action* would cost it that."""
        if self.is_captured_by_others:
            raise CaptureError(
                f"cannot {action} stream {self.handle}, which another library is capturing: launches, copies and fills "
                "alone can be recorded"
            )

    # work

    def submit(self, work: Work) -> None:
        """Do *work*, which hands something to the HIP stream: now, or after the callbacks that are still to run."""
        if self.held:
            with self._lock:
                if self.held:
                    self._queue.append(work)
                    return
        work()

    def add_callback(self, callback: Callback, others: Sequence[HipStream] = ()) -> None:
        """Call *callback* after the work so far, here and on the streams *others*, with what stopped it or ``None``."""
        with self._lock:
            self._hold(partial(self._call_back, callback, () if self.held else self._points(others), others))

    def wait_for(self, point: Point) -> None:
        """Let the work from now on wait for *point*."""

        if self.held:
            point.pin()

        wait = partial(point.hold_back, self.handle)
        if point.is_issued:
            self.submit(wait)
            return
        with self._lock:
            self._hold(wait)

    def wait_issued(self) -> None:
        """Wait until the runtime has been given all work so far. A callback of this stream does not wait for itself."""
        if self.held and not self.is_current:
            marker = threading.Event()
            self.submit(marker.set)
            marker.wait()

    @property
    def is_current(self) -> bool:
        """Whether the calling thread is this stream's."""
        return self._thread is threading.current_thread()

    def is_done(self) -> bool:
        """Whether all work is done."""
        if self.held:
            return False
        return self._is_idle()

    def synchronize(self) -> None:
        """Wait until all work is done, and check whether kernels in it left a fault."""
        self.wait_issued()
        self.check_own("wait for")
        # Taken before: kernels that somebody launches meanwhile are not waited for.
        suspects, self.suspects = self.suspects, set()
        if self._theirs is not None:
            suspects |= self._theirs.describe_records()
        try:
            self.wait()
        except BaseException:
            self.suspects |= suspects
            raise
        self._look_at(suspects)

    def wait(self) -> None:
        """Return when the work is done that the runtime was told of; before a capture it was waited for.

        Where another library captures the stream that is unknown, and not waited for.
        """
        with self.gate:
            if self.recording is None and not self.gate.is_over and not self.is_captured_by_others:
                self._calls.call("hipStreamSynchronize", self.handle)

    def finish(self) -> None:
        """Return when the work is done that the runtime was told of, and let go of its owners."""
        owners, self._owners = self._owners, []
        try:
            self.wait()
        except BaseException:
            self._owners[:0] = owners
            raise

    def record(self, event: HipEvent) -> None:
        """Let *event* be the point behind the work given so far."""
        if self.held:
            with self._lock:
                if self.held:
                    point = event.renew(apart=True)
                    point.issued = threading.Event()
                    self._queue.append(partial(self._record, point, point.issued))
                    event.point, event.stream = point, self
                    return
        point = event.renew(apart=False)
        point.record(self)
        event.point, event.stream = point, self

    def _record(self, point: Point, issued: threading.Event) -> None:
        try:
            point.record(self)
        finally:
            issued.set()

    def point(self) -> Point:
        """A point behind everything that the runtime was told of."""
        point = self._pool.take()
        point.record(self)
        return point

    # faults

    def look_for_fault(self) -> None:
        """Check whether a kernel has left a fault; it stays until `take_fault`."""
        for record in self.suspects.copy():
            if record.is_released:
                self.suspects.discard(record)
        self._look_at(self.suspects.copy())

    def take_fault(self) -> BaseException | None:
        """The fault found since the last call, if any."""
        fault, self.fault = self.fault, None
        return fault

    def _look_at(self, suspects: set[FaultRecord]) -> None:
        for record in suspects:
            fault = record.take()
            self.fault = self.fault or fault

    # owners

    def keep(self, owners: object) -> None:
        """Keep *owners* alive until the work given so far is done; or as long as the graph that it is recorded for."""
        recording = self.recording_now
        if recording is not None:
            recording.owners.append(owners)
            return
        self._owners.append(owners)
        if len(self._owners) >= OWNERS_PER_POINT:
            self._guard()
            self._reap_guarded()

    def reap(self) -> None:
        """Release the owners whose work is done. While a stream is captured, this cannot be asked."""
        if not (self._guarded or self._owners) or self.recording_now is not None:
            return
        self._reap_guarded()
        if self._owners:
            with self._lock:
                # Taken before the question: work that somebody gives meanwhile is not in the answer.
                owners, self._owners = self._owners, []
                done = False
                try:
                    done = self._is_idle()
                finally:
                    if not done:
                        self._owners[:0] = owners
            del owners  # outside of the lock, as dropping owners may run finalisers

    def _guard(self) -> Point | None:
        """Record a point behind the work that has owners, if there is any."""
        with self._lock:
            if not self._owners:
                return None
            point = self._pool.take()
            owners, self._owners = self._owners, []
            try:
                point.record(self)
            except BaseException:
                self._owners[:0] = owners
                raise
            self._guarded.append((point, owners))
            return point

    def _reap_guarded(self) -> None:
        while self._guarded:
            try:
                guarded = self._guarded.popleft()
            except IndexError:  # another thread does the same
                return
            reached = False
            try:
                reached = guarded[0].is_reached()
            finally:
                if not reached:
                    self._guarded.appendleft(guarded)
            if not reached:
                return

    def _is_idle(self) -> bool:
        with self.gate:
            if self.recording is not None or self.gate.is_over:
                return True  # earlier work was waited for, or found to be done
            if self.is_captured_by_others:
                return False
            code = self._calls.hipStreamQuery(self.handle)
        if code not in (0, NOT_READY):
            raise self._calls.error("hipStreamQuery", code)
        return code == 0

    # the thread

    def _hold(self, work: Work) -> None:
        """Let *work*, and all that comes behind it, be done by the stream's thread. The lock is held."""
        self._queue.append(work)
        if self.held:
            return
        thread = threading.Thread(target=self._run, name="hip-stream", daemon=True)
        self.held, self._thread = True, thread
        self._holding.add(self)
        try:
            thread.start()
        except BaseException:
            self._queue.clear()
            self._let_go()
            self._thread = None
            raise

    def end_thread(self) -> None:
        """Wait until the stream's thread has ended, if it has one. The runtime has been given all work."""
        if self._thread is not None and not self.is_current:
            self._thread.join()

    def abandon(self) -> None:
        """Forget, in a forked child, what is still to be done: it is the parent's."""
        self._lock = threading.RLock()
        self._queue.clear()
        self._let_go()

    def _let_go(self) -> None:
        self.held = False
        self._holding.discard(self)

    def _points(self, others: Sequence[HipStream]) -> list[Point]:
        points = []
        for stream in (*others, self):  # so that the device of this stream is the current one afterwards
            self._calls.activate(stream.device)
            points.append(stream.point())
        return points

    def _call_back(self, callback: Callback, points: Sequence[Point], others: Sequence[HipStream]) -> None:
        try:
            for point in points or self._points(others):
                point.wait()
            self.look_for_fault()
            for other in others:
                other.look_for_fault()
                self.fault, other.fault = self.fault or other.fault, None
        except BaseException as error:
            self.fault = self.fault or error
        callback(described(self.fault))

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._queue:
                    last = self._last_point()  # a capture may begin as soon as the stream is released
                    self._let_go()
                    break
                work = self._queue.popleft()
            try:
                self._calls.activate(self.device)
                work()
            except BaseException as error:
                self.fault = self.fault or error
            del work  # its owners must not live until the next piece of work
        try:
            if last is not None:
                last.wait()
                self._reap_guarded()
        except BaseException as error:
            self.fault = self.fault or error

    def _last_point(self) -> Point | None:
        """A point behind all work that has owners, for the thread to wait for before it ends."""
        try:
            return self._guard()
        except BaseException as error:
            self.fault = self.fault or error
            return None
