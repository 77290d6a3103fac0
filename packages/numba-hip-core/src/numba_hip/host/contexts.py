"""Contexts and the list of devices, under Numba CUDA's names. HIP has one context for each device, which it creates."""

from __future__ import annotations

import functools
import operator
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import hip_runtime
from hip_runtime import Buffer, Device, Event, PendingReleases
from hip_runtime.cuda_array_names import set_memory_pointer
from hip_runtime.device import active_device, let_go_of_device
from hip_runtime.errors import ArrayTypeError, HipRuntimeError
from hip_runtime.module import Function
from numba_hip.host import memory_managers, streams
from numba_hip.host.context_state import ContextContents
from numba_hip.host.memory_managers import BaseMemoryManager, DriverMemory, MemoryInfo, MemoryPointer, PluginMemory
from numba_hip.host.memory_pointers import pointer_to
from numba_hip.host.streams import Stream

if TYPE_CHECKING:
    from numba_hip.host.host_bytes import ManagedBytes, MappedBytes, PinnedBytes

_local = threading.local()


def _pushed() -> list[Device]:
    """The devices to which the calling thread returns, one for each `Context.push`."""
    found: list[Device] = _local.__dict__.setdefault("devices", [])
    return found


class ContextError(HipRuntimeError, RuntimeError):
    """A `Context.pop` without a matching push."""


F = TypeVar("F", bound=Callable[..., Any])


