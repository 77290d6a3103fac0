"""Histograms: how many values fall into each bin."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba.core import types

from hip_runtime.array import StreamLike
from numba_hip.algorithms.operands import Operands, count_of, is_count
from numba_hip.cooperative.operators import KEPT
from numba_hip.decorators import jit
from numba_hip.errors import AlgorithmError
from numba_hip.language.untyped_names import atomic_add, blockDim, grid, gridsize, shared_array, syncthreads, threadIdx

THREADS = 256
MOST_BLOCKS = 1024
MOST_BINS_IN_LDS = 4096
"""More bins than that are counted in device memory, without a copy for each block."""


def histogram_even(
    source: Any, bins: int, lower: float, upper: float, *, out: Any = None, stream: StreamLike = None
) -> Any:
    """How many values of *source* are in each of *bins* equal parts from *lower* up to, and without, *upper* (int64).

    Values outside, and NaN, are not counted.
    """
    if not is_count(bins) or bins < 1:
        raise AlgorithmError(f"bins is {bins!r}; pass the number of bins, 1 or more")
    if not lower < upper or not np.isfinite([lower, upper]).all():
        raise AlgorithmError(f"lower is {lower!r} and upper {upper!r}; pass finite numbers, the lower one first")
    operands = Operands(stream)
    reader = operands.reader(source, "source")
    scale = bins / (float(upper) - float(lower))
    places = tuple(operands.add(number) for number in (float(lower), float(upper), scale, int(bins)))
    return _count(operands, reader, _even_bin(reader.read, *places), int(bins), out)


def histogram_range(source: Any, edges: Any, *, out: Any = None, stream: StreamLike = None) -> Any:
    """How many values of *source* are in each bin: from ``edges[k]`` up to, and without, ``edges[k + 1]`` (int64).

    *edges* ascend. Values outside, and NaN, are not counted.
    """
    operands = Operands(stream)
    reader, edge_reader = operands.reader(source, "source"), operands.reader(edges, "edges")
    marks = count_of(edge_reader, None, "edges")
    if marks < 2:
        raise AlgorithmError(f"edges has {marks} values; a bin needs two")
    find = _bin_between(reader.read, edge_reader.read, operands.add(marks))
    return _count(operands, reader, find, marks - 1, out)


def _count(operands: Operands, reader: Any, find: Any, bins: int, out: Any) -> Any:
    number = count_of(reader, None, "source")
    kind = operands.type_of(reader.read, "source")
    if isinstance(kind, (types.BaseTuple, types.Complex)):
        raise AlgorithmError(f"source has values of type {kind}; bins are for real numbers")
    target = operands.output(out, "out", bins, types.int64)
    target[:bins].fill(0, operands.stream)
    if number:
        blocks = min(-(-number // THREADS), MOST_BLOCKS)
        place = operands.add(target)
        kernel = _block_kernel(find, place, bins) if bins <= MOST_BINS_IN_LDS else _grid_kernel(find, place)
        kernel[blocks, THREADS, operands.launch_stream](number, *operands.leaves)
    return operands.finish(target, out)


@lru_cache(KEPT)
def _block_kernel(find: Any, place: int, bins: int) -> Any:
    """A kernel in which each block counts in its shared memory."""

    @jit
    def count_in_blocks(count, *leaves):  # type: ignore[no-untyped-def]  # for kernels alone, as all of these
        found = shared_array(bins, types.int32)
        for one in range(threadIdx.x, bins, blockDim.x):
            found[one] = 0
        syncthreads()
        for i in range(grid(1), count, gridsize(1)):
            chosen = find(leaves, i)
            if chosen >= 0:
                atomic_add(found, chosen, 1)
        syncthreads()
        for one in range(threadIdx.x, bins, blockDim.x):
            if found[one] > 0:
                atomic_add(leaves[place], one, types.int64(found[one]))

    return count_in_blocks


@lru_cache(KEPT)
def _grid_kernel(find: Any, place: int) -> Any:
    @jit
    def count_in_memory(count, *leaves):  # type: ignore[no-untyped-def]
        for i in range(grid(1), count, gridsize(1)):
            chosen = find(leaves, i)
            if chosen >= 0:
                atomic_add(leaves[place], chosen, types.int64(1))

    return count_in_memory


@lru_cache(KEPT)
def _even_bin(read: Any, lower: int, upper: int, scale: int, bins: int) -> Any:
    @jit(device=True)
    def find(leaves, i):  # type: ignore[no-untyped-def]
        value = types.float64(read(leaves, i))
        chosen = types.int64(-1)
        if leaves[lower] <= value < leaves[upper]:
            chosen = min(types.int64((value - leaves[lower]) * leaves[scale]), leaves[bins] - 1)
        return chosen

    return find


@lru_cache(KEPT)
def _bin_between(read: Any, read_edge: Any, marks: int) -> Any:
    @jit(device=True)
    def find(leaves, i):  # type: ignore[no-untyped-def]
        value = read(leaves, i)
        low, high = types.int64(0), types.int64(leaves[marks])
        while low < high:
            middle = (low + high) // 2
            if read_edge(leaves, middle) <= value:
                low = middle + 1
            else:
                high = middle
        return low - 1 if low < leaves[marks] and value == value else types.int64(-1)

    return find
