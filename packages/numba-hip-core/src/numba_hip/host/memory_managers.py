"""Memory managers as plugins: libraries that allocate device memory, with the interface of Numba CUDA's EMM plugins.

A plugin is a class with the methods of `BaseMemoryManager`; `numba_hip.set_memory_manager` creates an instance for each
device, whose memory then comes from its ``memalloc``. Page-locked or mapped host memory always comes from the driver.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

import hip_runtime
from hip_runtime import Buffer, Device, MemoryKind, MemoryManager, PendingReleases
from hip_runtime.errors import ArrayError, HipRuntimeError, UnsupportedError
from numba_hip.host.ipc import IpcHandle
from numba_hip.host.memory_pointers import (
    DeadMemoryError,
    ManagedMemory,
    MappedMemory,
    MemoryInUseError,
    MemoryPointer,
    PinnedMemory,
)

if TYPE_CHECKING:
    from numba_hip.host.contexts import Context

__all__ = [
    "BaseMemoryManager", "DeadMemoryError", "DriverMemory", "GetIpcHandleMixin", "HostOnlyMemoryManager",
    "ManagedMemory", "MappedMemory", "MemoryInUseError", "MemoryInfo", "MemoryManagerError", "MemoryPointer",
    "PinnedMemory", "PluginMemory", "check_manager", "driver_memory", "install",
]  # fmt: skip

INTERFACE_VERSION = 1
"""The version of the interface that plugins state."""


class MemoryManagerError(HipRuntimeError, RuntimeError, TypeError):
    """A memory manager that cannot be used, or that returned an invalid result."""


class MemoryInfo(NamedTuple):
    """The free bytes of a device's memory, and all of them."""

    free: int
    total: int


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
        return MemoryPointer(self.context, buffer.address, size, finalizer=buffer.close)

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