class Context(ContextContents):
    """The state of *device* that a thread works with. Two contexts of one device are equal."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def __repr__(self) -> str:
        return f"<Context of {self.device!r}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Context) and other.device is self.device

    def __hash__(self) -> int:
        return hash((Context, self.device.id))

    @property
    def id(self) -> int:
        """The number of the device."""
        return self.device.id

    def synchronize(self) -> None:
        """Wait until the device has finished all work; raises the errors of kernels."""
        self.device.synchronize()

    @property
    def memory_manager(self) -> BaseMemoryManager:
        """The memory manager of the device: a plugin, or the driver's."""
        found = self.device.memory_manager
        return found.plugin if isinstance(found, PluginMemory) else DriverMemory(self)

    @memory_manager.setter
    def memory_manager(self, manager: BaseMemoryManager) -> None:
        """Set *manager*, which is initialised here, for this device; see `numba_hip.set_memory_manager`."""
        memory_managers.check_manager(manager)
        manager.initialize()
        memory_managers.install(manager, self.device)

    @property
    def deallocations(self) -> PendingReleases:
        """Memory of the driver that waits to be released: has ``len()`` and ``clear()``."""
        return self.device.pending

    def get_memory_info(self) -> MemoryInfo:
        """Free and total bytes, as the memory manager of the device sees them."""
        return MemoryInfo(*self.memory_manager.get_memory_info())

    def get_ipc_handle(self, memory: Buffer | MemoryPointer) -> Any:
        """The handle with which another process opens *memory*, from the memory manager: an `IpcHandle` if that is the
        driver's.

        Raises `hip_runtime.errors.UnsupportedError` if the memory cannot be shared.
        """
        return self.memory_manager.get_ipc_handle(memory)

    def memalloc(self, bytesize: int) -> MemoryPointer:
        """*bytesize* bytes of the device, which the result owns."""
        try:
            bytesize = operator.index(bytesize)
        except TypeError:
            raise ArrayTypeError(f"bytesize is {bytesize!r}; it must be a whole number of bytes") from None
        buffer = self.device.allocate(bytesize)
        return self._note(MemoryPointer(self, buffer.address, bytesize, finalizer=buffer.close))

    def memhostalloc(
        self, bytesize: int, mapped: bool = False, portable: bool = False, wc: bool = False
    ) -> PinnedBytes | MappedBytes:
        """*bytesize* bytes of page-locked host memory, which kernels can access if it is *mapped*.

        *portable* and *wc* (write-combining) are hints that change nothing here.
        """
        from numba_hip.host.host_bytes import mapped_bytes, pinned_bytes  # when it is needed

        del portable, wc
        return mapped_bytes(self, bytesize) if mapped else pinned_bytes(self, bytesize)

    def memallocmanaged(self, bytesize: int, attach_global: bool = True) -> ManagedBytes:
        """*bytesize* bytes of memory that migrates to where it is used."""
        from numba_hip.host.host_bytes import managed_bytes  # when it is needed

        return managed_bytes(self, bytesize, attach_global)

    def mempin(self, owner: Any, pointer: Any, size: int, mapped: bool = False) -> MemoryPointer:
        """Page-lock the *size* bytes at *pointer*, which *owner* keeps alive, by the memory manager of the device."""
        return self.memory_manager.mempin(owner, pointer, size, mapped)

    def create_stream(self) -> Stream:
        """A new stream on the device."""
        return Stream(self.device)

    def create_external_stream(self, ptr: int) -> Stream:
        """The stream with that handle, created elsewhere."""
        return streams.external_stream(ptr)

    def get_default_stream(self) -> Stream:
        """The default stream."""
        return streams.default_stream()

    def create_event(self, timing: bool = True) -> Event:
        """A new event on the device."""
        return Event(self.device, timing=timing)

    def can_access_peer(self, peer_context: int) -> bool:
        """Whether kernels here can use memory of the device with number *peer_context*."""
        return self.device.can_access_peer(hip_runtime.find_device(peer_context))

    def defer_cleanup(self) -> AbstractContextManager[None]:
        """See `defer_cleanup`."""
        return defer_cleanup()

    def get_legacy_default_stream(self) -> Stream:
        """See `numba_hip.legacy_default_stream`."""
        return streams.legacy_default_stream()

    def get_per_thread_default_stream(self) -> Stream:
        """See `numba_hip.per_thread_default_stream`."""
        return streams.per_thread_default_stream()

    def open_ipc_handle(self, handle: bytes, size: int) -> MemoryPointer:
        """The first *size* bytes of the memory for which another process created *handle*, until they are freed."""
        buffer = hip_runtime.IpcHandle(None, handle, size).open_on(self.device)
        return MemoryPointer(self, buffer.address, size, finalizer=buffer.close)

    def enable_peer_access(self, peer_context: Context, flags: int = 0) -> None:
        """Allow kernels here to use memory of the other context's device. Raises `UnsupportedError` if they cannot."""
        del flags
        self.device.enable_peer_access(peer_context.device)

    def get_active_blocks_per_multiprocessor(self, func: Any, blocksize: int, memsize: int, flags: Any = None) -> int:
        """How many blocks of *blocksize* threads of *func*, a kernel that was compiled or a function of the device, fit
        on a compute unit at a time."""
        del flags
        return self._function_of(func).max_active_blocks(blocksize, memsize)

    def get_max_potential_block_size(
        self,
        func: Any,
        b2d_func: Callable[[int], int] | int | None,
        memsize: int,
        blocksizelimit: int,
        flags: Any = None,
    ) -> tuple[int, int]:
        """The smallest number of blocks that keeps the device busy with *func*, and the number of threads in each.

        *func* is a kernel that was compiled or a function of the device.

        Each block has *memsize* bytes of dynamic shared memory, or as many as *b2d_func* returns for its number of
        threads, which is at most *blocksizelimit* if that is not 0. Among shapes that keep as many threads busy, the
        largest is chosen.
        """
        del flags
        func = self._function_of(func)
        wave = self.device.attributes.wave_size
        most = min(func.attrs.maxthreads, blocksizelimit or func.attrs.maxthreads)
        busy = {}
        for block in [*range(wave, most + 1, wave)] or [most]:
            shared = b2d_func(block) if callable(b2d_func) else memsize
            active = self.get_active_blocks_per_multiprocessor(func, block, shared)
            busy[block] = active * block
        best = max(busy, key=lambda block: (busy[block], block))
        return max(busy[best] // best, 1) * self.device.attributes.compute_units, best

    def _function_of(self, kernel: Any) -> Function:
        from numba_hip.host.loaded_functions import function_of  # when it is needed

        return function_of(kernel, self.device)

    def prepare_for_use(self) -> None:
        """Does nothing: the device is ready."""

    def push(self) -> None:
        """Select this device for the calling thread until `pop`."""
        _pushed().append(hip_runtime.current_device())
        hip_runtime.select_device(self.device)

    def pop(self) -> None:
        """Select the device again that the calling thread used before `push`."""
        if not _pushed():
            raise ContextError(f"{self!r} was not pushed by this thread")
        hip_runtime.select_device(_pushed().pop())

    def reset(self) -> None:
        """Wait for all work, reset the memory manager, and let go of `modules`.

        Memory, modules and streams live as long as their objects.
        """
        self.device.synchronize()
        self.modules.clear()
        self.memory_manager.reset()


set_memory_pointer(lambda array: pointer_to(Context(array.device), array.memory))

hip_runtime.device.ADDED.update(
    primary_context=Context,
    get_primary_context=lambda device: lambda: Context(device),
    release_primary_context=lambda device: lambda: None,  # it ends with the process
    reset=lambda device: Context(device).reset,
)


class DeviceScope:
    """A device in `gpus`: everything that `Device` has, and ``with gpus[0]: ...`` to select it for a block."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._before: list[Device] = []

    @property
    def _device(self) -> Device:
        """The device, under the name that Numba CUDA keeps it: programs read ``gpus[0]._device.name``."""
        return self.device

    def __getattr__(self, name: str) -> Any:
        return getattr(self.device, name)

    def __repr__(self) -> str:
        return repr(self.device)

    def __enter__(self) -> Context:
        self._before.append(hip_runtime.current_device())
        return Context(hip_runtime.select_device(self.device))

    def __exit__(self, *exception: object) -> None:
        hip_runtime.select_device(self._before.pop())


class Devices:
    """All devices, by their numbers: `gpus`. They are enumerated on first use."""

    def __iter__(self) -> Iterator[DeviceScope]:
        return iter(self.lst)

    def __len__(self) -> int:
        return len(hip_runtime.devices())

    def __getitem__(self, number: int) -> DeviceScope:
        try:
            return self.lst[number]
        except IndexError:
            raise IndexError(f"there is no device {number}; the devices are: {self}") from None

    def __str__(self) -> str:
        return ", ".join(map(str, self.lst))

    @property
    def lst(self) -> list[DeviceScope]:
        """The devices as a list."""
        return [DeviceScope(device) for device in hip_runtime.devices()]

    @property
    def current(self) -> DeviceScope | None:
        """The device that this thread works with; ``None`` where it has used none yet, or none since `close`."""
        active = active_device()
        return None if active is None else DeviceScope(active)


gpus = Devices()


def current_context(devnum: int | None = None) -> Context:
    """The context of the current device, or of device *devnum*, which then becomes the current one."""
    return Context(hip_runtime.current_device() if devnum is None else hip_runtime.select_device(devnum))


def require_context(fn: F) -> F:
    """Make *fn* look for a device before it begins, so that it is not left half done if there is none."""

    @functools.wraps(fn)
    def with_device(*args: Any, **kws: Any) -> Any:
        hip_runtime.current_device()
        return fn(*args, **kws)

    return with_device  # type: ignore[return-value]


def close() -> None:
    """Wait for all work of the device that this thread works with, and let go of it: the next use is of device 0."""
    active = active_device()
    if active is not None:
        active.synchronize()
    let_go_of_device()


def defer_cleanup() -> AbstractContextManager[None]:
    """A block in which no memory is released, so that nothing delays work on streams; at its end all of it is
    released."""
    return hip_runtime.defer_release()


def set_memory_manager(mm_plugin: Callable[[Context], BaseMemoryManager] | None) -> None:
    """Allocate device memory from *mm_plugin*, a class such as `BaseMemoryManager`, from now on, on all devices.

    ``None`` restores the driver's own manager. Existing memory is released by the manager that it came from. Raises
    `MemoryManagerError` for a plugin of another interface version, and whatever its ``initialize`` raises; then nothing
    has changed.
    """
    devices = hip_runtime.devices()
    made: list[BaseMemoryManager] = []
    for device in devices if mm_plugin is not None else ():
        manager: Any = mm_plugin(Context(device)) if callable(mm_plugin) else mm_plugin
        memory_managers.check_manager(manager)
        manager.initialize()
        made.append(manager)
    for number, device in enumerate(devices):
        memory_managers.install(made[number] if made else None, device)


def profile_start() -> None:
    """Does nothing: no profiler can be switched on from inside the process. ``rocprof`` starts the program itself."""


def profile_stop() -> None:
    """Does nothing, like `profile_start`."""


@contextmanager
def profiling() -> Iterator[None]:
    """A block between `profile_start` and `profile_stop`, which do nothing."""
    profile_start()
    try:
        yield
    finally:
        profile_stop()
