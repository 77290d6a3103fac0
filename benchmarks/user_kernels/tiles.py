"""Tiles and groups: cosines of rows by tiles that threads go through, the neighbours of short integers, cells by tiles
with a halo that are loaded by quotient, and the sum, the least and the greatest of groups."""

from __future__ import annotations

import math

import numpy as np
from numba import float32, hip, uint8

from benchmarks.user_kernels.definition import UserKernel, blocks, fast_peer, kernel, peer

THREADS = 256
SIDE = 16
HALO = SIDE + 2
PITCH = SIDE + 1


@hip.jit(fastmath=True)
def cosines(a, b, out):
    left = hip.shared.array((SIDE, PITCH), float32)
    right = hip.shared.array((SIDE, PITCH), float32)
    x, y = hip.threadIdx.x, hip.threadIdx.y
    i = hip.blockIdx.y * SIDE + y
    j = hip.blockIdx.x * SIDE + x
    other = hip.blockIdx.x * SIDE + y
    product = first = second = float32(0)
    for start in range(0, a.shape[1], SIDE):
        k = start + x
        left[y, x] = a[i, k] if i < a.shape[0] and k < a.shape[1] else float32(0)
        right[y, x] = b[other, k] if other < b.shape[0] and k < b.shape[1] else float32(0)
        hip.syncthreads()
        for q in range(SIDE):
            product += left[y, q] * right[x, q]
            first += left[y, q] * left[y, q]
            second += right[x, q] * right[x, q]
        hip.syncthreads()
    if i < a.shape[0] and j < b.shape[0]:
        out[i, j] = product / (math.sqrt(first) * math.sqrt(second))


@fast_peer
def cosines_by_loop(a, b, out):
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            product = first = second = np.float32(0)
            for k in range(a.shape[1]):
                product += a[i, k] * b[j, k]
                first += a[i, k] * a[i, k]
                second += b[j, k] * b[j, k]
            out[i, j] = product / (math.sqrt(first) * math.sqrt(second))


@kernel("cosines-of-rows")
def COSINES(quick: bool) -> UserKernel:
    """cosines of all pairs of rows, by tiles of 16 x 16 in shared memory whose rows threads go through"""
    random = np.random.default_rng(1001)
    rows, columns = (30, 20) if quick else (150, 100)
    a, b = (random.random((count, columns), np.float32) for count in (rows, rows - 20))
    return UserKernel(
        {"a": a, "b": b, "out": np.zeros((len(a), len(b)), np.float32)},
        ("out",),
        lambda on: cosines[(blocks(len(b), SIDE), blocks(len(a), SIDE)), (SIDE, SIDE)](on.a, on.b, on.out),
        lambda on: cosines_by_loop(on.a, on.b, on.out),
        rtol=1e-4,
        expected=lambda on: {
            "out": on.a @ on.b.T / np.linalg.norm(on.a, axis=1)[:, None] / np.linalg.norm(on.b, axis=1)
        },
    )


@hip.jit
def mean_of_neighbours(volume, out):
    z, y, x = hip.grid(3)
    depth, height, width = volume.shape
    if z < 1 or y < 1 or x < 1 or z >= depth - 1 or y >= height - 1 or x >= width - 1:
        return
    total = 0
    for a in range(-1, 2):
        for b in range(-1, 2):
            for c in range(-1, 2):
                total += volume[z + a, y + b, x + c]
    out[z, y, x] = total // 27


@peer
def mean_of_neighbours_by_loop(volume, out):
    depth, height, width = volume.shape
    for z in range(1, depth - 1):
        for y in range(1, height - 1):
            for x in range(1, width - 1):
                total = 0
                for a in range(-1, 2):
                    for b in range(-1, 2):
                        for c in range(-1, 2):
                            total += volume[z + a, y + b, x + c]
                out[z, y, x] = total // 27


