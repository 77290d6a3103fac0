"""The devices of the process, and the current one of each thread.

They are determined once, when a device is first used, as the setting `config.device` says.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from hip_devicelib.codeobject import CPU_TARGET, CodeObject
from hip_runtime import config
from hip_runtime.driver import DeviceAttributes, Driver, MemoryKind
from hip_runtime.errors import DeviceUnavailableError, HipRuntimeError, UnknownDeviceError, UnsupportedError
from hip_runtime.memory import Buffer, DriverMemoryManager, MemoryManager, PendingReleases

if TYPE_CHECKING:
    from hip_runtime.drivers.hip.probe import Probe

ATTRIBUTE_SPELLINGS: dict[str, Callable[[DeviceAttributes], Any]] = {
    "MAX_THREADS_PER_BLOCK": lambda a: a.max_threads_per_block,
    "MAX_BLOCK_DIM_X": lambda a: a.max_block_dim[0],
    "MAX_BLOCK_DIM_Y": lambda a: a.max_block_dim[1],
    "MAX_BLOCK_DIM_Z": lambda a: a.max_block_dim[2],
    "MAX_GRID_DIM_X": lambda a: a.max_grid_dim[0],
    "MAX_GRID_DIM_Y": lambda a: a.max_grid_dim[1],
    "MAX_GRID_DIM_Z": lambda a: a.max_grid_dim[2],
    "MAX_SHARED_MEMORY_PER_BLOCK": lambda a: a.shared_bytes_per_block,
    "MAX_REGISTERS_PER_BLOCK": lambda a: a.registers_per_block,
    "MULTIPROCESSOR_COUNT": lambda a: a.compute_units,
    "WARP_SIZE": lambda a: a.wave_size,
    "TOTAL_MEMORY": lambda a: a.total_memory,
    "CLOCK_RATE": lambda a: a.clock_rate,
    "MEMORY_CLOCK_RATE": lambda a: a.memory_clock_rate,
    "PCI_DOMAIN_ID": lambda a: a.pci[0],
    "PCI_BUS_ID": lambda a: a.pci[1],
    "PCI_DEVICE_ID": lambda a: a.pci[2],
    "INTEGRATED": lambda a: int(a.integrated),
    "MANAGED_MEMORY": lambda a: int(a.managed_memory),
    "CONCURRENT_KERNELS": lambda a: int(a.concurrent_kernels),
    "COOPERATIVE_LAUNCH": lambda a: int(a.cooperative_launch),
    "COMPUTE_CAPABILITY": lambda a: compute_capability(a.target),
    "COMPUTE_CAPABILITY_MAJOR": lambda a: compute_capability(a.target)[0],
    "COMPUTE_CAPABILITY_MINOR": lambda a: compute_capability(a.target)[1],
    "supports_float16": lambda a: True,  # on the CPU device, and on every AMD GPU that ROCm has targets for
    "supports_bfloat16": lambda a: True,  # computed in float32 where the hardware has no bfloat16
    "supports_fp8": lambda a: False,
    "compute_capability": lambda a: compute_capability(a.target),
}
"""The names that numba.cuda gives to device attributes, which `Device` answers to beside its own."""


ADDED: dict[str, Callable[[Device], Any]] = {}
"""What a layer above gives to every `Device` as an attribute, by its name."""

CPU_CAPABILITY = (9, 0)
"""What the CPU device answers: it has all that programs ask compute capabilities for, and claims no more than a GPU."""


def compute_capability(target: str) -> tuple[int, int]:
    """Major and minor version of a GPU as in ``hipDeviceProp_t``: ``(9, 0)`` for gfx90a, ``(11, 0)`` for gfx1100.

    They are the leading digits of the name; its last character is the stepping, its last but one the minor version.
    """
    if target == CPU_TARGET:
        return CPU_CAPABILITY
    digits = target.partition(":")[0].removeprefix("gfx")
    return int(digits[:-2]), int(digits[-2], 16)


LAYERS = {"hip_runtime"}
"""Packages whose lines a user did not write; a package above this one adds its name."""


class DeviceFallbackWarning(UserWarning):
    """Kernels run on the CPU device because there is no AMD GPU that could run them."""


class UnknownSettingWarning(UserWarning):
    """A variable of the environment that nothing reads, and whose name looks like that of a setting."""


class Device:
    """One device. All attributes of `DeviceAttributes` are attributes of it, also by numba.cuda's names for them."""

    def __init__(self, driver: Driver, ordinal: int, number: int) -> None:
        self.driver = driver
        self.ordinal = ordinal
        """Number of the device with its driver."""
        self.id = number
        """Number of the device in `devices()`."""
        self._attributes = driver.attributes(ordinal)
        self.pending = PendingReleases(self._attributes.total_memory)
        """Memory of the device that nobody uses any more and that was not given back yet."""
        self.memory_manager: MemoryManager = DriverMemoryManager(driver, ordinal, pending=self.pending)
        self.peers: set[Device] = set()
        """Other devices whose memory kernels here may use; see `enable_peer_access`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "attributes":
            raise AttributeError(name)
        spelling = ATTRIBUTE_SPELLINGS.get(name)
        if spelling is not None:
            return spelling(self.attributes)
        added = ADDED.get(name)
        if added is not None:
            return added(self)
        if name.isupper():
            return self._named(name)
        try:
            return getattr(self.attributes, name)
        except AttributeError:
            raise AttributeError(self._missing(name)) from None

    def _named(self, name: str) -> int:
        """The attribute that CUDA's driver calls *name*."""
        from hip_runtime.cuda_device_attributes import HIP_NAMES  # a table that most programs never need

        if name not in HIP_NAMES:
            raise AttributeError(self._missing(name))
        known = HIP_NAMES[name]
        return 0 if known is None else self.driver.attribute(self.ordinal, known)

    def _missing(self, name: str) -> str:
        """What is wrong with *name*, which is no attribute, and what it is like."""
        from difflib import get_close_matches

        from hip_runtime.cuda_device_attributes import HIP_NAMES

        known = {*ATTRIBUTE_SPELLINGS, *ADDED, *HIP_NAMES, *(each.name for each in fields(self.attributes)), *dir(self)}
        near = get_close_matches(name, sorted(each for each in known if not each.startswith("_")))
        return f"a device has no attribute {name!r}" + (
            f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process: its device of this number."""
        return find_device, (self.id,)

    def __repr__(self) -> str:
        return f"<Device {self.id}: {self.attributes.name} ({self.attributes.target})>"

    @property
    def attributes(self) -> DeviceAttributes:
        """What the device is and can do; only the wave size of the CPU device, a setting, ever changes."""
        found = self._attributes
        if found.target == CPU_TARGET and found.wave_size != config.cpu_wave_size():
            found = self._attributes = replace(found, wave_size=config.cpu_wave_size())
        return found

    @property
    def name(self) -> str:
        """The manufacturer's name for it."""
        return self._attributes.name

    @property
    def target(self) -> str:
        """The target of code objects that it runs: ``"cpu"`` or the name of an AMD GPU architecture."""
        return self._attributes.target

    @property
    def compute_units(self) -> int:
        """How many blocks it runs side by side at least: compute units, or threads of the processor."""
        return self._attributes.compute_units

    @property
    def is_cpu(self) -> bool:
        """Whether this is the CPU device."""
        return self.driver.name == "cpu"

    def get_device_identity(self) -> dict[str, int]:
        """The device's address on the PCI bus, by which other processes find it."""
        domain, bus, device = self._attributes.pci
        return {"pci_domain_id": domain, "pci_bus_id": bus, "pci_device_id": device}

    def synchronize(self) -> None:
        """Wait until all work of the device is done; raises a kernel's pending fault, if any."""
        self.driver.synchronize_device(self.ordinal)

    def abort(self) -> None:
        """End the kernels that run on any stream of the device now, within their blocks, and drop all work behind them.

        Memory keeps what was written, errors of the work are dropped, and all streams can be used again. For kernels
        that do not end. Raises `UnsupportedError` on AMD GPUs, where only the end of the process ends a kernel.
        """
        self.driver.abort_device(self.ordinal)

    def memory_info(self) -> tuple[int, int]:
        """Free and total bytes of its memory; pending releases are done first, unless they are deferred."""
        self.pending.clear()
        return self.driver.memory_info(self.ordinal)

    def allocate(self, nbytes: int, kind: MemoryKind = MemoryKind.DEVICE) -> Buffer:
        """A new `Buffer` of *nbytes*; device memory comes from the device's memory manager."""
        if kind is MemoryKind.DEVICE:
            return self.memory_manager.allocate(nbytes, stream=0)
        return DriverMemoryManager(self.driver, self.ordinal, kind, self.pending).allocate(nbytes, stream=0)

    def is_like(self, other: Device) -> bool:
        """Whether memory can be copied from *other* to this device directly: both are GPUs, or both CPU devices."""
        return self.driver is other.driver or (self.is_cpu and other.is_cpu)

    def can_access_peer(self, other: Device) -> bool:
        """Whether kernels here can use memory of *other*, once `enable_peer_access` allows it."""
        if self.driver is other.driver:
            return self.driver.can_access_peer(self.ordinal, other.ordinal)
        return self.is_like(other)

    def enable_peer_access(self, other: Device) -> None:
        """Let kernels here use memory of *other* from now on. Raises `UnsupportedError` if they cannot."""
        if not self.can_access_peer(other):
            raise UnsupportedError(f"kernels on {self} cannot use memory of {other}")
        if self.driver is other.driver:
            self.driver.enable_peer_access(self.ordinal, other.ordinal)
        self.peers.add(other)

    def load(self, code: CodeObject) -> Any:
        """Load *code*: a `Module`."""
        from hip_runtime.module import Module

        return Module(self, code)


class Withheld(NamedTuple):
    """Why devices are currently disabled, and the devices for when that ends."""

    why: str
    devices: tuple[Device, ...]
    current: threading.local


class _Registry:
    """The devices of the process, found once, and the current one of each thread."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.devices: tuple[Device, ...] = ()
        self.current = threading.local()
        self.checked_names = False
        self.withheld: Withheld | None = None


_registry = _Registry()


def devices() -> tuple[Device, ...]:
    """All devices, in the order of their numbers."""
    if not _registry.devices:
        from hip_devicelib.forking import compiling
        from hip_devicelib.interrupts import interrupts_held

        with compiling, _registry.lock, interrupts_held():  # drivers compile, during which no process is forked
            if not _registry.devices:
                _registry.devices = _find()
    return _registry.devices


def are_found() -> bool:
    """Whether this process knows its devices: settings of them have no effect any more."""
    return bool(_registry.devices)


def withhold_devices(why: str | None) -> None:
    """From now on raise `DeviceUnavailableError` with *why* when a device is requested; ``None`` ends that.

    For layers above whose own settings disable devices. Data on a device stays there.
    """
    with _registry.lock:
        held = _registry.withheld
        if held is not None:
            _registry.devices, _registry.current, _registry.withheld = held.devices, held.current, None
        if why is not None:
            _registry.withheld = Withheld(why, _registry.devices, _registry.current)
            _registry.devices, _registry.current = (), threading.local()


def current_device() -> Device:
    """The current device of the calling thread; number 0 until it selects another."""
    try:
        found: Device = _registry.current.device
    except AttributeError:
        found = _registry.current.device = devices()[0]
    return found


def active_device() -> Device | None:
    """The current device of the calling thread, if it has used or selected one since it began, or let go of it."""
    return getattr(_registry.current, "device", None)


def let_go_of_device() -> None:
    """Have no current device in the calling thread, until it uses or selects one again."""
    vars(_registry.current).pop("device", None)


def select_device(device: int | str | Device) -> Device:
    """Make *device* (its number, its name or target, or itself) the current one of the calling thread."""
    _registry.current.device = find_device(device)
    return current_device()


def find_device(device: int | str | Device) -> Device:
    """The device with that number, name or target. Raises `UnknownDeviceError`, which lists the known ones."""
    if isinstance(device, Device):
        return device
    known = devices()
    if isinstance(device, int) and not isinstance(device, bool) and 0 <= device < len(known):
        return known[device]
    if isinstance(device, str):
        for candidate in known:
            if device in (candidate.name, candidate.target):
                return candidate
    listing = ", ".join(f"{candidate.id} ({candidate.name}, {candidate.target})" for candidate in known)
    raise UnknownDeviceError(f"there is no device {device!r}; the devices are: {listing}")


def _find() -> tuple[Device, ...]:
    from hip_runtime.drivers.cpu.driver import CpuDriver

    if _registry.withheld is not None:
        raise DeviceUnavailableError(_registry.withheld.why)
    _tell_of_misspelt_settings()
    choice = config.device()
    if choice != "cpu":
        from hip_runtime.drivers.hip.probe import State, probe

        found = probe()
        if found.state is State.FOUND:
            return _take_gpus(found)
        _explain_missing_gpu(choice, found)
    count = config.cpu_devices()
    return tuple(Device(CpuDriver(number=number, count=count), 0, number) for number in range(count))


def _tell_of_misspelt_settings() -> None:
    """Once in a process; if warnings are errors, the next call continues without it."""
    if _registry.checked_names:
        return
    _registry.checked_names = True
    for name, meant in config.misspelt_variables().items():
        message = f"the environment has {name}, which is no setting; {meant} is one"
        warnings.warn(message, UnknownSettingWarning, stacklevel=stack_level())


def _take_gpus(found: Probe) -> tuple[Device, ...]:
    from hip_runtime.drivers.hip.driver import HipDriver

    try:
        driver = HipDriver()
        return tuple(Device(driver, number, number) for number in range(driver.device_count()))
    except HipRuntimeError as error:
        advice = f"Repair the installation, or set {config.device.variable}=cpu to run kernels on the processor"
        raise DeviceUnavailableError(f"{found.reason}, but cannot use them: {error}. {advice}") from error


def _explain_missing_gpu(choice: str, found: Probe) -> None:
    """Warn, or raise if a GPU was requested, or an installation exists that does not work."""
    from hip_runtime.drivers.hip.probe import State

    reason = found.reason
    advice = f"Set {config.device.variable}=cpu to run kernels on this machine's processor"
    if choice == "hip":
        raise DeviceUnavailableError(f"{config.device.variable}=hip asks for an AMD GPU: {reason}. {advice}")
    if found.state is State.BROKEN:
        raise DeviceUnavailableError(f"{reason}. Repair the installation, or: {advice[0].lower()}{advice[1:]}")
    warnings.warn(
        f"kernels run on the CPU device: {reason}. {advice} without this warning",
        DeviceFallbackWarning,
        stacklevel=stack_level(),
    )


def stack_level() -> int:
    """How far up from the function that calls this the caller outside of `LAYERS` is: that is who a warning is for."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in LAYERS:
        level, frame = level + 1, frame.f_back
    return level


def _after_fork() -> None:
    _registry.lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
