"""The driver of the CPU device: `hip_runtime.driver.Driver` over the memory, streams and code of this process."""

from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Callable
from functools import partial

from hip_devicelib.codeobject import CodeObject, Kernel
from hip_runtime import config
from hip_runtime.driver import PER_THREAD_STREAM, Describe, DeviceAttributes, Dim3, Launcher, MemoryKind, Strided
from hip_runtime.drivers.captures import check_recorded
from hip_runtime.drivers.cpu import graphs, modules, streams
from hip_runtime.drivers.cpu.device_attributes import attribute, read_attributes
from hip_runtime.drivers.cpu.diagnostics import observers
from hip_runtime.drivers.cpu.execution import block_scheduler
from hip_runtime.drivers.cpu.graphs import CpuExecutable, CpuGraph, CpuRecording
from hip_runtime.drivers.cpu.launches import BlockLauncher, CpuLaunches, LikelyLauncher
from hip_runtime.drivers.cpu.memory import heap
from hip_runtime.drivers.cpu.memory.written_bytes import WrittenBytes, after
from hip_runtime.drivers.cpu.modules import CpuFunction, CpuModule
from hip_runtime.drivers.cpu.object_code import jit
from hip_runtime.drivers.cpu.stream_table import CpuStreamTable
from hip_runtime.drivers.cpu.streams import CpuEvent, raise_fault
from hip_runtime.errors import (
    KernelFault,
    OutOfDeviceMemoryError,
    SymbolError,
    UnsupportedError,
)

_drivers: weakref.WeakSet[CpuDriver] = weakref.WeakSet()