@kernel("neighbours-of-shorts")
def NEIGHBOURS(quick: bool) -> UserKernel:
    """the mean of 27 int16, by blocks of 4 x 4 x 4"""
    shape = (6, 7, 9) if quick else (40, 44, 50)
    volume = np.random.default_rng(1002).integers(-1000, 1000, shape).astype(np.int16)
    grid = tuple(blocks(extent, 4) for extent in shape)
    return UserKernel(
        {"volume": volume, "out": np.zeros_like(volume)},
        ("out",),
        lambda on: mean_of_neighbours[grid, (4, 4, 4)](on.volume, on.out),
        lambda on: mean_of_neighbours_by_loop(on.volume, on.out),
    )


@hip.jit
def next_generation(cells, out):
    tile = hip.shared.array((HALO, HALO), uint8)
    x, y = hip.threadIdx.x, hip.threadIdx.y
    height, width = cells.shape
    for q in range(y * SIDE + x, HALO * HALO, SIDE * SIDE):
        i = hip.blockIdx.y * SIDE + q // HALO - 1
        j = hip.blockIdx.x * SIDE + q % HALO - 1
        tile[q // HALO, q % HALO] = cells[i, j] if 0 <= i < height and 0 <= j < width else 0
    hip.syncthreads()
    j, i = hip.grid(2)
    if j < width and i < height:
        around = 0
        for a in range(3):
            for b in range(3):
                around += tile[y + a, x + b]
        own = tile[y + 1, x + 1]
        out[i, j] = 1 if around == 3 or (around == 4 and own) else 0


@peer
def next_generation_by_loop(cells, out):
    height, width = cells.shape
    for i in range(height):
        for j in range(width):
            around = 0
            for a in range(max(i - 1, 0), min(i + 2, height)):
                for b in range(max(j - 1, 0), min(j + 2, width)):
                    around += cells[a, b]
            out[i, j] = 1 if around == 3 or (around == 4 and cells[i, j]) else 0


@kernel("halo-by-quotient")
def HALOS(quick: bool) -> UserKernel:
    """a generation of life on bytes, by tiles with a halo that threads load by quotient and remainder"""
    shape = (20, 35) if quick else (240, 320)
    cells = (np.random.default_rng(1003).random(shape) < 0.4).astype(np.uint8)
    grid = blocks(shape[1], SIDE), blocks(shape[0], SIDE)
    return UserKernel(
        {"cells": cells, "out": np.zeros_like(cells)},
        ("out",),
        lambda on: next_generation[grid, (SIDE, SIDE)](on.cells, on.out),
        lambda on: next_generation_by_loop(on.cells, on.out),
    )


@hip.jit
def summarise(groups, values, total, least, most):
    i = hip.grid(1)
    if i < values.size:
        hip.atomic.add(total, groups[i], values[i])
        hip.atomic.min(least, groups[i], values[i])
        hip.atomic.max(most, groups[i], values[i])


@peer
def summarise_by_loop(groups, values, total, least, most):
    for i in range(values.size):
        group = groups[i]
        total[group] += values[i]
        least[group] = min(least[group], values[i])
        most[group] = max(most[group], values[i])


@kernel("extremes-of-groups")
def GROUPS(quick: bool) -> UserKernel:
    """the sum, the least and the greatest float64 of 100 groups, by atomic operations"""
    random = np.random.default_rng(1004)
    count = 500 if quick else 100_000
    arrays = {
        "groups": random.integers(0, 100, count), "values": random.random(count), "total": np.zeros(100),
        "least": np.full(100, np.inf), "most": np.full(100, -np.inf),
    }  # fmt: skip
    results = ("total", "least", "most")
    return UserKernel(
        arrays,
        results,
        lambda on: summarise[blocks(count, THREADS), THREADS](on.groups, on.values, on.total, on.least, on.most),
        lambda on: summarise_by_loop(on.groups, on.values, on.total, on.least, on.most),
        rtol=1e-9,
        restored=results,
    )
