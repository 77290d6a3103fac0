"""The streams that are being captured, and what is forbidden meanwhile: the same on every device."""

from __future__ import annotations

import threading
from typing import Generic, TypeVar

from hip_runtime.driver import PER_THREAD_STREAM
from hip_runtime.errors import CaptureError


class Recording:
    """What a stream is given while it is captured, by the thread that began the capture or by others."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()


R = TypeVar("R", bound=Recording)


class Captures(Generic[R]):
    """The captures of one driver that have not ended."""

    def __init__(self) -> None:
        self._going: dict[int, R] = {}

    def check_begin(self, stream: int) -> None:
        """`CaptureError` where a capture of *stream* cannot begin."""
        if stream <= PER_THREAD_STREAM:
            raise CaptureError("the default stream cannot be captured: make a stream for it")
        if stream in self._going:
            raise CaptureError(f"stream {stream} is being captured already: end that capture first")
        self.forbid("capture another stream")

    def begin(self, stream: int, recording: R) -> None:
        """Remember that *stream* is being captured."""
        self._going[stream] = recording

    def check_end(self, stream: int) -> R:
        """What the capture of *stream* recorded; `CaptureError` where the calling thread cannot end it."""
        recording = self._going.get(stream)
        if recording is None:
            raise CaptureError(f"stream {stream} is not being captured")
        if recording.thread != threading.get_ident():
            raise CaptureError(f"the capture of stream {stream} was begun by another thread, which has to end it")
        return recording

    def end(self, stream: int) -> R:
        """Forget the capture of *stream*, and give what it recorded; `CaptureError`."""
        recording = self.check_end(stream)
        del self._going[stream]
        return recording

    def drop(self, stream: int) -> None:
        """Forget the capture of *stream*, if there is one: the stream goes."""
        self._going.pop(stream, None)

    def of(self, stream: int) -> R | None:
        """What records *stream*, if it is being captured."""
        return self._going.get(stream) if self._going else None

    @property
    def going(self) -> bool:
        """Whether any thread captures."""
        return bool(self._going)

    @property
    def here(self) -> bool:
        """Whether the calling thread captures."""
        if not self._going:
            return False
        thread = threading.get_ident()
        return any(recording.thread == thread for recording in list(self._going.values()))

    def forbid(self, action: str) -> None:
        """`CaptureError` if the calling thread captures: it cannot do *action* until it has ended that."""
        if self.here:
            raise CaptureError(
                f"cannot {action} while this thread captures a stream: do it before the capture or after it"
            )

    def forbid_on(self, stream: int, action: str) -> None:
        """`CaptureError` if *stream* is being captured or the calling thread captures."""
        if self.of(stream) is not None:
            raise CaptureError(
                f"cannot {action} stream {stream}, which is being captured: only launches, copies, fills and events "
                "can be recorded"
            )
        self.forbid(f"{action} a stream")


def check_wait(event_recording: object, stream_recording: object) -> None:
    """`CaptureError` unless a stream may wait for an event: each with the recording that it is part of, or ``None``."""
    if event_recording is not None and event_recording is not stream_recording:
        raise CaptureError(
            "the event was recorded in a capture, and only the captured stream can wait for it; record it again"
        )
    if stream_recording is not None and event_recording is None:
        raise CaptureError(
            "a stream that is being captured cannot wait for an event from outside of the capture; wait before the "
            "capture, or on the stream that the graph is launched on"
        )


def check_recorded(event_recording: object) -> None:
    """`CaptureError` where an event was last recorded in a capture: nothing says when that is reached."""
    if event_recording is not None:
        raise CaptureError("the event was recorded in a capture, which gives it no time; record it again on a stream")
