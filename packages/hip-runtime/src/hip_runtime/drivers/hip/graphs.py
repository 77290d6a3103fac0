"""Graphs of the HIP runtime, and what the driver adds: owners, code that stays loaded, and faults of kernels."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref, c_void_p
from typing import Any

from hip_runtime.drivers import captures
from hip_runtime.drivers.captures import Captures
from hip_runtime.drivers.hip.calls import Calls
from hip_runtime.drivers.hip.capture_gate import Gate, closed
from hip_runtime.drivers.hip.faults import FaultRecord
from hip_runtime.drivers.hip.modules import HipKernel
from hip_runtime.drivers.hip.streams import HipStream
from hip_runtime.errors import CaptureError, InvalidHandleError

THREAD_LOCAL = 1
"""``hipStreamCaptureModeThreadLocal``: what spoils a capture is refused to the thread that captures alone."""

Describe = Callable[[Any], BaseException]


class HipRecording(captures.Recording):
    """What the work that was recorded uses, to be kept until no graph refers to it any more."""

    def __init__(self) -> None:
        super().__init__()
        self.owners: list[object] = []
        self.records: dict[FaultRecord, Describe | None] = {}
        """Where the recorded kernels leave faults, and what makes exceptions of them."""

    def add_launch(self, function: HipKernel, describe: Describe | None) -> None:
        """Record a launch of *function*; its module stays loaded as long as this object lives."""
        function.module.users.add(self)
        self.owners.append(function)
        if function.record is not None:
            self.records[function.record] = describe

    def describe_records(self) -> set[FaultRecord]:
        """The records, each with what makes exceptions of its faults; a launch of the graph may have left one."""
        for record, describe in self.records.items():
            record.describe = describe
        return set(self.records)


class HipGraph:
    """The ``hipGraph_t`` *handle*, 0 once it was destroyed, on *device*."""

    def __init__(self, device: int, handle: int, recording: HipRecording) -> None:
        self.device = device
        self.handle = handle
        self.recording: HipRecording | None = recording

    def parts(self) -> tuple[int, HipRecording]:
        """The handle and the recording, unless it was destroyed: `InvalidHandleError`."""
        if self.recording is None:
            raise InvalidHandleError("the graph was destroyed")
        return self.handle, self.recording


class HipExecutable(HipGraph):
    """The ``hipGraphExec_t`` *handle*."""

    destroyed = False
    """Whether nobody launches it again."""


class Graphs:
    """The graphs of a driver, and the captures that make them."""

    def __init__(self, calls: Calls, going: Captures[Any], gate: Gate) -> None:
        self._calls = calls
        self._captures: Captures[HipRecording] = going
        self._gate = gate
        self._retired: set[HipExecutable] = set()

    def begin(self, stream: HipStream) -> None:
        """Capture *stream*, which can be, once all is done that it was given before: HIP cannot be asked meanwhile."""
        while stream.held and not stream.is_current:
            stream.wait_issued()
        self._calls.activate(stream.device)
        stream.wait()
        with closed(self._gate, stream.gate):
            if stream.held:
                raise CaptureError(
                    f"stream {stream.handle} still waits for a callback: capture it later, not in the callback itself"
                )
            stream.wait()
            # Remembered before HIP begins: Python may start a finaliser anywhere, which must not ask any more.
            recording = stream.recording = HipRecording()
            self._captures.begin(stream.handle, recording)
            try:
                self._calls.call("hipStreamBeginCapture", stream.handle, THREAD_LOCAL)
            except BaseException:
                self._forget(stream)
                raise
            stream.gate.turn += 1

    def end(self, stream: HipStream) -> HipGraph:
        """What was recorded; HIP ends the capture whatever it answers."""
        recording = self._captures.check_end(stream.handle)
        place = c_void_p()
        self._calls.activate(stream.device)
        try:
            self._calls.call("hipStreamEndCapture", stream.handle, byref(place))
        finally:
            self._forget(stream)
        return HipGraph(stream.device, place.value or 0, recording)

    def abandon(self, stream: HipStream) -> None:
        """Abandon the capture of *stream*, if there is one, as the stream is destroyed; errors of HIP are ignored."""
        if stream.recording is None:
            return
        place = c_void_p()
        self._calls.hipStreamEndCapture(stream.handle, byref(place))
        self._forget(stream)
        if place.value:
            self._calls.hipGraphDestroy(place.value)
        self._calls.hipGetLastError()

    def _forget(self, stream: HipStream) -> None:
        self._captures.drop(stream.handle)
        stream.recording = None

    def destroy(self, graph: HipGraph) -> None:
        """Give the graph back; executables have copies of their own."""
        handle, graph.handle, graph.recording = graph.handle, 0, None
        if handle:
            self._calls.call("hipGraphDestroy", handle)

    def instantiate(self, graph: HipGraph) -> HipExecutable:
        """A new executable."""
        handle, recording = graph.parts()
        place = c_void_p()
        self._calls.activate(graph.device)
        self._calls.call("hipGraphInstantiateWithFlags", byref(place), handle, 0)
        return HipExecutable(graph.device, place.value or 0, recording)

    def launch(self, executable: HipExecutable, stream: HipStream) -> None:
        """Launch the graph. The executable and the objects that its work uses are kept until it is done."""
        handle, recording = executable.parts()
        self._calls.activate(stream.device)
        self._calls.call("hipGraphLaunch", handle, stream.handle)
        stream.suspects |= recording.describe_records()

    def retire(self, executable: HipExecutable) -> None:
        """Destroy *executable* when its device is idle; it is not launched again. Takes no lock, so that a finaliser
        may call it."""
        if not executable.destroyed:
            executable.destroyed = True
            self._retired.add(executable)

    def retired(self, device: int | None = None) -> list[HipExecutable]:
        """The executables to be destroyed; only those of *device*, if given."""
        return [executable for executable in list(self._retired) if device in (None, executable.device)]

    def release(self, executables: list[HipExecutable]) -> None:
        """Give back what `retired` gave before their devices were waited for: others may have launches since."""
        for executable in executables:
            self._retired.discard(executable)
            handle, executable.handle, executable.recording = executable.handle, 0, None
            if handle:  # otherwise another thread was faster
                self._calls.activate(executable.device)
                self._calls.call("hipGraphExecDestroy", handle)
