"""The interface of a kind of device: the `Driver` protocol.

A driver is stateless as far as the caller can see: no current device, no implicit context. Plain modules satisfy the
protocol as well as objects do. Addresses are integers, sizes are bytes, streams are integers with `DEFAULT_STREAM` for
the default one; events, modules and functions are opaque to everybody but the driver that made them.

Every driver passes the same suite, ``tests/test_driver_contract.py`` and ``tests/test_driver_graphs.py``.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from hip_devicelib.codeobject import CodeObject, Kernel

Dim3 = tuple[int, int, int]
EventHandle = Any
ModuleHandle = Any
FunctionHandle = Any
GraphHandle = Any
ExecutableHandle = Any

Describe = Callable[[Any], BaseException]
"""Makes the exception to raise of a `hip_runtime.errors.KernelFault`."""

DEFAULT_STREAM = 0
LEGACY_STREAM = 1
PER_THREAD_STREAM = 2
"""Streams that always exist; the numbers are those of CUDA's array interface and of ``hipStreamLegacy`` and
``hipStreamPerThread`` in the HIP runtime API."""


class Launcher(Protocol):
    """Launches a kernel in blocks of one shape, see `Driver.launcher`."""

    def __call__(
        self, arguments: bytes, grid: Dim3, stream: int, owners: object = None, describe: Describe | None = None, /
    ) -> None:
        """Launch over *grid*, with the packed *arguments*, on *stream*; *owners* live until the kernel is done."""


class MemoryKind(enum.Enum):
    """Where memory is, and what can access it."""

    DEVICE = "device"
    """On the device; the host copies."""
    PINNED = "pinned"
    """On the host, page-locked, so that copies are fast and asynchronous."""
    MAPPED = "mapped"
    """On the host, page-locked, and the device reads and writes it in place."""
    MANAGED = "managed"
    """Both reach it; pages move where they are used."""


@dataclass(frozen=True, slots=True)
class DeviceAttributes:
    """What a device is. Sizes are bytes, rates are kHz."""

    name: str
    target: str
    wave_size: int
    compute_units: int
    total_memory: int
    max_threads_per_block: int
    max_block_dim: Dim3
    max_grid_dim: Dim3
    shared_bytes_per_block: int
    registers_per_block: int
    clock_rate: int
    memory_clock_rate: int
    pci: tuple[int, int, int]
    """PCI domain, bus and device; zeros where there is none."""
    uuid: str
    integrated: bool
    """Whether the device shares the host's memory."""
    managed_memory: bool
    concurrent_kernels: bool
    cooperative_launch: bool
    max_threads_along: int = 2**63 - 1
    """Threads that a launch can have along an axis, those of all its blocks together."""


@dataclass(frozen=True, slots=True)
class Strided:
    """Elements in memory: the address of element (0, ..., 0) and the distance in bytes along each axis."""

    address: int
    strides: tuple[int, ...]


