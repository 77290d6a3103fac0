"""Contexts and the list of devices, in Numba CUDA's words. HIP has one context for each device, made by itself."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, TypeVar

import hip_runtime
from hip_runtime import Buffer, Device, Event, MemoryKind
from numba_hip import streams
from numba_hip.streams import Stream

F = TypeVar("F", bound=Callable[..., Any])


class MemoryInfo(NamedTuple):
    """Bytes of memory of a device that are free, and all of them."""

    free: int
    total: int


class Context:
    """What a thread works with on *device*. Two contexts of one device are equal."""

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
        """Number of the device."""
        return self.device.id

    def synchronize(self) -> None:
        """Wait until the device has done all that it was given; errors of kernels surface here."""
        self.device.synchronize()

    def get_memory_info(self) -> MemoryInfo:
        """Free and total bytes, as the memory manager of the device sees them."""
        plugin = getattr(self.device.memory_manager, "plugin", None)
        return MemoryInfo(*(self.device.memory_info() if plugin is None else plugin.get_memory_info()))

    def memalloc(self, bytesize: int) -> Buffer:
        """A buffer of *bytesize* bytes on the device."""
        return self.device.allocate(bytesize)

    def memhostalloc(self, bytesize: int, mapped: bool = False) -> Buffer:
        """A buffer of page-locked host memory, which kernels reach if it is *mapped*."""
        return self.device.allocate(bytesize, MemoryKind.MAPPED if mapped else MemoryKind.PINNED)

    def create_stream(self) -> Stream:
        """A new stream on the device."""
        return Stream(self.device)

    def create_external_stream(self, ptr: int) -> Stream:
        """The stream with that handle, which somebody else made."""
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

    def reset(self) -> None:
        """Wait for all work. Memory, modules and streams live as long as their objects do."""
        self.device.synchronize()


class DeviceScope:
    """A device of `gpus`: all that `Device` has, and ``with gpus[0]: ...`` to work with it for a while."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._before: list[Device] = []

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
    """All devices, by their numbers: `gpus`. They are looked for when they are first asked for."""

    def __iter__(self) -> Iterator[DeviceScope]:
        return iter(self.lst)

    def __len__(self) -> int:
        return len(hip_runtime.devices())

    def __getitem__(self, number: int) -> DeviceScope:
        return self.lst[number]

    def __str__(self) -> str:
        return ", ".join(map(str, self.lst))

    @property
    def lst(self) -> list[DeviceScope]:
        """The devices as a list."""
        return [DeviceScope(device) for device in hip_runtime.devices()]

    @property
    def current(self) -> DeviceScope:
        """The device that this thread works with."""
        return DeviceScope(hip_runtime.current_device())


gpus = Devices()


def current_context(devnum: int | None = None) -> Context:
    """The context of the current device, or of device *devnum*, which then becomes the current one."""
    return Context(hip_runtime.current_device() if devnum is None else hip_runtime.select_device(devnum))


def require_context(function: F) -> F:
    """Make *function* find a device before it begins, so that it is not done by halves where there is none."""

    @functools.wraps(function)
    def with_device(*args: Any, **kws: Any) -> Any:
        hip_runtime.current_device()
        return function(*args, **kws)

    return with_device  # type: ignore[return-value]


def close() -> None:
    """Wait for all work of the current device, and let this thread work with device 0 again."""
    hip_runtime.current_device().synchronize()
    hip_runtime.select_device(0)


def defer_cleanup() -> AbstractContextManager[None]:
    """A block in which no memory is given back, so that nothing holds up work on streams; at its end all of it is."""
    return hip_runtime.defer_release()


def profile_start() -> None:
    """Nothing: there is no profiler to switch on from inside of the process. ``rocprof`` starts the program itself."""


def profile_stop() -> None:
    """Nothing, as `profile_start`."""


@contextmanager
def profiling() -> Iterator[None]:
    """A block between `profile_start` and `profile_stop`, which do nothing."""
    profile_start()
    try:
        yield
    finally:
        profile_stop()
