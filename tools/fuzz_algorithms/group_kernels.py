"""Kernels around a function of ``hip.block`` or ``hip.wave``. All of them get two arrays, which they change, an array
for a result of each thread, and a number."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

import numba_hip as hip
from numba_hip import block


def items_kernel(apply: Any, items: int, threads: int, kinds: tuple[np.dtype[Any], np.dtype[Any]]) -> Any:
    """A kernel in which *apply* changes the *items* of each of *threads*, of both arrays, and returns a number."""
    first, second = kinds

    @hip.jit
    def kernel(x, y, results, number):  # type: ignore[no-untyped-def]  # for kernels alone, as all of these
        here = types.int64(hip.blockIdx.x) * threads + block.rank()
        keys, others = hip.local.array(items, first), hip.local.array(items, second)
        for k in range(items):
            keys[k], others[k] = x[here * items + k], y[here * items + k]
        results[here] = apply(keys, others, number)
        for k in range(items):
            x[here * items + k], y[here * items + k] = keys[k], others[k]

    return kernel


def transfer_kernel(load: Any, store: Any, items: int, threads: int, lanes: int, kind: np.dtype[Any]) -> Any:
    """A kernel in which each group of up to *lanes* threads loads its tile of x, as many items as the number says and 1
    for the others, and stores as many in y; x gets what threads have in between."""

    @hip.jit
    def kernel(x, y, results, number):  # type: ignore[no-untyped-def]
        here = types.int64(hip.blockIdx.x) * threads + block.rank()
        begin = (here - block.rank() % lanes) * items
        values = hip.local.array(items, kind)
        load(x[begin:], values, number, 1)
        store(y[begin:], values, number)
        hip.syncthreads()
        for k in range(items):
            x[here * items + k] = values[k]
        results[here] = 0

    return kernel


def histogram_kernel(count: Any, fill: Any, items: int, threads: int, bins: int, lanes: int) -> Any:
    """A kernel in which each group of up to *lanes* threads counts its items of x, integers, twice, in shared memory,
    for the first *bins* of its elements of y."""
    room = -(-threads // lanes) * bins

    @hip.jit
    def kernel(x, y, results, number):  # type: ignore[no-untyped-def]
        here = types.int64(hip.blockIdx.x) * threads + block.rank()
        group, rank = block.rank() // lanes, block.rank() % lanes
        values, shared = hip.local.array(items, np.int32), hip.shared.array(room, np.int32)
        for k in range(items):
            values[k] = x[here * items + k]
        found = shared[group * bins : (group + 1) * bins]
        fill(found)
        count(values, found)
        count(values, found)
        hip.syncthreads()
        for one in range(rank, bins, min(lanes, threads - group * lanes)):
            y[(here - rank) * items + one] = found[one]
        results[here] = 0

    return kernel
