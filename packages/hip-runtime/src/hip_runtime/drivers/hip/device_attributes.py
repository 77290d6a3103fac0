"""Attributes of a device, as the HIP runtime reports them."""

from __future__ import annotations

import ctypes
from typing import Any

from hip_runtime.driver import DeviceAttributes
from hip_runtime.drivers.hip.calls import Calls

_UUID_BYTES = 16

_MOST_ROWS = 2**16 - 1
"""Blocks along y and z, as HIP's documentation and CUDA have it; the runtime's properties say one more."""

_MOST_THREADS_ALONG = 2**32 - 1
"""Threads along an axis: the packet of a launch counts them in 32 bits."""

INVALID_VALUE = 1
"""``hipErrorInvalidValue``, the runtime's answer for attributes that it does not have."""


def read_attributes(calls: Calls, device: int) -> DeviceAttributes:
    """The attributes of *device*. hip-python knows the structure, and what is where in it."""
    properties = calls.hip.hipDeviceProp_t()
    calls.call("hipGetDeviceProperties", properties.as_c_void_p(), device)
    blocks, rows, layers = _three(properties.maxGridSize)
    return DeviceAttributes(
        name=_text(properties.name),
        target=_text(properties.gcnArchName),
        wave_size=properties.warpSize,
        compute_units=properties.multiProcessorCount,
        total_memory=properties.totalGlobalMem,
        max_threads_per_block=properties.maxThreadsPerBlock,
        max_block_dim=_three(properties.maxThreadsDim),
        max_grid_dim=(blocks, min(rows, _MOST_ROWS), min(layers, _MOST_ROWS)),
        shared_bytes_per_block=properties.sharedMemPerBlock,
        registers_per_block=properties.regsPerBlock,
        clock_rate=properties.clockRate,
        memory_clock_rate=properties.memoryClockRate,
        pci=(properties.pciDomainID, properties.pciBusID, properties.pciDeviceID),
        uuid=_uuid(properties.uuid),
        integrated=bool(properties.integrated),
        managed_memory=bool(properties.managedMemory),
        concurrent_kernels=bool(properties.concurrentKernels),
        cooperative_launch=bool(properties.cooperativeLaunch),
        max_threads_along=_MOST_THREADS_ALONG,
    )


def read_attribute(calls: Calls, device: int, name: str) -> int:
    """One attribute of *device*; 0 where hip-python or the runtime does not know it."""
    number = getattr(calls.hip.hipDeviceAttribute_t, f"hipDeviceAttribute{name}", None)
    if number is None:
        return 0
    value = ctypes.c_int()
    code = calls.hipDeviceGetAttribute(ctypes.byref(value), int(number), device)
    if code == INVALID_VALUE:
        calls.hipGetLastError()
        return 0
    if code:
        raise calls.error("hipDeviceGetAttribute", code)
    return value.value


def _text(value: bytes | str) -> str:
    """A name; hip-python gives bytes before 10.0."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _three(values: Any) -> tuple[int, int, int]:
    x, y, z = values
    return int(x), int(y), int(z)


def _uuid(structure: Any) -> str:
    """The runtime fills in 16 letters, which ROCm's tools show behind ``GPU-``."""
    raw = ctypes.string_at(structure.as_c_void_p().value, _UUID_BYTES)
    letters = raw.rstrip(b"\0")
    return f"GPU-{letters.decode()}" if letters.isalnum() else raw.hex()