@runtime_checkable
class Driver(Protocol):
    """Everything the runtime needs from one kind of device.

    Work on a stream other than `DEFAULT_STREAM` may be done later; *owners* is kept alive until then. A kernel's fault
    in such work is stored, and the work behind it on the stream is dropped by devices that can do so (the CPU device; a
    GPU runs it). The next synchronisation of the stream (or of an event on it, or of the device) raises the
    `KernelFault`, after which the stream works again. Work on the default stream waits for all earlier work on other
    blocking streams.
    """

    name: str

    # devices
    def device_count(self) -> int:
        """How many devices this driver has."""

    def attributes(self, device: int) -> DeviceAttributes:
        """What the device is."""

    def attribute(self, device: int, name: str) -> int:
        """The number that HIP has for one attribute, whose *name* ``hipDeviceAttribute_t`` ends with; 0 where this
        device, or this release of HIP, has no such thing."""

    def synchronize_device(self, device: int) -> None:
        """Wait until all work of the device is done; raises a stored fault."""

    def can_access_peer(self, device: int, peer: int) -> bool:
        """Whether kernels on *device* can use memory of *peer*, once `enable_peer_access` allows it."""

    def enable_peer_access(self, device: int, peer: int) -> None:
        """Let kernels on *device* use memory of *peer* from now on; `UnsupportedError` where they cannot."""

    # memory
    def alloc(self, device: int, nbytes: int, kind: MemoryKind = MemoryKind.DEVICE) -> int:
        """Address of *nbytes* >= 0 new bytes, aligned to 64 or more; `OutOfDeviceMemoryError` changes nothing."""

    def free(self, address: int) -> None:
        """Free an allocation once all earlier work has finished; safe in a finaliser. Raises `InvalidAddressError`."""

    def memory_info(self, device: int) -> tuple[int, int]:
        """Free and total bytes."""

    def copy(self, target: int, source: int, nbytes: int, stream: int = 0, owners: object = None) -> None:
        """Copy bytes between any two places, host or device; they may overlap."""

    def copy_strided(
        self,
        target: Strided,
        source: Strided,
        shape: tuple[int, ...],
        itemsize: int,
        stream: int = 0,
        owners: object = None,
    ) -> None:
        """Copy elements between two layouts, host or device; bytes between the elements are not changed."""

    def fill(self, address: int, value: int, nbytes: int, stream: int = 0) -> None:
        """Set bytes to *value*, 0 to 255."""

    def is_pageable(self, address: int) -> bool:
        """Whether *address* is in host memory that this driver does not manage: neither pinned, mapped nor managed.

        For the host, copies between the device and such memory are complete when the call returns."""

    def find_allocation(self, address: int) -> tuple[int, int]:
        """Start and bytes, rounded up maybe, of the allocation that *address* lies in; `InvalidAddressError`."""

    def ipc_handle(self, address: int) -> bytes:
        """The handle with which another process opens the allocation that starts at *address*; the same one each time.

        Waits for work that was given; nothing else may write to the memory meanwhile. `UnsupportedError`,
        `InvalidAddressError`.
        """

    def open_ipc_handle(self, device: int, handle: bytes) -> int:
        """Address here of another process's allocation, until that is freed here; `InvalidHandleError` for one that
        is no handle, or of memory that is gone, and `UnsupportedError`."""

    # code
    def load_module(self, device: int, code: CodeObject) -> ModuleHandle:
        """`ModuleLoadError` for code of another target and for damaged code."""

    def unload_module(self, module: ModuleHandle) -> None:
        """Unload the code once its running launches are done; safe in a finaliser."""

    def get_function(self, module: ModuleHandle, kernel: Kernel) -> FunctionHandle:
        """One kernel of the module."""

    def get_global(self, module: ModuleHandle, name: str) -> tuple[int, int]:
        """Address and bytes of a global variable; `SymbolError`."""

    def max_active_blocks(self, function: FunctionHandle, block_threads: int, dynamic_shared: int) -> int:
        """How many blocks fit on a compute unit at a time."""

    def launch(
        self,
        function: FunctionHandle,
        grid: Dim3,
        block: Dim3,
        dynamic_shared: int,
        stream: int,
        arguments: bytes,
        cooperative: bool = False,
        owners: object = None,
        describe: Describe | None = None,
    ) -> None:
        """Run a kernel. The configuration was validated; *describe* is put on the `KernelFault`, if there is one."""

    def launcher(self, function: FunctionHandle, block: Dim3, dynamic_shared: int, cooperative: bool) -> Launcher:
        """What launches *function* as `launch` does, for many launches in blocks of one shape."""

    # streams and events
    def create_stream(self, device: int, *, blocking: bool = True, priority: int = 0) -> int:
        """A new stream. One that is not *blocking* does not wait for the default stream, nor the other way round."""

    def destroy_stream(self, stream: int) -> None:
        """Finish the queued work, then destroy the stream; safe in a finaliser."""

    def abort_device(self, device: int) -> None:
        """`abort_stream` of all streams of *device*, the default stream among them."""

    def abort_stream(self, stream: int) -> None:
        """End the kernel that runs on *stream*, drop the queued work, and make the stream usable again.

        Returns when nothing runs any more. Raises `UnsupportedError` where kernels cannot be ended.
        """

    def query_stream(self, stream: int) -> bool:
        """Whether all work is done."""

    def synchronize_stream(self, stream: int) -> None:
        """Return when all work is done; raises a fault that was kept."""

    def wait_event(self, stream: int, event: EventHandle) -> None:
        """Work given to *stream* from now on waits for the last record of *event*."""

    def add_callback(self, stream: int, callback: Callable[[BaseException | None], None]) -> None:
        """Call *callback* on another thread after the work so far: with the error that stopped that work, or
        ``None``."""

    def create_event(self, device: int, *, timing: bool = True) -> EventHandle:
        """A new event, which counts as finished until it is recorded."""

    def destroy_event(self, event: EventHandle) -> None:
        """Destroy the event; safe in a finaliser."""

    def record_event(self, event: EventHandle, stream: int) -> None:
        """Record *event* behind the work queued on *stream* so far."""

    def query_event(self, event: EventHandle) -> bool:
        """Whether the work before the point is done."""

    def synchronize_event(self, event: EventHandle) -> None:
        """Return when the work before the point is done; raises a fault in it."""

    def elapsed_time(self, start: EventHandle, end: EventHandle) -> float:
        """Milliseconds between two records; `EventError` where one is missing or not finished."""

    # graphs
    def begin_capture(self, stream: int) -> None:
        """From now on record the work put on *stream*, by any thread, without running it. Raises `CaptureError`.

        Launches, copies and fills are recorded. An event that is recorded on the stream is a point in the recording,
        for which only this stream can wait. Until the calling thread ends the capture, these requests are a
        `CaptureError`: waiting, querying whether work is done, callbacks, the default stream, and allocating memory or
        loading code, which makes a GPU wait.
        """

    def is_capturing(self, stream: int) -> bool:
        """Whether work on *stream* is recorded."""

    def end_capture(self, stream: int) -> GraphHandle:
        """End the recording and return it; the stream works as before. Raises `CaptureError` if nothing is being
        recorded, if another thread began it, or if the recording was lost, which ends it, too."""

    def destroy_graph(self, graph: GraphHandle) -> None:
        """Destroy the recording, which executables do not need; safe in a finaliser."""

    def instantiate(self, graph: GraphHandle) -> ExecutableHandle:
        """Prepare the recording for launches."""

    def launch_graph(self, executable: ExecutableHandle, stream: int) -> None:
        """Run the recorded work in order, behind the work of *stream*. Faults are those of its kernels."""

    def destroy_executable(self, executable: ExecutableHandle) -> None:
        """Destroy the executable once its running launches are done; safe in a finaliser."""


def block_threads(block: Sequence[int]) -> int:
    """Threads of a block."""
    threads = 1
    for extent in block:
        threads *= extent
    return threads
