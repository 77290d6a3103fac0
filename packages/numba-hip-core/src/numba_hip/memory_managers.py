"""Memory managers as plugins: libraries that give devices their memory, by the interface of Numba CUDA's EMM plugins.

A plugin is a class with the methods of `BaseMemoryManager`; `set_memory_manager` makes one of it for each device, whose
memory then comes from its ``memalloc``. Memory of the host, page-locked or mapped, always comes from the driver.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import hip_runtime
from hip_runtime import Buffer, MemoryManager
from hip_runtime.errors import ArrayError, HipRuntimeError
from numba_hip.contexts import Context, MemoryInfo, defer_cleanup

INTERFACE_VERSION = 1
"""The version of the interface that plugins state."""


class MemoryManagerError(HipRuntimeError, TypeError):
    """A memory manager that cannot be used, or that gave what it may not."""


class MemoryPointer:
    """*size* bytes at *pointer* (a number, or one of ctypes), as a memory manager gives them.

    *owner* is kept alive. *finalizer*, if given, is called once: by `free`, or when nobody refers to this any more.
    """

    def __init__(
        self, context: Any, pointer: Any, size: int, owner: Any = None, finalizer: Callable[[], object] | None = None
    ) -> None:
        self.context = context
        self.device_pointer = pointer
        self.size = size
        self.owner = owner
        self._finalizer = None if finalizer is None else weakref.finalize(self, finalizer)
        if self._finalizer is not None:
            self._finalizer.atexit = False

    @property
    def device_pointer_value(self) -> int:
        """The address as a number."""
        return int(getattr(self.device_pointer, "value", self.device_pointer) or 0)

    def free(self) -> None:
        """Give the memory back now."""
        if self._finalizer is not None:
            self._finalizer()


class PinnedMemory(MemoryPointer):
    """Page-locked memory of the host."""


class MappedMemory(MemoryPointer):
    """Page-locked memory of the host that kernels reach."""


class BaseMemoryManager(ABC):
    """What a plugin has to do for one device, that of *context*."""

    def __init__(self, context: Context) -> None:
        self.context = context

    @abstractmethod
    def memalloc(self, size: int) -> MemoryPointer:
        """Device memory of *size* bytes, 0 or more. Raises `MemoryError` where there is none left."""

    @abstractmethod
    def initialize(self) -> None:
        """Get ready; called once, before anything else."""

    @abstractmethod
    def get_memory_info(self) -> MemoryInfo:
        """Free and total bytes."""

    @abstractmethod
    def get_ipc_handle(self, memory: MemoryPointer) -> Any:
        """What another process opens *memory* with."""

    @abstractmethod
    def reset(self) -> None:
        """Give back all that nobody uses."""

    @abstractmethod
    def defer_cleanup(self) -> AbstractContextManager[Any]:
        """A block in which no memory is given back."""

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
    """A base for plugins that manage device memory alone: memory of the host comes from the driver."""

    def memhostalloc(self, size: int, mapped: bool = False, portable: bool = False, wc: bool = False) -> MemoryPointer:
        """Of the driver; *portable* and *wc* are hints that change nothing."""
        del portable, wc
        buffer = self.context.memhostalloc(size, mapped)
        kind = MappedMemory if mapped else PinnedMemory
        return kind(self.context, buffer.address, size, owner=buffer, finalizer=buffer.close)

    def mempin(self, owner: Any, pointer: Any, size: int, mapped: bool = False) -> MemoryPointer:
        """The memory as it is: copies from it go through page-locked buffers of the driver."""
        return (MappedMemory if mapped else PinnedMemory)(self.context, pointer, size, owner=owner)

    def reset(self) -> None:
        """Wait for the device."""
        self.context.reset()

    def defer_cleanup(self) -> AbstractContextManager[Any]:
        """See `numba_hip.defer_cleanup`."""
        return defer_cleanup()


class GetIpcHandleMixin:
    """`get_ipc_handle` for plugins whose memory is the driver's own."""

    context: Context

    def get_ipc_handle(self, memory: MemoryPointer) -> bytes:
        """The driver's handle; `UnsupportedError` on a device that cannot share memory by handles."""
        return self.context.device.driver.ipc_handle(memory.device_pointer_value)


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
            raise MemoryManagerError(f"{name}.memalloc({nbytes}) gave {memory.size} bytes, which are too few")
        return Buffer(memory.device_pointer_value, nbytes, owner=memory.owner, release=memory.free)


_drivers: dict[int, MemoryManager] = {}
"""The memory manager that each device had first, by its number."""


def set_memory_manager(plugin: Callable[[Context], BaseMemoryManager] | None) -> None:
    """Let device memory come from *plugin*, a class such as `BaseMemoryManager`, from now on, on all devices.

    ``None`` brings the driver's own manager back. Memory that was given before goes back to where it came from. Raises
    `MemoryManagerError` for a plugin of another interface version, and what its ``initialize`` raises; nothing has
    changed then.
    """
    devices = hip_runtime.devices()
    made: list[PluginMemory] = []
    for device in devices if plugin is not None else ():
        manager = plugin(Context(device)) if callable(plugin) else None
        version = getattr(manager, "interface_version", None)
        if manager is None or version != INTERFACE_VERSION:
            raise MemoryManagerError(
                f"memory manager {plugin!r} states interface version {version!r}; it has to be {INTERFACE_VERSION}"
            )
        manager.initialize()
        made.append(PluginMemory(manager))
    for number, device in enumerate(devices):
        first = _drivers.setdefault(device.id, device.memory_manager)
        device.memory_manager = made[number] if made else first


BaseCUDAMemoryManager = BaseMemoryManager
HostOnlyCUDAMemoryManager = HostOnlyMemoryManager
