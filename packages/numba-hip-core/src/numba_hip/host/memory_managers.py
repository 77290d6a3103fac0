"""Memory managers as plugins: libraries that allocate device memory, with the interface of Numba CUDA's EMM plugins.

A plugin is a class with the methods of `BaseMemoryManager`; `numba_hip.set_memory_manager` creates an instance for each
device, whose memory then comes from its ``memalloc``. Page-locked or mapped host memory always comes from the driver.
"""

from __future__ import annotations

import ctypes
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

import hip_runtime
from hip_runtime import Buffer, Device, MemoryKind, MemoryManager, PendingReleases
from hip_runtime.errors import ArrayError, HipRuntimeError, UnsupportedError
from hip_runtime.stream_handle import stream_handle
from numba_hip.host.ipc import IpcHandle

if TYPE_CHECKING:
    from numba_hip.host.contexts import Context

INTERFACE_VERSION = 1
"""The version of the interface that plugins state."""


class MemoryManagerError(HipRuntimeError, RuntimeError, TypeError):
    """A memory manager that cannot be used, or that returned an invalid result."""


class MemoryInfo(NamedTuple):
    """The free bytes of a device's memory, and all of them."""

    free: int
    total: int


class MemoryPointer:
    """*size* bytes at *pointer* (an integer, or one of ctypes), as a memory manager returns them.

    *owner* is kept alive. *finalizer*, if given, is called once: by `free`, or when there is no reference any more.
    """

    def __init__(
        self, context: Any, pointer: Any, size: int, owner: Any = None, finalizer: Callable[[], object] | None = None
    ) -> None:
        self.context = context
        self.device_pointer = pointer
        self.size = size
        self.owner = owner
        self.is_managed = finalizer is not None
        """Whether somebody gives the memory back when it is no longer used."""
        self._finalizer = None if finalizer is None else weakref.finalize(self, finalizer)
        if self._finalizer is not None:
            self._finalizer.atexit = False

    @property
    def device_pointer_value(self) -> int:
        """The address as a number."""
        return int(getattr(self.device_pointer, "value", self.device_pointer) or 0)

    @property
    def device_ctypes_pointer(self) -> ctypes.c_size_t:
        """The address as an integer of ctypes."""
        return ctypes.c_size_t(self.device_pointer_value)

    @property
    def handle(self) -> Any:
        """The address as it was given."""
        return self.device_pointer

    def memset(self, byte: int, count: int | None = None, stream: Any = 0) -> None:
        """Set the first *count* bytes, all by default, to *byte*, 0 to 255; `hip_runtime.errors.ArrayError`."""
        if not 0 <= byte <= 255:
            raise ArrayError(f"byte is {byte}; it must be 0 to 255")
        size = self.size if count is None else count
        if not 0 <= size <= self.size:
            raise ArrayError(f"count is {size}; this memory has {self.size} bytes")
        driver = self.context.device.driver
        driver.fill(self.device_pointer_value, byte, size, stream_handle(stream))

    def own(self) -> MemoryPointer:
        """This memory, which lives as long as anybody refers to it."""
        return self

    def view(self, start: int, stop: int | None = None) -> MemoryPointer:
        """Bytes *start* to *stop*, the end by default, which keep all of it alive; `hip_runtime.errors.ArrayError`."""
        end = self.size if stop is None else stop
        if not 0 <= start <= end <= self.size:
            raise ArrayError(f"bytes {start} to {end} are not within the {self.size} of this memory")
        return MemoryPointer(self.context, self.device_pointer_value + start, end - start, owner=self)

    def free(self) -> None:
        """Release the memory now."""
        if self._finalizer is not None:
            self._finalizer()


class _HostMemory(MemoryPointer):
    @property
    def host_pointer(self) -> Any:
        """The address for the host."""
        return self.device_pointer

    @property
    def owned(self) -> Any:
        """What keeps the memory alive."""
        return self.owner


class PinnedMemory(_HostMemory):
    """Page-locked memory of the host."""


class MappedMemory(_HostMemory):
    """Page-locked host memory that kernels can access."""


class ManagedMemory(_HostMemory):
    """Memory that migrates to where it is used."""


class BaseMemoryManager(ABC):
    """The interface of a plugin for one device, that of *context*."""

    def __init__(self, context: Context) -> None:
        self.context = context

    @abstractmethod
    def memalloc(self, size: int) -> MemoryPointer:
        """Device memory of *size* bytes, 0 or more. Raises `MemoryError` if there is none left."""

    @abstractmethod
    def initialize(self) -> None:
        """Get ready; called once, before anything else."""

    @abstractmethod
    def get_memory_info(self) -> MemoryInfo:
        """Free and total bytes."""

    @abstractmethod
    def get_ipc_handle(self, memory: Any) -> Any:
        """The handle with which another process opens *memory*, a `MemoryPointer` or a `hip_runtime.Buffer`."""

    @abstractmethod
    def reset(self) -> None:
        """Release all unused memory."""

    @abstractmethod
    def defer_cleanup(self) -> AbstractContextManager[Any]:
        """A block in which no memory is released."""

    @abstractmethod
    def memhostalloc(self, size: int, mapped: bool = False, portable: bool = False, wc: bool = False) -> MemoryPointer:
        """Page-locked memory of the host."""

    @abstractmethod
    def mempin(self, owner: Any, pointer: Any, size: int, mapped: bool = False) -> MemoryPointer:
        """Page-lock the *size* bytes at *pointer*, which *owner* keeps alive."""

    @property
    @abstractmethod
    def interface_version(self) -> int:
        """The version of this interface that the plugin was written for: 1."""


