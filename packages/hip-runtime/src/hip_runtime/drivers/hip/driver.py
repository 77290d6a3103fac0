"""The driver of AMD GPUs: `hip_runtime.driver.Driver` over the HIP runtime that hip-python found."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from ctypes import byref, c_int
from functools import partial
from typing import Any

from hip_devicelib.codeobject import CodeObject, Kernel
from hip_runtime.driver import Describe, DeviceAttributes, Dim3, Launcher, MemoryKind, Strided
from hip_runtime.drivers.captures import check_recorded
from hip_runtime.drivers.hip.calls import Calls
from hip_runtime.drivers.hip.device_attributes import read_attribute, read_attributes
from hip_runtime.drivers.hip.errors import PEER_ACCESS_ALREADY_ENABLED
from hip_runtime.drivers.hip.events import HipEvent
from hip_runtime.drivers.hip.faults import raise_fault
from hip_runtime.drivers.hip.graphs import Graphs, HipExecutable, HipGraph
from hip_runtime.drivers.hip.launching import launch
from hip_runtime.drivers.hip.library import start
from hip_runtime.drivers.hip.memory import HipHeap
from hip_runtime.drivers.hip.modules import HipKernel, HipModule
from hip_runtime.drivers.hip.probe import import_hip
from hip_runtime.drivers.hip.stream_table import HipStreamTable
from hip_runtime.drivers.hip.transfers import Transfers
from hip_runtime.drivers.hip.unloading import UNLOADING_COUNT, Unloader
from hip_runtime.errors import (
    InvalidAddressError,
    InvalidHandleError,
    LaunchError,
    UnknownDeviceError,
    UnsupportedError,
)

_CANNOT_END = "a kernel on an AMD GPU cannot be ended from outside, unless with its process"

_drivers: weakref.WeakSet[HipDriver] = weakref.WeakSet()


class HipDriver:
    """The GPUs of this machine, numbered as HIP does.

    Streams are HIP's own handles. The default stream is the default stream of every device: of the device of the
    function, event or memory that work is about. `PER_THREAD_STREAM` is the default stream, too: it may wait for more
    than it has to, never for less.
    """

    name = "hip"

    def __init__(self, hip: Any = None) -> None:
        hip = import_hip() if hip is None else hip
        # By way of Python, so that what keeps the library from being loaded is raised as hip-python says it.
        start(hip)
        self._calls = Calls(hip)
        self._count = self._calls.device_count
        attributes = [read_attributes(self._calls, device) for device in range(self._count)]
        self._targets = [found.target for found in attributes]
        self._cooperative = [found.cooperative_launch for found in attributes]
        self._streams = HipStreamTable(self._calls)
        self._captures = self._streams.captures
        self._graphs = Graphs(self._calls, self._captures, self._streams.gate)
        self._heap = HipHeap(self._calls, self._reclaim, self._streams.wait_for_work)
        self._transfers = Transfers(self._calls, self._heap, self._streams)
        self._unloader = Unloader(self._streams)
        self._forked = False
        _drivers.add(self)

    def close(self) -> None:
        """Give back what the driver itself holds, once all work is done. Nothing may be asked of it afterwards."""
        self._streams.forget_others()
        for device in range(self._count):
            self.synchronize_device(device)
        self._streams.close()

    # devices

    def device_count(self) -> int:
        return self._count

    def attributes(self, device: int) -> DeviceAttributes:
        self._check_device(device)
        return read_attributes(self._calls, device)

    def attribute(self, device: int, name: str) -> int:
        self._check_device(device)
        return read_attribute(self._calls, device, name)

    def synchronize_device(self, device: int) -> None:
        self._check_device(device)
        self._captures.forbid("wait for the device")
        streams, retired = self._streams.everything(device), self._graphs.retired(device)
        self._streams.wait_issued(streams)
        self._streams.wait_for_device(device)
        for stream in streams:
            stream.look_for_fault()
        faults = [stream.take_fault() for stream in streams]
        self._streams.tidy(streams)
        self._graphs.release(retired)
        self._unloader.unload()
        self._heap.flush()
        raise_fault(next(filter(None, faults), None))

    def make_current(self, device: int) -> None:
        """Make *device* HIP's current one in this thread, for calls of other libraries."""
        self._check_device(device)
        self._calls.activate(device)

    def can_access_peer(self, device: int, peer: int) -> bool:
        self._check_device(device)
        self._check_device(peer)
        if device == peer:
            return False
        possible = c_int()
        self._calls.call("hipDeviceCanAccessPeer", byref(possible), device, peer)
        return bool(possible.value)

    def enable_peer_access(self, device: int, peer: int) -> None:
        if not self.can_access_peer(device, peer):
            raise UnsupportedError(f"kernels on device {device} cannot use memory of device {peer}")
        self._calls.activate(device)
        code = self._calls.hipDeviceEnablePeerAccess(peer, 0)
        if code not in (0, PEER_ACCESS_ALREADY_ENABLED):
            raise self._calls.error("hipDeviceEnablePeerAccess", code)

    # memory

    def alloc(self, device: int, nbytes: int, kind: MemoryKind = MemoryKind.DEVICE) -> int:
        self._check_device(device)
        self._captures.forbid("allocate memory")
        return self._heap.allocate(device, nbytes, kind)

    def free(self, address: int) -> None:
        if self._forked:
            return  # the memory is the parent's
        allocation = self._heap.take(address)
        waiting = list(self._streams.held)
        if not waiting:
            self._heap.retire(allocation)
            return

        # Work that the runtime was not told of yet may use the memory: the last stream to pass this point frees it.
        def release() -> None:
            waiting.pop()
            if not waiting:
                self._heap.retire(allocation)

        for stream in list(waiting):
            stream.submit(release)

    def memory_info(self, device: int) -> tuple[int, int]:
        self._check_device(device)
        self._captures.forbid("ask for the free memory")
        return self._heap.info(device)

    def copy(self, target: int, source: int, nbytes: int, stream: int = 0, owners: object = None) -> None:
        if nbytes == 0:
            return
        self._transfers.copy(target, source, nbytes, stream, owners)

    def copy_strided(
        self,
        target: Strided,
        source: Strided,
        shape: tuple[int, ...],
        itemsize: int,
        stream: int = 0,
        owners: object = None,
    ) -> None:
        if 0 in shape:
            return
        self._transfers.copy_strided(target, source, shape, itemsize, stream, owners)

    def fill(self, address: int, value: int, nbytes: int, stream: int = 0) -> None:
        if nbytes == 0:
            return
        self._transfers.fill(address, value, nbytes, stream)

    def is_pageable(self, address: int) -> bool:
        try:
            self._heap.find(address)
        except InvalidAddressError:
            return True
        return False

    def find_allocation(self, address: int) -> tuple[int, int]:
        return self._heap.find(address)

    def ipc_handle(self, address: int) -> bytes:
        self._captures.forbid("share memory")
        return self._heap.ipc_handle(address)

    def open_ipc_handle(self, device: int, handle: bytes) -> int:
        self._check_device(device)
        self._captures.forbid("open shared memory")
        return self._heap.open_ipc_handle(device, handle)

    # code

    def load_module(self, device: int, code: CodeObject) -> HipModule:
        self._check_device(device)
        self._captures.forbid("load code, as the first launch of a kernel does,")
        if len(self._unloader) >= UNLOADING_COUNT:
            self._unloader.unload()
        self._calls.activate(device)
        return HipModule(self._calls, self._transfers.writer(device), device, self._targets[device], code)

    def unload_module(self, module: HipModule) -> None:
        self._unloader.add(module)

    def get_function(self, module: HipModule, kernel: Kernel) -> HipKernel:
        self._captures.forbid("load a kernel")
        self._calls.activate(module.device)
        return HipKernel(self._calls, module, kernel)

    def get_global(self, module: HipModule, name: str) -> tuple[int, int]:
        self._calls.activate(module.device)
        return module.global_variable(name)

    def max_active_blocks(self, function: HipKernel, block_threads: int, dynamic_shared: int) -> int:
        function.module.check_loaded()
        blocks = c_int()
        self._calls.activate(function.device)
        name = "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor"
        self._calls.call(name, byref(blocks), function.handle, block_threads, dynamic_shared)
        return blocks.value

    def launch(
        self,
        function: HipKernel,
        grid: Dim3,
        block: Dim3,
        dynamic_shared: int,
        stream: int,
        arguments: bytes,
        cooperative: bool = False,
        owners: object = None,
        describe: Describe | None = None,
    ) -> None:
        if function.module.unloaded:
            function.module.check_loaded()
        if len(arguments) != function.nbytes:
            raise LaunchError(
                f"arguments are {len(arguments)} bytes; kernel {function.kernel.name!r} takes {function.nbytes}"
            )
        if cooperative and not self._cooperative[function.device]:
            raise UnsupportedError(
                f"kernel {function.kernel.name!r}: device {function.device} has no cooperative launches, which grid "
                "barriers need: split the kernel at its grid barriers"
            )
        found = self._streams.on_device(stream, function.device)
        if found.device != function.device:
            raise LaunchError(
                f"kernel {function.kernel.name!r} is loaded on device {function.device}; the stream is of device "
                f"{found.device}"
            )
        if found.handle == 0:
            self._captures.forbid("use the default stream")
        if self._streams.held:
            given = (function, grid, block, dynamic_shared, arguments, cooperative, owners, describe)
            self._streams.perform(found, partial(launch, self._calls, found, *given))
        else:
            launch(self._calls, found, function, grid, block, dynamic_shared, arguments, cooperative, owners, describe)

    def launcher(self, function: HipKernel, block: Dim3, dynamic_shared: int, cooperative: bool) -> Launcher:
        def launch(
            arguments: bytes, grid: Dim3, stream: int, owners: object = None, describe: Describe | None = None
        ) -> None:
            self.launch(function, grid, block, dynamic_shared, stream, arguments, cooperative, owners, describe)

        return launch

    # streams and events

    def create_stream(self, device: int, *, blocking: bool = True, priority: int = 0) -> int:
        self._check_device(device)
        return self._streams.create(device, blocking=blocking, priority=priority)

    def destroy_stream(self, stream: int) -> None:
        if not self._forked:
            self._graphs.abandon(self._streams.find(stream))
            self._streams.destroy(stream)

    def abort_device(self, device: int) -> None:
        raise UnsupportedError(f"device {device}: {_CANNOT_END}")

    def abort_stream(self, stream: int) -> None:
        raise UnsupportedError(f"stream {stream}: {_CANNOT_END}")

    def query_stream(self, stream: int) -> bool:
        return self._streams.is_done(stream)

    def synchronize_stream(self, stream: int) -> None:
        self._streams.synchronize(stream)

    def wait_event(self, stream: int, event: HipEvent) -> None:
        self._streams.wait_event(stream, event)

    def add_callback(self, stream: int, callback: Callable[[BaseException | None], None]) -> None:
        self._streams.add_callback(stream, callback)

    def create_event(self, device: int, *, timing: bool = True) -> HipEvent:
        self._check_device(device)
        self._calls.activate(device)
        return HipEvent((self._streams.timers if timing else self._streams.points)[device], timing=timing)

    def destroy_event(self, event: HipEvent) -> None:
        event.destroy()

    def record_event(self, event: HipEvent, stream: int) -> None:
        self._streams.record_event(stream, event)

    def query_event(self, event: HipEvent) -> bool:
        check_recorded(event.recording)
        self._captures.forbid("ask about an event")
        if event.stream is not None:
            event.stream.check_own("ask about an event of")
        point = event.recorded
        return point is None or point.is_reached()

    def synchronize_event(self, event: HipEvent) -> None:
        check_recorded(event.recording)
        self._captures.forbid("wait for an event")
        point, stream = event.recorded, event.stream
        if point is None or stream is None:
            return
        stream.check_own("wait for an event of")
        point.wait()
        stream.reap()
        stream.look_for_fault()
        raise_fault(stream.take_fault())

    def elapsed_time(self, start: HipEvent, end: HipEvent) -> float:
        self._captures.forbid("ask about an event")
        return start.finished_point("start").milliseconds_to(end.finished_point("end"))

    # graphs

    def begin_capture(self, stream: int) -> None:
        self._captures.check_begin(stream)
        self._graphs.begin(self._streams.find(stream))

    def is_capturing(self, stream: int) -> bool:
        return self._captures.of(stream) is not None

    def end_capture(self, stream: int) -> HipGraph:
        return self._graphs.end(self._streams.find(stream))

    def destroy_graph(self, graph: HipGraph) -> None:
        if not self._forked:
            self._graphs.destroy(graph)

    def instantiate(self, graph: HipGraph) -> HipExecutable:
        if len(self._graphs.retired()) >= UNLOADING_COUNT and not self._captures.here:
            self._reclaim()
        return self._graphs.instantiate(graph)

    def launch_graph(self, executable: HipExecutable, stream: int) -> None:
        if executable.destroyed:
            raise InvalidHandleError("the graph was destroyed")
        found = self._streams.on_device(stream, executable.device)
        if found.device != executable.device:
            raise LaunchError(f"the graph is of device {executable.device}; the stream is of device {found.device}")
        if found.recording is not None:
            self._captures.forbid_on(stream, "launch a graph on")
        self._streams.perform(found, partial(self._graphs.launch, executable, found))

    def destroy_executable(self, executable: HipExecutable) -> None:
        self._graphs.retire(executable)

    # what the above is made of

    def _check_device(self, device: int) -> None:
        if not 0 <= device < self._count:
            raise UnknownDeviceError(f"there is no HIP device {device}; they are numbered from 0 to {self._count - 1}")

    def _reclaim(self) -> None:
        """Wait for all work and give back everything that it kept."""
        retired = self._graphs.retired()
        self._streams.wait_issued(list(self._streams.held))
        for device in range(self._count):
            self._streams.wait_for_work(device)
        self._streams.tidy(self._streams.everything())
        self._graphs.release(retired)
        self._heap.flush()


def _after_fork() -> None:
    for driver in list(_drivers):
        driver._forked = True
        driver._streams.abandon()
        driver._calls.refuse(
            "the HIP runtime does not work in a forked process; start processes with multiprocessing's 'spawn'"
        )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
