"""Handles of memory for other processes, in Numba CUDA's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import hip_runtime
from hip_runtime import Buffer, DeviceArray

if TYPE_CHECKING:
    from numba_hip.host.contexts import Context


class IpcHandle(hip_runtime.IpcHandle):
    """Memory of one process that others open; made by `Context.get_ipc_handle`, and pickled."""

    def open(self, context: Context) -> Buffer:
        """The memory, for the device of *context*. `hip_runtime.errors.ArrayError` where it is open already."""
        return self.open_on(context.device)

    def open_direct(self, context: Context) -> Buffer:
        """`open`: the device uses the memory where it is."""
        return self.open(context)

    def open_staged(self, context: Context) -> Buffer:
        """`open`: HIP lets devices of one process reach each other's memory where they can at all, without a copy."""
        return self.open(context)

    def open_array(self, context: Context, shape: Any, dtype: Any, strides: Any = None) -> DeviceArray:
        """The memory as an array; `hip_runtime.errors.ArrayError` where it does not fit, or is open already."""
        return self.open_array_on(context.device, shape, dtype, strides)
