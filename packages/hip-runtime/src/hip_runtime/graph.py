"""Graphs: recorded work of a stream, to be launched repeatedly as a unit."""

from __future__ import annotations

import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

from hip_runtime.activity import Activity, do
from hip_runtime.errors import CaptureError, InvalidHandleError, LaunchError
from hip_runtime.stream_handle import stream_handle

if TYPE_CHECKING:
    from hip_runtime.device import Device
    from hip_runtime.stream import Stream


class Graph:
    """The work that a block of `Stream.capture` recorded on *device*. It keeps everything that the work uses alive."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._handle: Any = None
        self._finalizer: Any = None

    def complete(self, handle: Any) -> None:
        """Set the driver's recording *handle*: the capture has ended."""
        self._handle = handle
        self._finalizer = weakref.finalize(self, self.device.driver.destroy_graph, handle)
        self._finalizer.atexit = False

    def __repr__(self) -> str:
        return f"<Graph on device {self.device.id}{'' if self._is_open else ', which cannot be instantiated'}>"

    def instantiate(self) -> ExecutableGraph:
        """Make it ready to launch. `CaptureError` before the block that captures it has ended, or where that raised."""
        if self._finalizer is None:
            raise CaptureError(
                "the graph is not complete: instantiate it after the block of Stream.capture, which must not raise"
            )
        if not self._is_open:
            raise InvalidHandleError("the graph was closed; instantiate it before, or capture another one")
        return ExecutableGraph(self.device, self.device.driver.instantiate(self._handle))

    def close(self) -> None:
        """Destroy it now; executables made from it stay."""
        if self._finalizer is not None:
            self._finalizer()
            self._handle = None

    @property
    def _is_open(self) -> bool:
        return self._finalizer is not None and self._finalizer.alive


class ExecutableGraph:
    """A graph that is ready to launch, any number of times; made by `Graph.instantiate`.

    It keeps everything that its work uses alive, and is destroyed with the last reference, once its launches are done.
    Launches of one executable never run at the same time.
    """

    def __init__(self, device: Device, handle: Any) -> None:
        self.device = device
        self._handle = handle
        self._finalizer: Any = weakref.finalize(self, device.driver.destroy_executable, handle)
        self._finalizer.atexit = False

    def __repr__(self) -> str:
        return f"<ExecutableGraph on device {self.device.id}{'' if self._finalizer.alive else ', closed'}>"

    def launch(self, stream: Stream | int | None = None) -> None:
        """Put all that was recorded on *stream*, the default one if left out, in the order in which it was recorded.

        It works on the memory that it was recorded with, as that is then. Faults of kernels in it are raised as those
        of other launches are. `LaunchError` for a stream of another device.
        """
        if not self._finalizer.alive:
            raise InvalidHandleError("the graph was closed; instantiate it again to launch it")
        device = getattr(stream, "device", self.device)
        if device is not self.device:
            raise LaunchError(
                f"the graph was captured on device {self.device.id}; the stream is of device {device.id}: launch it on "
                "a stream of its own device"
            )
        number = stream_handle(stream)
        launch = partial(self.device.driver.launch_graph, self._handle, number)
        do(Activity("graph", "graph", self.device, number), launch)

    def close(self) -> None:
        """Destroy it now, once its launches are done."""
        self._finalizer()
        self._handle = None
