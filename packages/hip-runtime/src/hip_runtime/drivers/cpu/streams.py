"""Streams and events of the CPU device.

A stream is a queue with its own thread, which starts with the first work item and ends when the stream is destroyed.
The default stream has neither: its work runs in the calling thread, after all work queued on blocking streams before
it.

Queues are `queue.SimpleQueue`, whose ``put`` may be called in a finaliser.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from hip_runtime.drivers.captures import check_recorded
from hip_runtime.drivers.cpu.execution import block_scheduler
from hip_runtime.drivers.cpu.graphs import CpuRecording
from hip_runtime.errors import EventError, HipRuntimeError, KernelFault
from hip_runtime.said_names import our

Work = Callable[[], None]

PATIENCE = 2.0
"""Seconds that a piece of work may go on for when the process ends."""

_ROUND = 0.05
"""Seconds after which a thread is told again that its launch shall end: it may have begun another meanwhile."""

PACE = 512
"""A caller is ahead of a stream by at most twice so many pieces of work: what waits takes memory, and Python's garbage
collector goes through it again and again."""

_generation = 0  # of the process: increased in each forked child


class Record:
    """A point in the work of a stream: whether it was reached, when, and what failed before it."""

    __slots__ = ("_done", "_generation", "fault", "stream", "time")

    def __init__(self, stream: CpuStream | None) -> None:
        self._done = threading.Event()
        self._generation = _generation
        self.stream = stream
        self.time = 0.0
        self.fault: BaseException | None = None

    def reach(self, fault: BaseException | None) -> None:
        """The work before this point is done, or was dropped because of *fault*."""
        self.fault = fault
        self.time = time.perf_counter()
        self._done.set()

    def wait(self) -> None:
        """Return when the point is reached. Ctrl-C ends the wait, and says what it did not end."""
        try:
            self.wait_for(None)
        except KeyboardInterrupt as interrupt:
            interrupt.args = interrupt.args or (_goes_on(),)
            raise

    def wait_for(self, seconds: float | None) -> bool:
        """Return when the point is reached, or *seconds* are over; whether it is."""
        return self.reached or self._done.wait(seconds)

    def take_fault(self) -> BaseException | None:
        """The error that stopped the work before this point, if it has not been reported yet."""
        if self.fault is None or self.stream is None or self.stream.fault is not self.fault:
            return None
        return self.stream.take_fault()

    @property
    def reached(self) -> bool:
        """Whether the work before this point is over; in a forked child, the work that it left to its parent is."""
        return self._done.is_set() or self._generation != _generation


class CpuStream:
    """A queue of work that runs in order on its own thread.

    Once a work item raises, everything behind it is dropped until `take_fault` reports the error.
    """

    def __init__(self, *, blocking: bool) -> None:
        self.blocking = blocking
        self._queue: SimpleQueue[Any] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ended = False
        self._submitted = 0
        self._completed = 0
        self.used = False
        """Whether it ever had work."""
        self._paced: Record | None = None
        """The last point at which the caller waited for the stream, or would have."""
        self.fault: BaseException | None = None
        """What stopped this stream and was not reported yet."""
        self.recording: CpuRecording | None = None
        """Where work goes instead while the stream is captured."""
        _streams.add(self)

    @property
    def idle(self) -> bool:
        """Whether there is nothing left to do."""
        return self._completed == self._submitted

    @property
    def is_current(self) -> bool:
        """Whether the calling thread is this stream's."""
        return self._thread is threading.current_thread()

    def submit(self, work: Work) -> None:
        """Do *work* after what was submitted before, unless that failed; or record it."""
        if self.recording is not None:
            self.recording.works.append(work)
            return
        self._put(partial(_do, self, work))

    def submit_always(self, work: Callable[[BaseException | None], None]) -> None:
        """Call *work* after what was submitted before, with the error that stopped it, if one did."""
        self._put(partial(_do_always, self, work))

    def keep(self, release: Work) -> None:
        """Call *release* when the work submitted so far is done; an error of its is the thread's, which goes on. Takes
        no lock: may be called in a finaliser."""
        self._queue.put(partial(_release, release))
        if self._ended:
            _drain(self._queue)

    def record(self) -> Record:
        """A point behind everything submitted so far."""
        record = Record(self)
        self.submit_always(record.reach)
        return record

    def wait(self) -> None:
        """Return when everything submitted so far is done or dropped; a stream does not wait for itself."""
        if not self.idle and not self.is_current:
            self.record().wait()

    def abort_launch(self) -> None:
        """Have the launch that runs now end within its blocks."""
        thread = self._thread
        if thread is not None and thread.native_id is not None:
            block_scheduler.abort(thread.native_id)

    def take_fault(self) -> BaseException | None:
        """Return and clear the error that stopped this stream, which can then be used again."""
        with self._lock:  # the stream's thread may fail meanwhile
            fault, self.fault = self.fault, None
        return fault

    def fail(self, fault: BaseException) -> None:
        """Drop what follows, because of *fault*, unless another one has not been reported yet."""
        with self._lock:
            self.fault = self.fault or fault

    def close(self) -> None:
        """End the thread after the work submitted so far. Takes no lock: may be called in a finaliser."""
        self.keep(self._end)
        self._queue.put(None)
        if self._thread is None:
            _drain(self._queue)

    def join(self) -> None:
        """Drop work that has not begun, and return when the thread has ended. A launch that takes longer than
        `PATIENCE` is ended within its blocks."""
        self.fault = self.fault or HipRuntimeError("the process is ending")
        self.close()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(PATIENCE)
            while thread.is_alive():
                self.abort_launch()
                thread.join(_ROUND)

    def renew(self) -> None:
        """Become an idle stream in a forked child: the thread and what it was given belong to the parent."""
        self._queue, self._lock, self._thread = SimpleQueue(), threading.Lock(), None
        self._submitted = self._completed = 0
        self.used, self._paced = False, None
        self.fault = None

    def _end(self) -> None:
        self._ended = True

    def _put(self, work: Work) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=_run, args=(self._queue,), name="hip-stream", daemon=True)
                self._thread.start()
            self.used = True
            self._submitted += 1
            paces = self._submitted % PACE == 0
            self._queue.put(work)
        if paces:
            self._let_catch_up()

    def _let_catch_up(self) -> None:
        """Wait until all work is done that was submitted before the last call; a stream does not wait for itself."""
        before, self._paced = self._paced, self.record()
        if before is not None and not self.is_current:
            before.wait()


