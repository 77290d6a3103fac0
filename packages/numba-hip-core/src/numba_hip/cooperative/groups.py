"""Groups of threads that compute something together: the block, or each of its waves.

Everything else of this package is written once for both, in terms of what a `Group` says.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numba_hip.cooperative.arguments import Extents
from numba_hip.cooperative.operators import kept
from numba_hip.decorators import jit
from numba_hip.language import warp as warp_operations
from numba_hip.language.untyped_names import blockDim, syncthreads, syncwarp, threadIdx

# What this means in a kernel, a type checker cannot know.
warp: Any = warp_operations


class Group(NamedTuple):
    """Device functions of nothing, but for `origin`, and how many threads there is memory for."""

    rank: Any
    """The number of this thread in its group."""

    size: Any
    """How many threads the group has."""

    sync: Any
    """Wait for the other threads of the group, and see what they wrote to shared memory."""

    origin: Any
    """A function of a number: where the group's memory begins, if each thread has that many places."""

    threads: int
    """Threads of the block."""

    is_wave: bool


@jit(device=True)
def linear_rank():  # type: ignore[no-untyped-def]  # for kernels alone, as all of these
    """The number of this thread in its block; the first axis is the fastest."""
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)


@jit(device=True)
def block_size():  # type: ignore[no-untyped-def]
    """The threads of the block."""
    return blockDim.x * blockDim.y * blockDim.z


@kept
def rank_in(extents: Extents) -> Any:
    """A device function: the number of a thread in a block whose shape is a constant. Raises `ValueError` in a block
    of another size, whose threads would share memory that there is not."""
    threads = math.prod(extents)
    linear = _linear_in(extents)
    message = f"hip.block and hip.wave: this was made with threads_per_block={extents}, and the launch has other blocks"

    @jit(device=True)
    def rank():  # type: ignore[no-untyped-def]
        if block_size() != threads:
            raise ValueError(message)
        return linear()

    return rank


def _linear_in(extents: Extents) -> Any:
    x = extents[0]
    if len(extents) == 1:
        return linear_rank
    if len(extents) == 2:
        return jit(device=True)(lambda: threadIdx.x + x * threadIdx.y)
    y = extents[1]
    return jit(device=True)(lambda: threadIdx.x + x * (threadIdx.y + y * threadIdx.z))


@kept
def block_group(extents: Extents) -> Group:
    """The threads of a block of the shape *extents*."""
    threads = math.prod(extents)
    size = jit(device=True)(lambda: threads)
    wait = jit(device=True)(lambda: syncthreads())
    origin = jit(device=True)(lambda each: 0)
    return Group(rank_in(extents), size, wait, origin, threads, False)


@kept
def wave_group(extents: Extents) -> Group:
    """The lanes of a wave, in a block of the shape *extents*: fewer in the last one, if the block is no multiple."""
    threads = math.prod(extents)
    rank_in_block = rank_in(extents)

    @jit(device=True)
    def rank():  # type: ignore[no-untyped-def]
        rank_in_block()
        return warp.laneid

    @jit(device=True)
    def size():  # type: ignore[no-untyped-def]
        return min(threads - (rank_in_block() - warp.laneid), warp.warpsize)

    wait = jit(device=True)(lambda: syncwarp())
    origin = jit(device=True)(lambda each: (rank_in_block() - warp.laneid) * each)
    return Group(rank, size, wait, origin, threads, True)
