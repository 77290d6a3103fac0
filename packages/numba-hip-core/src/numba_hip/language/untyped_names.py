"""Names of the kernel language for the kernels and device functions of this package: what they mean there, a type
checker cannot know."""

from __future__ import annotations

from typing import Any

from numba_hip.language import atomic, bits, lane_operations, local, shared, sync, thread_index, warp

__all__ = ["atomic_add", "ballot", "blockDim", "blockIdx", "ffs", "grid", "gridsize", "lanemask_lt", "local_array",
           "popc", "same_in_wave", "shared_array", "syncthreads", "syncwarp", "threadIdx"]  # fmt: skip

atomic_add: Any = atomic.add
ballot: Any = warp.ballot
blockDim: Any = thread_index.blockDim
blockIdx: Any = thread_index.blockIdx
ffs: Any = bits.ffs
grid: Any = thread_index.grid
gridsize: Any = thread_index.gridsize
lanemask_lt: Any = warp.lanemask_lt
local_array: Any = local.array
popc: Any = bits.popc
same_in_wave: Any = lane_operations.same_in_wave
shared_array: Any = shared.array
syncthreads: Any = sync.syncthreads
syncwarp: Any = warp.syncwarp
threadIdx: Any = thread_index.threadIdx