def abort(streams: Sequence[CpuStream]) -> None:
    """End the launches that run on *streams*, within their blocks, and drop the work that was submitted behind them,
    and the errors that stopped them. Running callbacks are waited for."""
    for stream in streams:
        stream.fault = HipRuntimeError("the stream was aborted")
    records = [stream.record() for stream in streams if not stream.idle]
    while not all(record.wait_for(_ROUND) for record in records):  # also of streams that wait for another
        for stream in streams:
            stream.abort_launch()
    for stream in streams:
        stream.fault = None


def _do(stream: CpuStream, work: Work) -> None:
    """Do *work*, unless the stream failed before."""
    try:
        if stream.fault is None:
            work()
    except BaseException as error:
        stream.fail(error)
    finally:
        stream._completed += 1


def _do_always(stream: CpuStream, work: Callable[[BaseException | None], None]) -> None:
    """Do *work*, which is told whether the stream failed before."""
    try:
        work(stream.fault)
    except BaseException as error:
        stream.fail(error)
    finally:
        stream._completed += 1


def _release(release: Work) -> None:
    """Call *release*, which may be a memory manager's of the user."""
    try:
        release()
    except BaseException as error:
        thread = threading.current_thread()
        threading.excepthook(threading.ExceptHookArgs((type(error), error, error.__traceback__, thread)))


def _run(queue: SimpleQueue[Any]) -> None:
    while True:
        work = queue.get()
        if work is None:
            _drain(queue)
            return
        work()
        del work  # its owners must not live until the next piece of work


def _drain(queue: SimpleQueue[Any]) -> None:
    """Do what was queued after the end of a stream: releasing memory. Any number of threads may do so at once."""
    with suppress(Empty):
        while True:
            work = queue.get_nowait()
            if work is not None:
                work()


_streams: weakref.WeakSet[CpuStream] = weakref.WeakSet()


def stop_all() -> None:
    """End all streams' threads: at interpreter exit, memory and code would be freed while they still run."""
    for stream in list(_streams):
        stream.join()


def renew_all() -> None:
    """Make every stream usable in a forked child."""
    global _generation
    _generation += 1
    for stream in list(_streams):
        stream.renew()


class CpuEvent:
    """The last point that was recorded, if any."""

    __slots__ = ("__weakref__", "record", "recording", "timing")

    def __init__(self, *, timing: bool) -> None:
        self.timing = timing
        self.record: Record | None = None
        self.recording: CpuRecording | None = None
        """The capture that it was last recorded in, if it was in one."""

    def finished_time(self, role: str) -> float:
        """When the point was reached, in seconds; *role* names the event in errors."""
        check_recorded(self.recording)
        if not self.timing:
            raise EventError(f"the {role} event was created without timing")
        if self.record is None:
            raise EventError(f"the {role} event was never recorded; record it on a stream first")
        if not self.record.reached:
            raise EventError(f"the work before the {role} event has not finished; synchronize the event first")
        return self.record.time


def raise_fault(fault: BaseException | None) -> None:
    """Raise the error that stopped a stream, as the owner of the kernel describes it."""
    if fault is not None:
        raised = fault.exception() if isinstance(fault, KernelFault) else fault
        raise _twin(fault) if raised is fault else raised


def _twin(fault: BaseException) -> BaseException:
    """A copy of *fault* to raise: events keep the first, and its traceback would keep what its frames hold."""
    twin = type(fault).__new__(type(fault), *fault.args)
    twin.__dict__.update(fault.__dict__)
    twin.__cause__, twin.__suppress_context__ = fault.__cause__, fault.__suppress_context__
    return twin.with_traceback(fault.__traceback__)


def _goes_on() -> str:
    """What `KeyboardInterrupt` says that ends a wait."""
    return (
        "the work of the stream goes on; Stream.abort() ends it, and Device.abort(), or "
        f"{our('reset')}(), all work of the device"
    )
