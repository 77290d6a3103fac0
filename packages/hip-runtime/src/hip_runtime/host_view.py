"""NumPy arrays over memory that the host can use."""

from __future__ import annotations

from typing import Any

import numpy as np

from hip_runtime.copying import HostArray
from hip_runtime.layout import Layout
from hip_runtime.memory import Buffer


class _HostMemory:
    """Keeps a buffer alive for the NumPy array over it."""

    def __init__(self, layout: Layout, itemsize: int, buffer: Buffer, address: int, readonly: bool) -> None:
        self.buffer = buffer
        self.__array_interface__ = {
            "version": 3,
            "shape": layout.shape,
            "strides": layout.strides,
            "typestr": f"|V{itemsize}",
            "data": (address, readonly),
        }


def view_memory(
    layout: Layout, dtype: np.dtype[Any], buffer: Buffer, address: int, *, readonly: bool = False
) -> HostArray:
    """The elements that lie from *address* on in *buffer*, which the array keeps alive."""
    return np.asarray(_HostMemory(layout, dtype.itemsize, buffer, address, readonly)).view(dtype)
