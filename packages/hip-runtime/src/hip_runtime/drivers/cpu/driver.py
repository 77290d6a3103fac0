"""The driver of the CPU device: `hip_runtime.driver.Driver` over the memory, streams and code of this process."""

from __future__ import annotations

import atexit
import os
import platform
import signal
import struct
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any

from hip_devicelib import spmd
from hip_devicelib.codeobject import CPU_TARGET, CodeObject, Kernel
from hip_runtime import config
from hip_runtime.driver import PER_THREAD_STREAM, DeviceAttributes, Dim3, MemoryKind, Strided
from hip_runtime.drivers.captures import Captures, check_recorded, check_wait
from hip_runtime.drivers.cpu import graphs, modules, streams
from hip_runtime.drivers.cpu.abi.fault_codes import TRAP_CODE, make_fault
from hip_runtime.drivers.cpu.device_attributes import attribute, clock_rate
from hip_runtime.drivers.cpu.diagnostics import observers
from hip_runtime.drivers.cpu.diagnostics.source_lines import describe_lines
from hip_runtime.drivers.cpu.execution import block_scheduler, stall_reports
from hip_runtime.drivers.cpu.execution.cooperative_launch import run_phases
from hip_runtime.drivers.cpu.graphs import Executable, Graph, Recording
from hip_runtime.drivers.cpu.memory import heap
from hip_runtime.drivers.cpu.memory.written_bytes import WrittenBytes, after
from hip_runtime.drivers.cpu.modules import CpuFunction, CpuModule
from hip_runtime.drivers.cpu.object_code import jit, program
from hip_runtime.drivers.cpu.streams import Event, Record, Stream, raise_fault
from hip_runtime.errors import (
    InvalidHandleError,
    KernelFault,
    LaunchError,
    MemoryFaultError,
    OutOfDeviceMemoryError,
    SymbolError,
    TrapError,
)

_DEFAULT_QUEUE = 15
"""Handle below those of the streams that callers create; it is never handed out."""

_WORD = struct.Struct("<q")

_drivers: weakref.WeakSet[CpuDriver] = weakref.WeakSet()


