"""The CPU device's values for HIP's device attributes; attributes that it does not have are 0."""

from __future__ import annotations

import platform
import re
import uuid
from functools import cache
from pathlib import Path

from hip_devicelib import spmd
from hip_devicelib.codeobject import CPU_TARGET
from hip_runtime import config
from hip_runtime.driver import DeviceAttributes

FIRST = Path("/sys/devices/system/cpu/cpu0")
"""What Linux tells about the first processor."""

FEATURES = """
    CanMapHostMemory CanUseHostPointerForRegisteredMem ComputePreemptionSupported ConcurrentManagedAccess
    DirectManagedMemAccessFromHost GlobalL1CacheSupported LocalL1CacheSupported HostNativeAtomicSupported
    HostRegisterSupported PageableMemoryAccess PageableMemoryAccessUsesHostPageTables UnifiedAddressing AsyncEngineCount
    DeviceOverlap MaxBlocksPerMultiProcessor
""".split()
"""What it has, once: its memory is the host's, copies on one stream go on beside kernels on another, and a thread of
the processor works on one block at a time."""

INT_MAX = 2**31 - 1


def read_attributes(total_memory: int, number: int = 0, count: int = 1) -> DeviceAttributes:
    """What the CPU device with that *number* is like, one of *count*, with *total_memory* bytes."""
    name = _processor_name()
    identity = f"{platform.node()}/{name}" + (f"/{number}" if number else "")
    return DeviceAttributes(
        name=name,
        target=CPU_TARGET,
        wave_size=config.cpu_wave_size(),
        compute_units=max(config.cpu_threads() // count, 1),
        total_memory=total_memory,
        max_threads_per_block=1024,
        max_block_dim=(1024, 1024, 1024),
        max_grid_dim=(2**31 - 1, 65535, 65535),
        shared_bytes_per_block=spmd.SHARED_BYTES,
        registers_per_block=65536,
        clock_rate=clock_rate(),
        memory_clock_rate=0,
        pci=(0, 0, number),
        uuid=str(uuid.uuid5(uuid.NAMESPACE_OID, identity)),
        integrated=True,
        managed_memory=True,
        concurrent_kernels=True,
        cooperative_launch=True,
    )


def attribute(name: str, device: DeviceAttributes) -> int:
    """The CPU device's value for the attribute *name*, the end of a name in ``hipDeviceAttribute_t``."""
    if name in FEATURES:
        return 1
    values = {
        "ClockRate": device.clock_rate,
        "Integrated": int(device.integrated),
        "ManagedMemory": int(device.managed_memory),
        "ConcurrentKernels": int(device.concurrent_kernels),
        "CooperativeLaunch": int(device.cooperative_launch),
        "L2CacheSize": cache_size(2),
        "MaxPitch": INT_MAX,
        "TotalConstantMemory": min(device.total_memory, INT_MAX),
        "MaxThreadsPerMultiProcessor": device.max_threads_per_block,
        "MaxSharedMemoryPerBlock": device.shared_bytes_per_block,
        "SharedMemPerBlockOptin": device.shared_bytes_per_block,
        "MaxSharedMemoryPerMultiprocessor": device.shared_bytes_per_block,
        "MaxRegistersPerBlock": device.registers_per_block,
        "MaxRegistersPerMultiprocessor": device.registers_per_block,
        "SingleToDoublePrecisionPerfRatio": 2,  # vectors hold twice as many
    }
    return values.get(name, 0)


@cache
def cache_size(level: int) -> int:
    """Bytes of the first processor's cache of that *level*; 0 if the system does not report it."""
    for index in sorted(FIRST.glob("cache/index*")):
        size = re.fullmatch(r"(\d+)K", _read(index / "size"))
        if _read(index / "level") == str(level) and size is not None:
            return int(size[1]) * 1024
    return 0


@cache
def clock_rate() -> int:
    """The maximum, or else the current, clock rate of the first processor in kHz; 0 if the system does not report
    it."""
    highest = _read(FIRST / "cpufreq" / "cpuinfo_max_freq")
    if highest.isdigit():
        return int(highest)
    now = re.search(r"^cpu MHz\s*: ([\d.]+)$", _read(Path("/proc/cpuinfo")), re.MULTILINE)
    return round(float(now[1]) * 1000) if now else 0


def _processor_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux: the next best source
    return platform.processor() or platform.machine()


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