class CpuDriver:
    """One device, number 0 of this driver: the processor of this machine, or an equal part of it.

    *number* is that of the device among *count* CPU devices; *memory_limit* is what it has of bytes.
    """

    name = "cpu"

    def __init__(self, memory_limit: int | None = None, *, number: int = 0, count: int = 1) -> None:
        self._place = number, count
        self._heap = heap.CpuHeap(max(config.cpu_memory() // count, 1) if memory_limit is None else memory_limit)
        self._streams = CpuStreamTable()
        self._captures = self._streams.captures
        self._launches = CpuLaunches(self._heap, self._streams)
        self._written: WrittenBytes | None = None
        if config.cpu_races() != "0":
            self.watch_writes()
        _drivers.add(self)

    # devices

    def device_count(self) -> int:
        return 1

    def attributes(self, device: int) -> DeviceAttributes:
        return read_attributes(self._heap.limit, *self._place)

    def attribute(self, device: int, name: str) -> int:
        return attribute(name, self.attributes(device))

    def synchronize_device(self, device: int) -> None:
        self._captures.forbid("wait for the device")
        self._streams.synchronize_all()

    def abort_device(self, device: int) -> None:
        self._captures.forbid("abort the work of the device")
        self._streams.abort_all()

    def can_access_peer(self, device: int, peer: int) -> bool:
        return False

    def enable_peer_access(self, device: int, peer: int) -> None:
        raise UnsupportedError(f"CPU device {device} has no peers with its driver")

    # memory

    def alloc(self, device: int, nbytes: int, kind: MemoryKind = MemoryKind.DEVICE) -> int:
        self._captures.forbid("allocate memory")
        try:
            address = self._heap.allocate(nbytes, kind)
        except OutOfDeviceMemoryError:
            self._streams.wait_for_all()  # memory that was freed while work still used it
            address = self._heap.allocate(nbytes, kind)
        if self._written is not None and kind is MemoryKind.DEVICE:
            self._written.begin(address, nbytes)
        return address

    def free(self, address: int) -> None:
        allocation = self._heap.take(address)
        if self._written is not None:
            self._written.forget(address)
        if self._streams.has_only_default:
            self._heap.release(allocation)
        else:
            self._streams.call_after_all(partial(self._heap.release, allocation))

    def memory_info(self, device: int) -> tuple[int, int]:
        self._captures.forbid("ask for the free memory")
        return self._heap.free_bytes(), self._heap.limit

    def copy(self, target: int, source: int, nbytes: int, stream: int = 0, owners: object = None) -> None:
        if stream <= PER_THREAD_STREAM and self._written is None and self._streams.is_at_once:
            heap.copy_bytes(target, source, nbytes)
            return
        work: Callable[[], None] = partial(_copy_bytes, owners, target, source, nbytes)
        if self._written is not None:
            work = after(work, partial(self._written.copy, target, source, nbytes))
        self._streams.perform(stream, work)

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
        self._streams.perform(stream, work)

    def fill(self, address: int, value: int, nbytes: int, stream: int = 0) -> None:
        work: Callable[[], None] = partial(heap.fill_bytes, address, value, nbytes)
        if self._written is not None:
            work = after(work, partial(self._written.fill, address, nbytes))
        self._streams.perform(stream, work)

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
            self._launches.watch(self._written)

    def expose(self, address: int) -> None:
        """From now on, code that is not tracked may write to the memory at *address*."""
        if self._written is not None:
            self._written.forget(address)

    def ipc_handle(self, address: int) -> bytes:
        self._captures.forbid("share memory")
        self.expose(address)
        self._streams.wait_for_all()  # nothing may write to the pages while they are made shareable
        return self._heap.handle(address)

    def open_ipc_handle(self, device: int, handle: bytes) -> int:
        self._captures.forbid("open shared memory")
        return self._heap.open(handle)

    # code

    def load_module(self, device: int, code: CodeObject) -> CpuModule:
        self._captures.forbid("load code, as the first launch of a kernel does,")
        return CpuModule(code)

    def unload_module(self, module: CpuModule) -> None:
        module.unload()

    def get_function(self, module: CpuModule, kernel: Kernel) -> CpuFunction:
        self._captures.forbid("load a kernel")
        return CpuFunction(module, kernel)

    def get_global(self, module: CpuModule, name: str) -> tuple[int, int]:
        raise SymbolError(
            f"global variable {name!r} cannot be found: the host has no access to globals of CPU device code"
        )

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
        describe: Describe | None = None,
    ) -> None:
        self.launcher(function, block, dynamic_shared, cooperative)(arguments, grid, stream, owners, describe)

    def launcher(self, function: CpuFunction, block: Dim3, dynamic_shared: int, cooperative: bool) -> Launcher:
        kind = BlockLauncher if function.likely is None else LikelyLauncher
        return kind(self._launches, function, block, dynamic_shared, cooperative).launch

    def prepare(self, function: CpuFunction, block: Dim3, describe: Describe | None = None) -> None:
        """Generate the machine code of *function* for blocks of the shape *block*, unless it exists, and start the
        threads that run it."""
        if self._launches.dispatch is None:
            self._launches.start()
        self._launches.finalise(function.likely or function, block, describe)

    # streams and events

    def create_stream(self, device: int, *, blocking: bool = True, priority: int = 0) -> int:
        return self._streams.create(blocking=blocking)

    def destroy_stream(self, stream: int) -> None:
        self._streams.destroy(stream)

    def abort_stream(self, stream: int) -> None:
        self._streams.abort(stream)

    def query_stream(self, stream: int) -> bool:
        return self._streams.of(stream).is_idle(stream)

    def synchronize_stream(self, stream: int) -> None:
        self._streams.of(stream).synchronize(stream)

    def wait_event(self, stream: int, event: CpuEvent) -> None:
        self._streams.of(stream).wait_event(stream, event)

    def add_callback(self, stream: int, callback: Callable[[BaseException | None], None]) -> None:
        self._streams.add_callback(stream, callback)

    def create_event(self, device: int, *, timing: bool = True) -> CpuEvent:
        return CpuEvent(timing=timing)

    def destroy_event(self, event: CpuEvent) -> None:
        event.record = event.recording = None

    def record_event(self, event: CpuEvent, stream: int) -> None:
        self._streams.record_event(stream, event)

    def query_event(self, event: CpuEvent) -> bool:
        check_recorded(event.recording)
        self._captures.forbid("ask about an event")
        return event.record is None or event.record.reached

    def synchronize_event(self, event: CpuEvent) -> None:
        check_recorded(event.recording)
        self._captures.forbid("wait for an event")
        record = event.record
        if record is not None:
            record.wait()
            raise_fault(record.take_fault())

    def elapsed_time(self, start: CpuEvent, end: CpuEvent) -> float:
        self._captures.forbid("ask about an event")
        return (end.finished_time("end") - start.finished_time("start")) * 1e3

    # graphs

    def begin_capture(self, stream: int) -> None:
        self._captures.check_begin(stream)
        found = self._streams.find(stream)
        recording = CpuRecording()
        self._captures.begin(stream, recording)
        found.recording = recording

    def is_capturing(self, stream: int) -> bool:
        return self._streams.of(stream).captures.of(stream) is not None

    def end_capture(self, stream: int) -> CpuGraph:
        found = self._streams.find(stream)
        recording = self._captures.end(stream)
        found.recording = None
        return CpuGraph(tuple(recording.works))

    def destroy_graph(self, graph: CpuGraph) -> None:
        graph.works = None

    def instantiate(self, graph: CpuGraph) -> CpuExecutable:
        return CpuExecutable(graph.found_works())

    def launch_graph(self, executable: CpuExecutable, stream: int) -> None:
        work = executable.run()
        if self._streams.is_queued(stream):
            self._captures.forbid_on(stream, "launch a graph on")
            self._streams.queue(stream).submit(work)
            return
        self._streams.wait_for_blocking()
        try:
            work()
        except KernelFault as fault:
            raise_fault(fault)

    def destroy_executable(self, executable: CpuExecutable) -> None:
        executable.works = None


def _copy_bytes(owners: object, target: int, source: int, nbytes: int) -> None:
    """Copy, and let go of *owners*, whose memory it was, only then."""
    heap.copy_bytes(target, source, nbytes)


def _copy_elements(owners: object, target: Strided, source: Strided, shape: tuple[int, ...], itemsize: int) -> None:
    """Copy, and let go of *owners*, whose memory it was, only then."""
    heap.copy_elements(target, source, shape, itemsize)


def _after_fork() -> None:
    jit.renew_lock()
    modules.renew_lock()
    streams.renew_all()
    graphs.renew_locks()
    block_scheduler.restart()
    observers.renew_lock()
    for driver in list(_drivers):
        driver._heap.renew_lock()
        driver._launches.dispatch = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(streams.stop_all)
