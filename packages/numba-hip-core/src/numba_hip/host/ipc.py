"""Memory handles for other processes, under Numba CUDA's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import hip_runtime
from hip_runtime import DeviceArray
from numba_hip.host.memory_pointers import BufferMemory, MemoryPointer

if TYPE_CHECKING:
    from numba_hip.host.contexts import Context


class IpcHandle(hip_runtime.IpcHandle):
    """Memory of one process that others can open; created by `Context.get_ipc_handle`, and pickled."""

    def open(self, context: Context) -> MemoryPointer:
        """The memory, for the device of *context*. Raises `hip_runtime.errors.ArrayError` if it is already open."""
        return BufferMemory(context, self.open_on(context.device))

    def open_direct(self, context: Context) -> MemoryPointer:
        """`open`: the device uses the memory where it is."""
        return self.open(context)

    def open_staged(self, context: Context) -> MemoryPointer:
        """`open`: in HIP, devices of one process access each other's memory directly if they can at all, without a
        copy."""
        return self.open(context)

    def open_array(self, context: Context, shape: Any, dtype: Any, strides: Any = None) -> DeviceArray:
        """The memory as an array. Raises `hip_runtime.errors.ArrayError` if it does not fit, or is already open."""
        return self.open_array_on(context.device, shape, dtype, strides)