class HostOnlyMemoryManager(BaseMemoryManager):
    """A base for plugins that only manage device memory: host memory comes from the driver."""

    def memhostalloc(self, size: int, mapped: bool = False, portable: bool = False, wc: bool = False) -> MemoryPointer:
        """Of the driver; *portable* and *wc* are hints that change nothing."""
        del portable, wc
        buffer = self.context.device.allocate(size, MemoryKind.MAPPED if mapped else MemoryKind.PINNED)
        kind = MappedMemory if mapped else PinnedMemory
        return kind(self.context, buffer.address, size, owner=buffer, finalizer=buffer.close)

    def memallocmanaged(self, size: int, attach_global: bool = True) -> ManagedMemory:
        """Managed memory of the driver; *attach_global* is a hint that has no effect."""
        del attach_global
        buffer = self.context.device.allocate(size, MemoryKind.MANAGED)
        return ManagedMemory(self.context, buffer.address, size, owner=buffer, finalizer=buffer.close)

    def mempin(self, owner: Any, pointer: Any, size: int, mapped: bool = False) -> MemoryPointer:
        """The memory unchanged: copies from it go through page-locked buffers of the driver.

        Raises `UnsupportedError` for memory that an AMD GPU should access: this version only maps memory that it
        allocated.
        """
        if mapped and not self.context.device.is_cpu:
            raise UnsupportedError("existing memory of the host cannot be mapped in this version; use mapped_array")
        return (MappedMemory if mapped else PinnedMemory)(self.context, pointer, size, owner=owner)

    def reset(self) -> None:
        """Wait for the device."""
        self.context.device.synchronize()

    def defer_cleanup(self) -> AbstractContextManager[Any]:
        """See `numba_hip.defer_cleanup`."""
        return hip_runtime.defer_release()


class GetIpcHandleMixin:
    """`get_ipc_handle` for plugins whose memory is the driver's own."""

    context: Context

    def get_ipc_handle(self, memory: MemoryPointer | Buffer) -> IpcHandle:
        """The driver's handle; `UnsupportedError` on a device that cannot share memory by handles."""
        buffer = Buffer(memory.device_pointer_value, memory.size, owner=memory)
        return IpcHandle.of(buffer, self.context.device)


class DriverMemory(GetIpcHandleMixin, HostOnlyMemoryManager):
    """The driver's own memory, as a memory manager: the default of a device."""

    def initialize(self) -> None:
        """Nothing: the driver is ready."""

    def memalloc(self, size: int) -> MemoryPointer:
        """Device memory of the driver."""
        buffer = driver_memory(self.context.device).allocate(size, stream=0)
        return MemoryPointer(self.context, buffer.address, size, owner=buffer, finalizer=buffer.close)

    def get_memory_info(self) -> MemoryInfo:
        """As the driver says."""
        return MemoryInfo(*self.context.device.memory_info())

    def reset(self) -> None:
        """Wait for the device, and release what is pending."""
        super().reset()
        self.deallocations.clear()

    @property
    def deallocations(self) -> PendingReleases:
        """Memory that waits to be released; see `numba_hip.defer_cleanup`."""
        return self.context.device.pending

    @property
    def interface_version(self) -> int:
        """That of this interface."""
        return INTERFACE_VERSION


class PluginMemory:
    """A plugin as the `hip_runtime.MemoryManager` of a device."""

    def __init__(self, plugin: BaseMemoryManager) -> None:
        self.plugin = plugin

    def allocate(self, nbytes: int, *, stream: int) -> Buffer:
        """A buffer of memory from the plugin. Raises what that raises, and `MemoryManagerError` for a wrong answer."""
        del stream
        if nbytes < 0:
            raise ArrayError(f"nbytes must be 0 or more, not {nbytes}")
        memory = self.plugin.memalloc(nbytes)
        name = type(self.plugin).__name__
        if not hasattr(memory, "device_pointer_value") or not hasattr(memory, "size"):
            raise MemoryManagerError(f"{name}.memalloc({nbytes}) gave a {type(memory).__name__}, not a MemoryPointer")
        if memory.size < nbytes:
            memory.free()
            raise MemoryManagerError(f"{name}.memalloc({nbytes}) gave only {memory.size} bytes")
        return Buffer(memory.device_pointer_value, nbytes, owner=memory.owner, release=memory.free)

    def ipc_handle(self, buffer: Buffer) -> Any:
        """What the plugin gives for *buffer*, for other processes."""
        memory = MemoryPointer(self.plugin.context, buffer.address, buffer.nbytes, owner=buffer)
        return self.plugin.get_ipc_handle(memory)


_drivers: dict[int, MemoryManager] = {}
"""The memory manager that each device had first, by its number."""


def driver_memory(device: Device) -> MemoryManager:
    """The memory manager that *device* had first."""
    return _drivers.setdefault(device.id, device.memory_manager)


def check_manager(manager: Any) -> None:
    """`MemoryManagerError` unless *manager* states the version of this interface."""
    version = getattr(manager, "interface_version", None)
    if version != INTERFACE_VERSION:
        raise MemoryManagerError(
            f"memory manager {manager!r} states interface version {version!r}; version {INTERFACE_VERSION} required"
        )


def install(manager: BaseMemoryManager | None, device: Device) -> None:
    """Allocate memory of *device* from *manager*, which was checked and initialised; ``None`` is the driver's own."""
    first = driver_memory(device)
    if manager is None or isinstance(manager, DriverMemory):
        device.memory_manager = first
    else:
        device.memory_manager = PluginMemory(manager)


BaseCUDAMemoryManager = BaseMemoryManager
HostOnlyCUDAMemoryManager = HostOnlyMemoryManager
