"""Stands for ``_utils.device_array``: arrays that say nothing of themselves but ``__cuda_array_interface__``."""

from __future__ import annotations

from typing import Any

import numpy as np

import numba_hip as hip
from hip_runtime import DeviceArray as Memory

Host = np.ndarray[Any, Any]


def get_compute_capability() -> tuple[int, int]:
    """That of the current device."""
    major, minor = hip.get_current_device().compute_capability
    return major, minor


class DeviceArray:
    """An array of the device without a shape that Python could ask for."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @classmethod
    def empty(cls, shape: Any, dtype: Any, *, order: str = "C", device: Any = None, stream: Any = None) -> DeviceArray:
        """One that has not been written."""
        return cls(hip.device_array(shape, np.dtype(dtype), order=order))

    @classmethod
    def from_numpy(cls, array: Host, *, device: Any = None, stream: Any = None) -> DeviceArray:
        """A copy of *array*, in its order if it has one."""
        host = np.asarray(array)
        return cls(hip.to_device(host if host.flags.forc else np.ascontiguousarray(host)))

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self._memory.nbytes

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its elements."""
        return self._memory.dtype

    def __len__(self) -> int:
        return len(self._memory)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        memory = self._memory
        interface = {
            "data": (memory.address if memory.size else 0, False),
            "shape": memory.shape,
            "strides": None if memory.is_c_contiguous() else memory.strides,
            "typestr": memory.dtype.str,
            "version": 3,
        }
        return interface if memory.dtype.fields is None else {**interface, "descr": memory.dtype.descr}

    def copy_from_host(self, array: Host, *, stream: Any = None) -> None:
        """Replace all elements."""
        self._memory.copy_to_device(np.asarray(array))

    def copy_to_host(self, *, stream: Any = None) -> Host:
        """A copy, once the device has done all that it was given."""
        hip.synchronize()
        found: Host = self._memory.copy_to_host()
        return found
