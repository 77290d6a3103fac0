"""``Device`` of ``numba.cuda.cudadrv.driver``, and the module's functions for devices and versions."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any
from uuid import UUID

import hip_runtime
from hip_runtime import Buffer
from hip_runtime.device import active_device
from hip_runtime.errors import UnknownDeviceError
from numba_hip.host.contexts import Context
from numba_hip.host.memory_pointers import BufferMemory
from numba_hip_cuda.standin_classes import Standin

TOOLKIT = (13, 0)
"""The CUDA release that programs see: the newest one whose interface numba-cuda 0.30 follows."""

SUPPORTED_TOOLKIT_MAJOR_VERSIONS = (12, 13)
"""The releases that numba-cuda 0.30 supports."""

MIN_REQUIRED_CC = (3, 5)
"""The lowest compute capability that numba-cuda supports; every device reports a higher one."""

CU_STREAM_DEFAULT = 0
"""The handle of the default stream."""

SUPPORTS_IPC = os.name == "posix"
"""Whether memory can be shared between processes by handles. A device may still not support it."""

ERROR_MAP = {
    0: "CUDA_SUCCESS",
    1: "CUDA_ERROR_INVALID_VALUE",
    2: "CUDA_ERROR_OUT_OF_MEMORY",
    3: "CUDA_ERROR_NOT_INITIALIZED",
    4: "CUDA_ERROR_DEINITIALIZED",
    100: "CUDA_ERROR_NO_DEVICE",
    101: "CUDA_ERROR_INVALID_DEVICE",
    200: "CUDA_ERROR_INVALID_IMAGE",
    201: "CUDA_ERROR_INVALID_CONTEXT",
    205: "CUDA_ERROR_MAP_FAILED",
    209: "CUDA_ERROR_NO_BINARY_FOR_GPU",
    217: "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
    301: "CUDA_ERROR_FILE_NOT_FOUND",
    302: "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND",
    303: "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED",
    304: "CUDA_ERROR_OPERATING_SYSTEM",
    400: "CUDA_ERROR_INVALID_HANDLE",
    401: "CUDA_ERROR_ILLEGAL_STATE",
    500: "CUDA_ERROR_NOT_FOUND",
    600: "CUDA_ERROR_NOT_READY",
    700: "CUDA_ERROR_ILLEGAL_ADDRESS",
    701: "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
    702: "CUDA_ERROR_LAUNCH_TIMEOUT",
    704: "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
    705: "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED",
    709: "CUDA_ERROR_CONTEXT_IS_DESTROYED",
    710: "CUDA_ERROR_ASSERT",
    712: "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
    713: "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
    719: "CUDA_ERROR_LAUNCH_FAILED",
    720: "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
    801: "CUDA_ERROR_NOT_SUPPORTED",
    900: "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
    901: "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
    902: "CUDA_ERROR_STREAM_CAPTURE_MERGE",
    903: "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
    904: "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
    905: "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
    906: "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
    907: "CUDA_ERROR_CAPTURED_EVENT",
    999: "CUDA_ERROR_UNKNOWN",
}
"""The meaning of the numbers in the ``code`` of errors, by CUDA's names. HIP uses the same numbers."""


class Device(metaclass=Standin):
    """The class of every device; ``Device(devnum)`` is the device with that number."""

    stands_for = (hip_runtime.Device,)

    def __new__(cls, devnum: int) -> hip_runtime.Device:  # type: ignore[misc]
        return hip_runtime.find_device(devnum)

    @classmethod
    def from_identity(cls, identity: dict[str, int]) -> hip_runtime.Device:
        """The device whose ``get_device_identity`` returned *identity*; otherwise
        `hip_runtime.errors.UnknownDeviceError`."""
        for device in hip_runtime.devices():
            if device.get_device_identity() == identity:
                return device
        raise UnknownDeviceError(f"there is no device {identity}; it may not be visible to this process")


_UUID_BYTES = 16


def cuda_uuid(device: hip_runtime.Device) -> str:
    """The UUID of *device* in the form that CUDA's have: ``GPU-`` and 32 hexadecimal digits in groups."""
    known = device.attributes.uuid.removeprefix("GPU-")
    if len(known) <= _UUID_BYTES:  # ROCm fills the bytes with letters
        return f"GPU-{UUID(bytes=known.encode().ljust(_UUID_BYTES, bytes(1)))}"
    return f"GPU-{UUID(known)}"


class ActiveContext:
    """``with driver.get_active_context() as active``: the device that this thread works with, if there is one."""

    devnum: int | None = None
    context_handle: Context | None = None

    def __enter__(self) -> ActiveContext:
        device = active_device()
        if device is not None:
            self.devnum, self.context_handle = device.id, Context(device)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def __bool__(self) -> bool:
        return self.context_handle is not None


class Runtime:
    """``numba.cuda.runtime``."""

    def get_version(self) -> tuple[int, int]:
        """`TOOLKIT`."""
        return TOOLKIT

    def is_supported_version(self) -> bool:
        """Whether `TOOLKIT` is a supported version. No toolkit is needed here."""
        return TOOLKIT[0] in SUPPORTED_TOOLKIT_MAJOR_VERSIONS


runtime = Runtime()
get_version = runtime.get_version


def initialize_all() -> None:
    """Make the target ready, which it is as soon as posing begins."""


def get_devptr_for_active_ctx(ptr: int) -> int:
    """The device's address of the host memory at *ptr*: the same address."""
    return ptr


def device_memory_depends(devmem: Any, *objs: Any) -> None:
    """Keep *objs* alive as long as the memory *devmem*: a `numba_hip.MemoryPointer`, as of arrays, or another object
    that can have attributes."""
    kept = devmem.buffer if isinstance(devmem, BufferMemory) else devmem
    if isinstance(kept, Buffer):  # of an array, which makes its pointers anew
        kept.owner = (kept.owner, *objs)
        return
    kept._depends_ = [*getattr(kept, "_depends_", ()), *objs]
