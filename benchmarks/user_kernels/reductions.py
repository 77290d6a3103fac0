"""Sums and maxima by blocks, and loops in steps of the grid."""

from __future__ import annotations

import numpy as np
from numba import float32, float64, hip, int32

from benchmarks.user_kernels.definition import Arrays, UserKernel, fast_peer, kernel, peer

THREADS = 256
BLOCKS = 64


@hip.jit(fastmath=True)
def dot_f32(left, right, total):
    part = hip.shared.array(THREADS, float32)
    thread = hip.threadIdx.x
    own = float32(0)
    for i in range(hip.grid(1), left.size, hip.gridsize(1)):
        own += left[i] * right[i]
    part[thread] = own
    hip.syncthreads()
    half = THREADS // 2
    while half > 0:
        if thread < half:
            part[thread] += part[thread + half]
        hip.syncthreads()
        half //= 2
    if thread == 0:
        hip.atomic.add(total, 0, part[0])


@hip.jit(fastmath=True)
def dot_f64(left, right, total):
    part = hip.shared.array(THREADS, float64)
    thread = hip.threadIdx.x
    own = 0.0
    for i in range(hip.grid(1), left.size, hip.gridsize(1)):
        own += left[i] * right[i]
    part[thread] = own
    hip.syncthreads()
    half = THREADS // 2
    while half > 0:
        if thread < half:
            part[thread] += part[thread + half]
        hip.syncthreads()
        half //= 2
    if thread == 0:
        hip.atomic.add(total, 0, part[0])


@fast_peer
def dot_by_loop(left, right, total):
    own = left.dtype.type(0)
    for i in range(left.size):
        own += left[i] * right[i]
    total[0] = own


def vectors(quick: bool, kind: type[np.floating]) -> dict[str, np.ndarray]:
    """Two vectors that caches hold, and a place for a total."""
    left, right = np.random.default_rng(161).random((2, 5000 if quick else 500_000)).astype(kind)
    return {"left": left, "right": right, "total": np.zeros(1, kind)}


@kernel("dot-f32")
def DOT_F32(quick: bool) -> UserKernel:
    """a product of vectors of float32 in steps of the grid, a tree in shared memory and an atomic addition"""
    return UserKernel(
        vectors(quick, np.float32),
        ("total",),
        lambda on: dot_f32[BLOCKS, THREADS](on.left, on.right, on.total),
        lambda on: dot_by_loop(on.left, on.right, on.total),
        rtol=1e-3,
        restored=("total",),
        expected=lambda on: {"total": np.array([np.dot(on.left.astype(np.float64), on.right)])},
    )


@kernel("dot-f64")
def DOT_F64(quick: bool) -> UserKernel:
    """the same of float64"""
    return UserKernel(
        vectors(quick, np.float64),
        ("total",),
        lambda on: dot_f64[BLOCKS, THREADS](on.left, on.right, on.total),
        lambda on: dot_by_loop(on.left, on.right, on.total),
        rtol=1e-9,
        restored=("total",),
        expected=lambda on: {"total": np.array([np.dot(on.left, on.right)])},
    )


@hip.jit
def saxpy(a, x, y, z):
    for i in range(hip.grid(1), x.size, hip.gridsize(1)):
        z[i] = a * x[i] + y[i]


@peer
def saxpy_by_loop(a, x, y, z):
    for i in range(x.size):
        z[i] = a * x[i] + y[i]


@kernel("saxpy-grid-stride")
def SAXPY(quick: bool) -> UserKernel:
    """z = a x + y of float32 in steps of the grid"""
    x, y = np.random.default_rng(162).random((2, 5000 if quick else 1_000_000), np.float32)
    a = np.float32(2.5)
    return UserKernel(
        {"x": x, "y": y, "z": np.zeros_like(x)},
        ("z",),
        lambda on: saxpy[BLOCKS, THREADS](a, on.x, on.y, on.z),
        lambda on: saxpy_by_loop(a, on.x, on.y, on.z),
        rtol=1e-5,
    )


@hip.jit
def argmax(values, best, places):
    highest = hip.shared.array(THREADS, float32)
    where = hip.shared.array(THREADS, int32)
    thread = hip.threadIdx.x
    value, place = float32(-np.inf), -1
    for i in range(hip.grid(1), values.size, hip.gridsize(1)):
        if values[i] > value:
            value, place = values[i], i
    highest[thread] = value
    where[thread] = place
    hip.syncthreads()
    half = THREADS // 2
    while half > 0:
        if thread < half and highest[thread + half] > highest[thread]:
            highest[thread] = highest[thread + half]
            where[thread] = where[thread + half]
        hip.syncthreads()
        half //= 2
    if thread == 0:
        best[hip.blockIdx.x] = highest[0]
        places[hip.blockIdx.x] = where[0]