class CpuDriver:
    """One device, number 0: the processor of this machine."""

    name = "cpu"

    def __init__(self, memory_limit: int | None = None) -> None:
        self._heap = heap.Heap(config.cpu_memory() if memory_limit is None else memory_limit)
        self._streams: dict[int, Stream] = {}
        self._captures: Captures[Recording] = Captures()
        self._closing: set[Stream] = set()  # destroyed, with work left to do
        self._failed: deque[Stream] = deque()  # destroyed before anybody asked what went wrong
        self._default = Stream(blocking=True)
        """The default stream's callbacks, and its launches where these are asynchronous."""
        self._asynchronous = config.cpu_async()
        self._streams[_DEFAULT_QUEUE] = self._default
        self._new_stream = count(_DEFAULT_QUEUE + 1).__next__
        self._dispatch: Any = None
        self._written: WrittenBytes | None = None
        if config.cpu_races() != "0":
            self.watch_writes()
        _drivers.add(self)

    # devices

    def device_count(self) -> int:
        return 1

    def attributes(self, device: int) -> DeviceAttributes:
        name = _processor_name()
        return DeviceAttributes(
            name=name,
            target=CPU_TARGET,
            wave_size=config.cpu_wave_size(),
            compute_units=config.cpu_threads(),
            total_memory=self._heap.limit,
            max_threads_per_block=1024,
            max_block_dim=(1024, 1024, 1024),
            max_grid_dim=(2**31 - 1, 65535, 65535),
            shared_bytes_per_block=spmd.SHARED_BYTES,
            registers_per_block=65536,
            clock_rate=clock_rate(),
            memory_clock_rate=0,
            pci=(0, 0, 0),
            uuid=str(uuid.uuid5(uuid.NAMESPACE_OID, f"{platform.node()}/{name}")),
            integrated=True,
            managed_memory=True,
            concurrent_kernels=True,
            cooperative_launch=True,
        )

    def attribute(self, device: int, name: str) -> int:
        return attribute(name, self.attributes(device))

    def synchronize_device(self, device: int) -> None:
        self._captures.forbid("wait for the device")
        faults = []
        for stream in self._all_streams():
            stream.wait()
            faults.append(stream.take_fault())
        with suppress(IndexError):  # another thread may have taken the last one
            while self._failed:
                faults.append(self._failed.popleft().take_fault())
        raise_fault(next(filter(None, faults), None))

    def can_access_peer(self, device: int, peer: int) -> bool:
        return False

    # memory

    def alloc(self, device: int, nbytes: int, kind: MemoryKind = MemoryKind.DEVICE) -> int:
        self._captures.forbid("allocate memory")
        try:
            address = self._heap.allocate(nbytes, kind)
        except OutOfDeviceMemoryError:
            self._wait()  # memory that was freed under its work comes back
            address = self._heap.allocate(nbytes, kind)
        if self._written is not None and kind is MemoryKind.DEVICE:
            self._written.begin(address, nbytes)
        return address

    def free(self, address: int) -> None:
        allocation = self._heap.take(address)
        if self._written is not None:
            self._written.forget(address)
        busy = [stream for stream in self._all_streams() if not stream.idle]
        if not busy:
            self._heap.release(allocation)
            return
        # Work that was given before may still use the memory: the last stream to pass this point gives it back.
        # Two may pass it at once, and one alone may find that there is nothing left to take.
        others = [None] * (len(busy) - 1)

        def release() -> None:
            try:
                others.pop()
            except IndexError:
                self._heap.release(allocation)

        for stream in busy:
            stream.keep(release)

    def memory_info(self, device: int) -> tuple[int, int]:
        self._captures.forbid("ask for the free memory")
        return self._heap.free_bytes(), self._heap.limit

    def copy(self, target: int, source: int, nbytes: int, stream: int = 0, owners: object = None) -> None:
        work: Callable[[], None] = partial(_copy_bytes, owners, target, source, nbytes)
        if self._written is not None:
            work = after(work, partial(self._written.copy, target, source, nbytes))
        self._perform(stream, work)

    def copy_strided(
        self,
        target: Strided,
        source: Strided,
        shape: tuple[int, ...],
        itemsize: int,
        stream: int = 0,
        owners: object = None,
    ) -> None:
        work: Callable[[], None] = partial(_copy_elements, owners, target, source, shape, itemsize)
        if self._written is not None:
            work = after(work, partial(self._written.copy_elements, target, shape, itemsize))
        self._perform(stream, work)

    def fill(self, address: int, value: int, nbytes: int, stream: int = 0) -> None:
        work: Callable[[], None] = partial(heap.fill_bytes, address, value, nbytes)
        if self._written is not None:
            work = after(work, partial(self._written.fill, address, nbytes))
        self._perform(stream, work)

    def is_pageable(self, address: int) -> bool:
        return not self._heap.is_locked(address)

    def find_allocation(self, address: int) -> tuple[int, int]:
        return self._heap.find(address)

    def allocations(self) -> list[tuple[int, int, int]]:
        """Start and size of each allocation, and the address of a byte for each of its bytes that says whether it was
        ever written; 0 if that is not known."""
        written = self._written
        return [
            (start, nbytes, 0 if written is None else written.where(start))
            for start, nbytes in self._heap.allocations()
        ]

    def watch_writes(self) -> None:
        """From now on, track which allocated memory is written."""
        if self._written is None:
            self._written = WrittenBytes()
            self._dispatch = None

    def expose(self, address: int) -> None:
        """From now on, code that is not tracked may write to the memory at *address*."""
        if self._written is not None:
            self._written.forget(address)

    def ipc_handle(self, address: int) -> bytes:
        self._captures.forbid("share memory")
        self.expose(address)
        self._wait()  # the pages are moved into memory that can be shared: nothing may write to them meanwhile
        return self._heap.handle(address)

    def open_ipc_handle(self, device: int, handle: bytes) -> int:
        self._captures.forbid("open shared memory")
        return self._heap.open(handle)

    # code

    def load_module(self, device: int, modules: CodeObject) -> CpuModule:
        self._captures.forbid("load code, as the first launch of a kernel does,")
        return CpuModule(modules)

    def unload_module(self, module: CpuModule) -> None:
        module.unload()

    def get_function(self, module: CpuModule, kernel: Kernel) -> CpuFunction:
        self._captures.forbid("load a kernel")
        return CpuFunction(module, kernel)

    def get_global(self, module: CpuModule, name: str) -> tuple[int, int]:
        raise SymbolError(f"no global variable {name!r}: code of the CPU device keeps its globals to itself")

    def max_active_blocks(self, function: CpuFunction, block_threads: int, dynamic_shared: int) -> int:
        return 1

    def launch(
        self,
        function: CpuFunction,
        grid: Dim3,
        block: Dim3,
        dynamic_shared: int,
        stream: int,
        arguments: bytes,
        cooperative: bool = False,
        owners: object = None,
        describe: Callable[[Any], BaseException] | None = None,
    ) -> None:
        program = function.workers.get(block) or self._finalise(function, block, describe)
        if program.takes_dynamic_shared:
            arguments += _WORD.pack(dynamic_shared)
        dispatch = self._dispatch or self._start()
        if program.context_bytes:
            if not cooperative:
                raise LaunchError(f"kernel {function.kernel.name!r} waits for the whole grid; launch it as cooperative")
            dispatch = partial(self._run_phases, dispatch, function.kernel.name, program)
        if stream > PER_THREAD_STREAM or self._asynchronous:

            def run(owners: object = owners) -> None:
                fault = dispatch(program.entry, arguments, *grid)
                if fault:
                    raise self._fault(function, program, grid, fault, describe)

            self._queue(stream).submit(run)
            return
        if len(self._streams) > 1 or self._closing or self._default.used:
            self._wait_for_blocking_streams()
        fault = dispatch(program.entry, arguments, *grid)
        if fault:
            raise_fault(self._fault(function, program, grid, fault, describe))

    def prepare(
        self, function: CpuFunction, block: Dim3, describe: Callable[[Any], BaseException] | None = None
    ) -> None:
        """Generate the machine code of *function* for blocks of the shape *block*, unless it exists, and start the
        threads that run it."""
        if self._dispatch is None:
            self._start()
        if block not in function.workers:
            self._finalise(function, block, describe)

    def _finalise(
        self, function: CpuFunction, block: Dim3, describe: Callable[[Any], BaseException] | None
    ) -> program.Program:
        program = function.worker(block)
        if describe is not None:
            program.describe_place = partial(_find_place, program, describe)
        stall_reports.programs[program.entry] = program
        block_scheduler.renew_handlers()
        return program

    def _run_phases(
        self, dispatch: Any, kernel: str, program: program.Program, entry: int, arguments: bytes, *grid: int
    ) -> int | None:
        return run_phases(dispatch, kernel, program, arguments, grid, self._heap.limit)  # type: ignore[arg-type]

    def _fault(
        self,
        function: CpuFunction,
        program: program.Program,
        grid: Dim3,
        record: int,
        describe: Callable[[Any], BaseException] | None,
    ) -> KernelFault:
        modules, *indices = block_scheduler.take_fault(record)
        block, thread = tuple(indices[:3]), tuple(indices[3:])
        fault = make_fault(function.kernel.name, modules, block, thread, program.locations, grid)  # type: ignore[arg-type]
        fault.describe = describe
        if isinstance(fault, TrapError):
            fault.find_line = partial(describe_lines, program, [fault.instruction])
        if isinstance(fault, MemoryFaultError) and fault.address:
            fault.nearby = self._heap.describe_nearest(fault.address)
        return fault

    # streams and events

    def create_stream(self, device: int, *, blocking: bool = True, priority: int = 0) -> int:
        handle = self._new_stream()
        self._streams[handle] = Stream(blocking=blocking)
        return handle

    def destroy_stream(self, stream: int) -> None:
        found = self._stream(stream)
        del self._streams[stream]
        self._captures.drop(stream)
        found.recording = None
        self._closing.add(found)
        found.keep(partial(self._forget, found))
        found.close()

    def abort_stream(self, stream: int) -> None:
        self._captures.forbid_on(stream, "abort")
        if stream <= PER_THREAD_STREAM:
            raise InvalidHandleError("the default stream has no work of its own; Ctrl-C ends a kernel on it")
        self._stream(stream).abort()

    def query_stream(self, stream: int) -> bool:
        self._captures.forbid_on(stream, "ask about")
        if stream <= PER_THREAD_STREAM:
            return all(other.idle for other in self._all_streams() if other.blocking)
        return self._stream(stream).idle

    def synchronize_stream(self, stream: int) -> None:
        self._captures.forbid_on(stream, "wait for")
        if stream <= PER_THREAD_STREAM:
            self._wait_for_blocking_streams()
            found = self._default
        else:
            found = self._stream(stream)
            found.wait()
        raise_fault(found.take_fault())

    def wait_event(self, stream: int, event: Event) -> None:
        recording = self._captures.of(stream)
        if event.recording is not None or (recording is not None and event.record is not None):
            check_wait(event.recording, recording)
            return
        record = event.record
        if record is None:
            return
        if stream > PER_THREAD_STREAM:
            self._queue(stream).submit(partial(_pass, record))
        else:
            self._captures.forbid("use the default stream")
            if self._asynchronous:
                self._queue(stream).submit(partial(_pass, record))
            else:
                record.wait()

    def add_callback(self, stream: int, callback: Callable[[BaseException | None], None]) -> None:
        self._captures.forbid_on(stream, "call back from")
        if stream > PER_THREAD_STREAM:
            self._queue(stream).submit_always(lambda fault: callback(_described(fault)))
            return
        if not self._asynchronous:
            self._wait_for_blocking_streams()
        self._queue(stream).submit_always(lambda fault: callback(_described(fault)))

    def create_event(self, device: int, *, timing: bool = True) -> Event:
        return Event(timing=timing)

    def destroy_event(self, event: Event) -> None:
        event.record = event.recording = None

    def record_event(self, event: Event, stream: int) -> None:
        event.recording = self._captures.of(stream)
        if event.recording is not None:
            event.record = None  # a point between what is recorded before it and behind it, on one stream
            return
        if stream > PER_THREAD_STREAM or self._asynchronous:
            event.record = self._queue(stream).record()
            return
        self._wait_for_blocking_streams()
        record = Record(None)
        record.reach(None)
        event.record = record

    def query_event(self, event: Event) -> bool:
        check_recorded(event.recording)
        self._captures.forbid("ask about an event")
        return event.record is None or event.record.reached

    def synchronize_event(self, event: Event) -> None:
        check_recorded(event.recording)
        self._captures.forbid("wait for an event")
        record = event.record
        if record is not None:
            record.wait()
            raise_fault(record.take_fault())

    def elapsed_time(self, start: Event, end: Event) -> float:
        self._captures.forbid("ask about an event")
        return (end.finished_time("end") - start.finished_time("start")) * 1e3

    # graphs

    def begin_capture(self, stream: int) -> None:
        self._captures.check_begin(stream)
        found = self._stream(stream)
        recording = Recording()
        self._captures.begin(stream, recording)
        found.recording = recording

    def is_capturing(self, stream: int) -> bool:
        return self._captures.of(stream) is not None

    def end_capture(self, stream: int) -> Graph:
        found = self._stream(stream)
        recording = self._captures.end(stream)
        found.recording = None
        return Graph(tuple(recording.works))

    def destroy_graph(self, graph: Graph) -> None:
        graph.works = None

    def instantiate(self, graph: Graph) -> Executable:
        return Executable(graph.found_works())

    def launch_graph(self, executable: Executable, stream: int) -> None:
        work = executable.run()
        if stream > PER_THREAD_STREAM or self._asynchronous:
            self._captures.forbid_on(stream, "launch a graph on")
            self._queue(stream).submit(work)
            return
        self._wait_for_blocking_streams()
        try:
            work()
        except KernelFault as fault:
            raise_fault(fault)

    def destroy_executable(self, executable: Executable) -> None:
        executable.works = None

    def _all_streams(self) -> list[Stream]:
        return [*list(self._streams.values()), *list(self._closing)]

    def _wait(self) -> None:
        """Wait for the work of all streams; faults stay where they are."""
        for stream in self._all_streams():
            stream.wait()

    def _forget(self, stream: Stream) -> None:
        """A destroyed stream has done its work."""
        if stream.fault is not None:
            self._failed.append(stream)
        self._closing.discard(stream)

    def _start(self) -> Any:
        call = block_scheduler.block_scheduler().call
        self._dispatch = call if self._written is None else partial(self._dispatch_watched, call)
        return self._dispatch

    def _dispatch_watched(self, call: Any, entry: int, arguments: bytes, *grid: int) -> int | None:
        """A kernel that does not report its writes may have written anything."""
        if self._written is not None and not jit.is_observed(entry):
            self._written.forget_all()
        fault: int | None = call(entry, arguments, *grid)
        return fault

    def _stream(self, stream: int) -> Stream:
        found = self._streams.get(stream)
        if found is None or found is self._default:
            raise InvalidHandleError(f"stream {stream} does not exist on the CPU device, or was destroyed")
        return found

    def _perform(self, stream: int, work: Callable[[], None]) -> None:
        if stream > PER_THREAD_STREAM:
            self._queue(stream).submit(work)
            return
        self._wait_for_blocking_streams()
        if self._asynchronous:
            raise_fault(self._default.take_fault())  # what is copied would not be what a kernel was to write
        work()

    def _queue(self, stream: int) -> Stream:
        """The queue for work on *stream*, after what it has to wait for; the default stream's, too."""
        if stream > PER_THREAD_STREAM:
            found = self._stream(stream)
            if found.blocking and found.recording is None and not self._default.idle and self._asynchronous:
                found.submit(self._default.record().wait)
            return found
        self._captures.forbid("use the default stream")
        for other in self._all_streams():
            if other.blocking and other is not self._default and not other.idle:
                self._default.submit(other.record().wait)
        return self._default

    def _wait_for_blocking_streams(self) -> None:
        self._captures.forbid("use the default stream")
        for stream in self._all_streams():
            if stream.blocking:
                stream.wait()


