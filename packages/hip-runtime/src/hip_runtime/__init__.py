"""hip-runtime: devices, arrays, streams and launches on AMD GPUs and on the CPU device.

Importing this package neither looks for devices nor compiles anything.
"""

# before the imports below, which would fail without an explanation
from hip_runtime import _lower_layer as _lower_layer

# isort: split
from hip_runtime.array import DeviceArray
from hip_runtime.arrays import (
    device_array,
    device_array_like,
    full,
    managed_array,
    mapped_array,
    ones,
    pinned_array,
    to_device,
    zeros,
)
from hip_runtime.device import (
    Device,
    DeviceFallbackWarning,
    UnknownSettingWarning,
    current_device,
    devices,
    find_device,
    select_device,
)
from hip_runtime.dlpack import from_dlpack
from hip_runtime.driver import DeviceAttributes, Driver, MemoryKind
from hip_runtime.errors import (
    ArrayError,
    ArrayExtentError,
    ArrayIndexError,
    ArrayTypeError,
    CaptureError,
    CopyError,
    CopyTypeError,
    DeviceUnavailableError,
    EventError,
    HipRuntimeError,
    InvalidAddressError,
    InvalidHandleError,
    KernelFault,
    LaunchError,
    ModuleLoadError,
    OutOfDeviceMemoryError,
    SettingError,
    StreamError,
    SymbolError,
    UnknownDeviceError,
    UnsupportedError,
)
from hip_runtime.event import Event
from hip_runtime.graph import ExecutableGraph, Graph
from hip_runtime.interop import as_device_array, is_device_array
from hip_runtime.ipc import IpcArrayHandle, IpcHandle, open_ipc_array
from hip_runtime.launches import Launch
from hip_runtime.memory import Buffer, MemoryManager, PendingReleases, defer_release
from hip_runtime.module import Function, Module
from hip_runtime.stream import Stream

__version__ = "0.2.0"

__all__ = [
    "ArrayError",
    "ArrayExtentError",
    "ArrayIndexError",
    "ArrayTypeError",
    "Buffer",
    "CaptureError",
    "CopyError",
    "CopyTypeError",
    "Device",
    "DeviceArray",
    "DeviceAttributes",
    "DeviceFallbackWarning",
    "DeviceUnavailableError",
    "Driver",
    "Event",
    "EventError",
    "ExecutableGraph",
    "Function",
    "Graph",
    "HipRuntimeError",
    "InvalidAddressError",
    "InvalidHandleError",
    "IpcArrayHandle",
    "IpcHandle",
    "KernelFault",
    "Launch",
    "LaunchError",
    "MemoryKind",
    "MemoryManager",
    "Module",
    "ModuleLoadError",
    "OutOfDeviceMemoryError",
    "PendingReleases",
    "SettingError",
    "Stream",
    "StreamError",
    "SymbolError",
    "UnknownDeviceError",
    "UnknownSettingWarning",
    "UnsupportedError",
    "as_device_array",
    "current_device",
    "defer_release",
    "device_array",
    "device_array_like",
    "devices",
    "find_device",
    "from_dlpack",
    "full",
    "is_device_array",
    "managed_array",
    "mapped_array",
    "ones",
    "open_ipc_array",
    "pinned_array",
    "select_device",
    "to_device",
    "zeros",
]
