"""Events of the HIP runtime: those that callers make, and the points that the driver itself waits for."""

from __future__ import annotations

import threading
from collections import deque
from ctypes import byref, c_float, c_void_p
from typing import TYPE_CHECKING, Any

from hip_runtime.drivers.captures import check_recorded
from hip_runtime.drivers.hip.calls import Calls
from hip_runtime.drivers.hip.capture_gate import Gate
from hip_runtime.drivers.hip.errors import NOT_READY
from hip_runtime.errors import EventError, InvalidHandleError

if TYPE_CHECKING:
    from hip_runtime.drivers.captures import Recording
    from hip_runtime.drivers.hip.streams import HipStream

BLOCKING_SYNC, DISABLE_TIMING = 1, 2
"""``hipEventBlockingSync``: a thread that waits sleeps; ``hipEventDisableTiming``."""


_ISSUED = threading.Event()
_ISSUED.set()


class EventPool:
    """HIP events of one device and one kind, used again and again."""

    def __init__(self, calls: Calls, device: int, *, timing: bool = False) -> None:
        self.calls = calls
        self.device = device
        self._flags = BLOCKING_SYNC | (0 if timing else DISABLE_TIMING)
        self._free: deque[int] = deque()

    def take(self) -> Point:
        """A point that was not recorded yet. The device must be the current one."""
        try:
            handle = self._free.pop()
        except IndexError:
            event = c_void_p()
            self.calls.call("hipEventCreateWithFlags", byref(event), self._flags)
            handle = event.value or 0
        return Point(self, handle)

    def give(self, handle: int) -> None:
        """Take back an event that nobody refers to any more. Takes no lock: may be called in a finaliser."""
        self._free.append(handle)

    def close(self) -> None:
        """Destroy the events that are not in use."""
        while self._free:
            self.calls.call("hipEventDestroy", self._free.pop())


class Point:
    """One point in the work of a stream; its HIP event goes back to the pool with the last reference."""

    __slots__ = ("_gate", "_pool", "_turn", "handle", "issued")

    def __init__(self, pool: EventPool, handle: int) -> None:
        self._pool = pool
        self._gate = Gate()
        self._turn = 0
        self.handle = handle
        self.issued: threading.Event | None = None
        """Set once the runtime was told of the record; ``None`` where it was told at once."""

    def __del__(self) -> None:
        self._pool.give(self.handle)

    def pin(self) -> None:
        """Somebody has still to wait for this record: never record the point again."""
        if self.issued is None:
            self.issued = _ISSUED

    def record(self, stream: HipStream) -> None:
        """Be the point behind what the runtime was given for *stream*."""
        gate = stream.gate
        turn = gate.turn
        self._pool.calls.call("hipEventRecord", self.handle, stream.handle)
        self._gate, self._turn = gate, turn

    @property
    def is_issued(self) -> bool:
        """Whether the runtime knows the point."""
        return self.issued is None or self.issued.is_set()

    def is_reached(self) -> bool:
        """Whether the work before the point is done."""
        if not self.is_issued:
            return False
        with self._gate:
            if self._is_past:
                return True
            code = self._pool.calls.hipEventQuery(self.handle)
        if code not in (0, NOT_READY):
            raise self._pool.calls.error("hipEventQuery", code)
        return code == 0

    def wait(self) -> None:
        """Return when the work before the point is done."""
        if self.issued is not None:
            self.issued.wait()
        with self._gate:
            if not self._is_past:
                self._pool.calls.call("hipEventSynchronize", self.handle)

    def hold_back(self, stream: int) -> None:
        """Let the HIP stream *stream* wait for the work before the point."""
        if self.issued is not None:
            self.issued.wait()
        with self._gate:
            if not self._is_past:
                self._pool.calls.call("hipStreamWaitEvent", stream, self.handle, 0)

    @property
    def _is_past(self) -> bool:
        """Whether its stream was captured since: the work before was waited for then, and HIP is not asked again."""
        return self._turn != self._gate.turn

    def milliseconds_to(self, end: Point) -> float:
        """Time from this point to *end*; both were reached."""
        time = c_float()
        self._pool.calls.call("hipEventElapsedTime", byref(time), self.handle, end.handle)
        return time.value


class HipEvent:
    """What `Driver.create_event` gives: the last point that was recorded, if any."""

    __slots__ = ("__weakref__", "_pool", "device", "point", "recording", "stream", "timing")

    def __init__(self, pool: EventPool, *, timing: bool) -> None:
        self._pool: EventPool | None = pool
        self.device = pool.device
        self.timing = timing
        self.point: Point | None = pool.take()
        self.stream: HipStream | None = None
        """Where it was recorded last; ``None`` before."""
        self.recording: Recording | None = None
        """The capture that it was last recorded in, if it was in one."""

    @property
    def recorded(self) -> Point | None:
        """The point, if it was recorded."""
        return None if self.stream is None else self.point

    def renew(self, *, apart: bool) -> Point:
        """The point to record now. It is another one where somebody may still have to wait for the last record.

        *apart*: the runtime is told of the record later, so that records before it must stay as they are.
        """
        if self._pool is None:
            raise InvalidHandleError("the event was destroyed; make another one")
        point = self.point
        if point is None or apart or point.issued is not None:
            point = self._pool.take()
        return point

    def destroy(self) -> None:
        """Let go of the HIP event."""
        self._pool = self.point = self.stream = self.recording = None

    def finished_point(self, role: str) -> Point:
        """The point, for its time; *role* names the event in errors."""
        check_recorded(self.recording)
        if not self.timing:
            raise EventError(f"the {role} event was created without timing")
        point: Any = self.recorded
        if point is None:
            raise EventError(f"the {role} event was never recorded; record it on a stream first")
        if not point.is_reached():
            raise EventError(f"the work before the {role} event has not finished; synchronize the event first")
        return point  # type: ignore[no-any-return]
