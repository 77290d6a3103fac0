"""Streams with Numba CUDA's interface: callbacks with a status and an argument, and awaitables."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import hip_runtime
from hip_runtime.driver import DEFAULT_STREAM, LEGACY_STREAM, PER_THREAD_STREAM
from hip_runtime.errors import InvalidHandleError
from numba_hip.errors import OptionError

if TYPE_CHECKING:
    import asyncio

SUCCESS, LAUNCH_FAILURE = 0, 719
"""What callbacks are told: the numbers of ``hipSuccess`` and ``hipErrorLaunchFailure`` in the HIP runtime API."""


class Stream(hip_runtime.Stream):
    """A queue of work on a device. Created by `stream`, `default_stream` and similar functions."""

    def add_callback(  # type: ignore[override]
        self, callback: Callable[[Stream, int, Any], object], arg: Any = None
    ) -> None:
        """Call ``callback(stream, status, arg)``, on another thread, after the work queued so far.

        The status is 0, or 719 if an earlier kernel raised. An exception of the callback becomes a warning. The
        callback must not wait for this stream; later work on the stream waits for the callback.
        """
        if not callable(callback):
            raise TypeError(f"a callback has to be callable, got a {type(callback).__name__}")

        def call(error: BaseException | None) -> None:
            try:
                callback(self, SUCCESS if error is None else LAUNCH_FAILURE, arg)
            except Exception as raised:
                import traceback

                lines = "".join(traceback.format_exception(raised)).rstrip()
                warnings.warn(f"a callback of {self} raised {type(raised).__name__}: {raised}\n{lines}", stacklevel=1)

        super().add_callback(call)

    def async_done(self) -> asyncio.Future[Stream]:
        """An awaitable of the running event loop for the work queued so far.

        Its result is this stream; if a kernel raised, awaiting raises the same exception.
        """
        import asyncio  # takes 20 ms, and most programs never need it

        loop = asyncio.get_running_loop()
        future: asyncio.Future[Stream] = loop.create_future()

        def resolve(error: BaseException | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(self)
            else:
                future.set_exception(error)

        def call(error: BaseException | None) -> None:
            with suppress(RuntimeError):  # nobody waits any more, as the loop is closed
                loop.call_soon_threadsafe(resolve, error)

        super().add_callback(call)
        return future


def stream(priority: int = 0) -> Stream:
    """A new stream on the current device: its work runs in order, while the host continues.

    *priority* is HIP's: a device that has several runs blocks of streams with a lower number first, and takes the
    nearest number that it has. The CPU device runs all streams alike.
    """
    if type(priority) is not int or not -(2**31) <= priority < 2**31:
        raise OptionError(f"priority is {priority!r}; it has to be a whole number, lower for what shall run first")
    return Stream(priority=priority)


def default_stream() -> Stream:
    """The default stream of the current device."""
    return Stream(handle=DEFAULT_STREAM)


def legacy_default_stream() -> Stream:
    """The default stream that waits for the other streams of the device, as they do for it."""
    return Stream(handle=LEGACY_STREAM)


def per_thread_default_stream() -> Stream:
    """The default stream of the calling thread; on the CPU device it is the default stream."""
    return Stream(handle=PER_THREAD_STREAM)


def external_stream(ptr: int) -> Stream:
    """The stream with the handle *ptr*, which was created, and is kept alive, elsewhere."""
    try:
        handle = -1 if isinstance(ptr, bool) else operator.index(ptr)
    except TypeError:
        handle = -1
    if handle < 0:
        raise InvalidHandleError(f"the handle of a stream is a whole number from 0 on, not {ptr!r}")
    return Stream(handle=handle)