@peer
def argmax_by_loop(values, best, places):
    highest, where = values[0], 0
    for i in range(values.size):
        if values[i] > highest:
            highest, where = values[i], i
    best[0], places[0] = highest, where


@kernel("argmax-blocks")
def ARGMAX(quick: bool) -> UserKernel:
    """the place of the largest float32: in steps of the grid, by a tree in shared memory, then on the host"""
    values = np.random.default_rng(163).random(5000 if quick else 500_000, np.float32)

    def launch(on: Arrays) -> None:
        argmax[BLOCKS, THREADS](on.values, on.best, on.places)
        best, places = on.best.copy_to_host(), on.places.copy_to_host()
        on.place.copy_to_device(places[best.argmax() : best.argmax() + 1])

    def loop(on: Arrays) -> None:
        argmax_by_loop(on.values, on.best, on.place)

    arrays = {
        "best": np.zeros(BLOCKS, np.float32),
        "places": np.zeros(BLOCKS, np.int32),
        "place": np.zeros(1, np.int32),
    }
    return UserKernel(
        {"values": values, **arrays},
        ("place",),
        launch,
        loop,
        expected=lambda on: {"place": np.array([on.values.argmax()])},
    )


@hip.jit
def add_2d(left, right, total):
    x, y = hip.grid(2)
    step_x, step_y = hip.gridsize(2)
    for i in range(y, left.shape[0], step_y):
        for j in range(x, left.shape[1], step_x):
            total[i, j] = left[i, j] * right[i, j] + left[i, j]


@peer
def add_2d_by_loop(left, right, total):
    for i in range(left.shape[0]):
        for j in range(left.shape[1]):
            total[i, j] = left[i, j] * right[i, j] + left[i, j]


@kernel("grid-stride-2d")
def ADD_2D(quick: bool) -> UserKernel:
    """matrices in steps of a grid of 8 x 8 blocks of 16 x 16"""
    left, right = np.random.default_rng(164).random((2, 60, 70) if quick else (2, 700, 800), np.float32)
    return UserKernel(
        {"left": left, "right": right, "total": np.zeros_like(left)},
        ("total",),
        lambda on: add_2d[(8, 8), (16, 16)](on.left, on.right, on.total),
        lambda on: add_2d_by_loop(on.left, on.right, on.total),
        rtol=1e-5,
    )


@hip.jit
def products_by_waves(starts, counts, matrix, vector, out):
    b = hip.blockIdx.x
    wave, lane = hip.threadIdx.x // 64, hip.threadIdx.x % 64
    first, count = starts[b], counts[b]
    hip.syncthreads()
    for r in range(wave, count, 2):
        total = 0.0
        for k in range(lane, vector.size, 64):
            total += matrix[first + r, k] * vector[k]
        for step in (32, 16, 8, 4, 2, 1):
            total += hip.shfl_down_sync(0xFFFFFFFFFFFFFFFF, total, step)
        if lane == 0:
            out[first + r] = total


@peer
def products_by_loop(starts, counts, matrix, vector, out):
    for b in range(starts.size):
        for r in range(starts[b], starts[b] + counts[b]):
            total = 0.0
            for k in range(vector.size):
                total += matrix[r, k] * vector[k]
            out[r] = total


@kernel("rows-by-waves")
def BY_WAVES(quick: bool) -> UserKernel:
    """products of rows of 160 float64 and a vector: some rows for each block, a wave of 64 threads for a row"""
    generator = np.random.default_rng(909)
    counts = generator.integers(1, 13, 20 if quick else 300)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    matrix, vector = generator.random((counts.sum(), 160)), generator.random(160)
    return UserKernel(
        {"starts": starts, "counts": counts, "matrix": matrix, "vector": vector, "out": np.zeros(len(matrix))},
        ("out",),
        lambda on: products_by_waves[counts.size, 128](on.starts, on.counts, on.matrix, on.vector, on.out),
        lambda on: products_by_loop(on.starts, on.counts, on.matrix, on.vector, on.out),
        rtol=1e-12,
        expected=lambda on: {"out": on.matrix @ on.vector},
    )
