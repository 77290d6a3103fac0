"""Numba CUDA's names for the attributes of a device array; programs that pass addresses on use them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from hip_runtime.memory import Buffer

if TYPE_CHECKING:
    from hip_runtime.array import DeviceArray
    from hip_runtime.layout import Layout


class ArrayNames:
    """The part of `DeviceArray` that has Numba CUDA's names."""

    __slots__ = ()

    address: int
    buffer: Buffer
    layout: Layout

    numba_type: ClassVar[Callable[[Any], Any] | None] = None
    """Set by a layer above that compiles with Numba: gives the Numba type of an array."""

    @property
    def _numba_type_(self) -> Any:
        """The attribute that Numba reads to type an object; absent if no layer above registered types."""
        if ArrayNames.numba_type is None:
            raise AttributeError("_numba_type_")
        return ArrayNames.numba_type(self)

    memory_pointer: ClassVar[Callable[[Any], Any] | None] = None
    """Set by a layer above that has pointers to memory: gives that of an array."""

    __cuda_memory__ = True
    __cuda_ndarray__ = True

    @property
    def memory(self) -> Buffer:
        """The memory of this array alone, from its first byte to its last; it keeps the whole allocation alive."""
        first, end = self.layout.extent
        start = self.address + first - self.buffer.address
        return self.buffer.view(start, start + end - first)

    @property
    def gpu_data(self) -> Any:
        """`memory`, or with a layer above the `numba_hip.MemoryPointer` to it."""
        return self.memory if ArrayNames.memory_pointer is None else ArrayNames.memory_pointer(self)

    def as_cuda_arg(self) -> Any:
        """``gpu_data``."""
        return self.gpu_data

    @property
    def alloc_size(self) -> int:
        """Bytes from the first to the last element, with what lies between them."""
        first, end = self.layout.extent
        return end - first

    @property
    def device_ctypes_pointer(self) -> ctypes.c_size_t:
        """The address of element (0, ..., 0) as an integer of ctypes."""
        return ctypes.c_size_t(self.address)


def set_numba_type(give: Callable[[DeviceArray], Any]) -> None:
    """Register *give* as the function that returns the Numba type of device arrays."""
    ArrayNames.numba_type = staticmethod(give)


def set_memory_pointer(give: Callable[[DeviceArray], Any]) -> None:
    """Register *give* as the function that returns ``gpu_data`` of device arrays."""
    ArrayNames.memory_pointer = staticmethod(give)