def _copy_bytes(owners: object, target: int, source: int, nbytes: int) -> None:
    """Copy, and let go of *owners*, whose memory it was, only then."""
    heap.copy_bytes(target, source, nbytes)


def _copy_elements(owners: object, target: Strided, source: Strided, shape: tuple[int, ...], itemsize: int) -> None:
    """Copy, and let go of *owners*, whose memory it was, only then."""
    heap.copy_elements(target, source, shape, itemsize)


def _pass(record: Record) -> None:
    """Wait for *record*. Work that depends on failed work fails with it."""
    record.wait()
    if record.fault is not None:
        raise record.fault


def _described(fault: BaseException | None) -> BaseException | None:
    return fault.exception() if isinstance(fault, KernelFault) else fault


def _find_place(program: program.Program, describe: Callable[[Any], BaseException], addresses: Sequence[int]) -> str:
    """Where the code of *program* at *addresses* stands, as far as who describes its faults knows."""
    fault = TrapError(program.kernel_name, TRAP_CODE, (0, 0, 0), (0, 0, 0), signal.SIGSEGV, 0, 0)
    fault.find_line = partial(describe_lines, program, addresses)
    found = describe(fault)
    return found.place if isinstance(found, TrapError) else ""


def _processor_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux: the next best source
    return platform.processor() or platform.machine()


def _after_fork() -> None:
    jit.renew_lock()
    modules.renew_lock()
    streams.renew_all()
    graphs.renew_locks()
    block_scheduler.restart()
    observers.renew_lock()
    for driver in list(_drivers):
        driver._heap.renew_lock()
        driver._dispatch = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(streams.stop_all)
