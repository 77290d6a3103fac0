"""Scans and what goes along rows: each result depends on those before it."""

from __future__ import annotations

import numpy as np
from numba import float32, hip, int32

from benchmarks.user_kernels.definition import Arrays, UserKernel, blocks, fast_peer, kernel, peer

THREADS = 256


def numbers(quick: bool, size: int = 200_000) -> np.ndarray:
    """Small int32, as many as whole blocks have threads."""
    count = (1000 if quick else size) // THREADS * THREADS
    return np.random.default_rng(141).integers(0, 9, count).astype(np.int32)


def sums_by_blocks(on: Arrays) -> dict[str, np.ndarray]:
    """Sums of all before in the block."""
    rows = on.values.reshape(-1, THREADS)
    return {"sums": (np.cumsum(rows, axis=1, dtype=np.int32) - rows).ravel()}


@hip.jit
def blelloch(values, sums):
    own = hip.shared.array(THREADS, int32)
    i, thread = hip.grid(1), hip.threadIdx.x
    own[thread] = values[i]
    step = 1
    while step < THREADS:
        hip.syncthreads()
        at = (thread + 1) * step * 2 - 1
        if at < THREADS:
            own[at] += own[at - step]
        step *= 2
    hip.syncthreads()
    if thread == 0:
        own[THREADS - 1] = 0
    step = THREADS // 2
    while step > 0:
        hip.syncthreads()
        at = (thread + 1) * step * 2 - 1
        if at < THREADS:
            left = own[at - step]
            own[at - step] = own[at]
            own[at] += left
        step //= 2
    hip.syncthreads()
    sums[i] = own[thread]


@peer
def block_sums_by_loop(values, sums):
    for start in range(0, values.size, THREADS):
        total = np.int32(0)
        for i in range(start, start + THREADS):
            sums[i] = total
            total += values[i]


