"""Launches of kernels with grid barriers: memory for what blocks keep, and blocks that wait at several barriers."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np

from hip_runtime.driver import Dim3
from hip_runtime.drivers.cpu.abi.fault_codes import block_index
from hip_runtime.drivers.cpu.abi.grid_context import ALIGNMENT, FINISHED
from hip_runtime.drivers.cpu.object_code.program import Program
from hip_runtime.errors import BarrierDivergenceError, OutOfDeviceMemoryError

_WORD = struct.Struct("<q")


def run_with_contexts(
    dispatch: Callable[..., int | None], kernel: str, program: Program, arguments: bytes, grid: Dim3, memory: int
) -> int | None:
    """Run a grid, by *dispatch*, with a context for each block. Returns what *dispatch* returns: a fault, or nothing.

    *memory* is the device's total memory, for the error if it is too small. Raises `BarrierDivergenceError` if blocks
    wait at different grid barriers.
    """
    blocks = grid[0] * grid[1] * grid[2]
    word_bytes = -(-4 * blocks // ALIGNMENT) * ALIGNMENT
    nbytes = word_bytes + blocks * program.context_bytes
    try:
        contexts = np.zeros(nbytes + ALIGNMENT, np.uint8)
    except MemoryError:
        raise OutOfDeviceMemoryError(
            nbytes, 0, memory, "a grid barrier needs memory for all blocks of the grid; launch fewer or smaller ones"
        ) from None
    start = -contexts.ctypes.data % ALIGNMENT
    contexts[start + 4 * blocks : start + word_bytes].view(np.int8)[:] = FINISHED  # behind the last block
    arguments += _WORD.pack(contexts.ctypes.data + start)
    fault = dispatch(program.entry, arguments, *grid)
    if fault:
        return fault
    waiting = contexts[start : start + 4 * blocks].view(np.int32)
    places = np.unique(waiting[waiting != FINISHED])
    if places.size == 0:
        return None
    here, there = (int(place) - 1 for place in places[:2])
    number = int(np.flatnonzero(waiting == places[1])[0])
    raise BarrierDivergenceError(
        kernel, 0, block_index(number, grid), (0, 0, 0), (program.locations[here], program.locations[there])
    )