@kernel("blelloch-scan")
def BLELLOCH(quick: bool) -> UserKernel:
    """sums of all before in blocks of 256, by a tree in shared memory"""
    values = numbers(quick)
    return UserKernel(
        {"values": values, "sums": np.zeros_like(values) - 1},
        ("sums",),
        lambda on: blelloch[values.size // THREADS, THREADS](on.values, on.sums),
        lambda on: block_sums_by_loop(on.values, on.sums),
        expected=sums_by_blocks,
    )


@hip.jit
def hillis_steele(values, sums):
    own = hip.shared.array((2, THREADS), int32)
    i, thread = hip.grid(1), hip.threadIdx.x
    side = 0
    own[0, thread] = values[i - 1] if thread > 0 else 0
    hip.syncthreads()
    step = 1
    while step < THREADS:
        if thread >= step:
            own[1 - side, thread] = own[side, thread] + own[side, thread - step]
        else:
            own[1 - side, thread] = own[side, thread]
        side = 1 - side
        hip.syncthreads()
        step *= 2
    sums[i] = own[side, thread]


@kernel("hillis-steele-scan")
def HILLIS_STEELE(quick: bool) -> UserKernel:
    """sums of all before in blocks of 256, by eight steps between two arrays in shared memory"""
    values = numbers(quick)
    return UserKernel(
        {"values": values, "sums": np.zeros_like(values) - 1},
        ("sums",),
        lambda on: hillis_steele[values.size // THREADS, THREADS](on.values, on.sums),
        lambda on: block_sums_by_loop(on.values, on.sums),
        expected=sums_by_blocks,
    )


@hip.jit
def prefix_by_waves(values, sums):
    of_waves = hip.shared.array(32, int32)
    i, thread = hip.grid(1), hip.threadIdx.x
    lane, wave = thread % hip.warpsize, thread // hip.warpsize
    value = values[i]
    total = value
    step = 1
    while step < hip.warpsize:
        other = hip.shfl_up_sync(0xFFFFFFFF, total, step)
        if lane >= step:
            total += other
        step *= 2
    if lane == hip.warpsize - 1:
        of_waves[wave] = total
    hip.syncthreads()
    for before in range(wave):
        total += of_waves[before]
    sums[i] = total - value


@kernel("prefix-by-waves")
def BY_WAVES(quick: bool) -> UserKernel:
    """sums of all before in blocks of 256, by shuffles in waves and sums of waves in shared memory"""
    values = numbers(quick)
    return UserKernel(
        {"values": values, "sums": np.zeros_like(values) - 1},
        ("sums",),
        lambda on: prefix_by_waves[values.size // THREADS, THREADS](on.values, on.sums),
        lambda on: block_sums_by_loop(on.values, on.sums),
        expected=sums_by_blocks,
    )


@hip.jit
def compact(values, limit, chosen, count):
    i = hip.grid(1)
    if i < values.size:
        value = values[i]
        if value > limit:
            place = hip.atomic.add(count, 0, 1)
            chosen[place] = value


@peer
def compact_by_loop(values, limit, chosen, count):
    place = 0
    for i in range(values.size):
        chosen[place] = values[i]
        place += values[i] > limit
    chosen[place:] = 0
    count[0] = place


@kernel("compaction")
def COMPACT(quick: bool) -> UserKernel:
    """numbers above a limit, half of them, at places that an atomic counter gives"""
    values = np.random.default_rng(142).random(1000 if quick else 500_000, np.float32)
    limit = np.float32(0.5)

    def chosen(on: Arrays) -> dict[str, np.ndarray]:
        found = on.values[on.values > limit]
        return {"count": np.array([found.size])}

    return UserKernel(
        {"values": values, "chosen": np.zeros(values.size + 1, np.float32), "count": np.zeros(1, np.int32)},
        ("count",),
        lambda on: compact[blocks(values.size, THREADS), THREADS](on.values, limit, on.chosen, on.count),
        lambda on: compact_by_loop(on.values, limit, on.chosen, on.count),
        restored=("count",),
        expected=chosen,
    )


@hip.jit
def running_maximum(matrix, result):
    row = hip.grid(1)
    if row < matrix.shape[0]:
        highest = matrix[row, 0]
        for j in range(matrix.shape[1]):
            highest = max(highest, matrix[row, j])
            result[row, j] = highest


@peer
def running_maximum_by_loop(matrix, result):
    for row in range(matrix.shape[0]):
        highest = matrix[row, 0]
        for j in range(matrix.shape[1]):
            highest = max(highest, matrix[row, j])
            result[row, j] = highest


@kernel("cumulative-maximum")
def MAXIMUM(quick: bool) -> UserKernel:
    """the highest so far along rows of 200 float32, a thread for each row"""
    matrix = np.random.default_rng(143).random((50 if quick else 1500, 200), np.float32)
    return UserKernel(
        {"matrix": matrix, "result": np.zeros_like(matrix)},
        ("result",),
        lambda on: running_maximum[blocks(matrix.shape[0], 64), 64](on.matrix, on.result),
        lambda on: running_maximum_by_loop(on.matrix, on.result),
        expected=lambda on: {"result": np.maximum.accumulate(on.matrix, axis=1)},
    )


@hip.jit(fastmath=True)
def moving_average(values, means):
    i = hip.grid(1)
    if i < means.size:
        total = float32(0)
        for j in range(16):
            total += values[i + j]
        means[i] = total / float32(16)


@fast_peer
def moving_average_by_loop(values, means):
    for i in range(means.size):
        total = float32(0)
        for j in range(16):
            total += values[i + j]
        means[i] = total * float32(1 / 16)


@kernel("moving-average")
def AVERAGE(quick: bool) -> UserKernel:
    """means of 16 neighbours, float32"""
    values = np.random.default_rng(144).random(1000 if quick else 400_000, np.float32)
    return UserKernel(
        {"values": values, "means": np.zeros(values.size - 15, np.float32)},
        ("means",),
        lambda on: moving_average[blocks(values.size - 15, THREADS), THREADS](on.values, on.means),
        lambda on: moving_average_by_loop(on.values, on.means),
        rtol=1e-4,
    )
