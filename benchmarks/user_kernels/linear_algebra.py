"""Matrices: products by tiles, transposes, and steps of algorithms that are launched again and again."""

from __future__ import annotations

import numpy as np
from numba import float32, hip

from benchmarks.user_kernels.definition import Arrays, UserKernel, blocks, fast_peer, kernel, peer

TILE = 16


def random_matrices(count: int, size: int) -> tuple[np.ndarray, ...]:
    """Square matrices of float32."""
    return tuple(np.random.default_rng(101).random((count, size, size), np.float32))


@hip.jit(fastmath=True)
def tiled_product(a, b, c):
    left = hip.shared.array((TILE, TILE), float32)
    right = hip.shared.array((TILE, TILE), float32)
    x, y = hip.grid(2)
    tx, ty = hip.threadIdx.x, hip.threadIdx.y
    total = float32(0)
    for tile in range((a.shape[1] + TILE - 1) // TILE):
        left[ty, tx] = 0
        right[ty, tx] = 0
        if y < a.shape[0] and tx + tile * TILE < a.shape[1]:
            left[ty, tx] = a[y, tx + tile * TILE]
        if x < b.shape[1] and ty + tile * TILE < b.shape[0]:
            right[ty, tx] = b[ty + tile * TILE, x]
        hip.syncthreads()
        for k in range(TILE):
            total += left[ty, k] * right[k, tx]
        hip.syncthreads()
    if y < c.shape[0] and x < c.shape[1]:
        c[y, x] = total


@fast_peer
def product_by_loop(a, b, c):
    c[:] = 0
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            factor = a[i, k]
            for j in range(b.shape[1]):
                c[i, j] += factor * b[k, j]


@kernel("matmul-tiles")
def MATMUL(quick: bool) -> UserKernel:
    """a product of matrices through tiles of 16 x 16 in shared memory, filled with zeros behind the edges"""
    size = 30 if quick else 200
    a, b = random_matrices(2, size)
    return UserKernel(
        {"a": a, "b": b, "c": np.zeros_like(a)},
        ("c",),
        lambda on: tiled_product[(blocks(size, TILE), blocks(size, TILE)), (TILE, TILE)](on.a, on.b, on.c),
        lambda on: product_by_loop(on.a, on.b, on.c),
        rtol=1e-4,
    )


@hip.jit(fastmath=True)
def register_tiled_product(a, b, c):
    left = hip.shared.array((64, TILE), float32)
    right = hip.shared.array((TILE, 64), float32)
    own = hip.local.array((4, 4), float32)
    tx, ty = hip.threadIdx.x, hip.threadIdx.y
    thread = ty * 16 + tx
    row, column = hip.blockIdx.y * 64, hip.blockIdx.x * 64
    for i in range(4):
        for j in range(4):
            own[i, j] = 0
    for tile in range(0, a.shape[1], TILE):
        for part in range(thread, 64 * TILE, 256):
            left[part // TILE, part % TILE] = a[row + part // TILE, tile + part % TILE]
            right[part // 64, part % 64] = b[tile + part // 64, column + part % 64]
        hip.syncthreads()
        for k in range(TILE):
            for i in range(4):
                for j in range(4):
                    own[i, j] += left[ty * 4 + i, k] * right[k, tx * 4 + j]
        hip.syncthreads()
    for i in range(4):
        for j in range(4):
            c[row + ty * 4 + i, column + tx * 4 + j] = own[i, j]


@kernel("matmul-registers")
def REGISTERS(quick: bool) -> UserKernel:
    """a product of matrices, 4 x 4 elements for each thread in a private array, tiles of 64 x 64 in shared memory"""
    size = 64 if quick else 256
    a, b = random_matrices(2, size)
    return UserKernel(
        {"a": a, "b": b, "c": np.zeros_like(a)},
        ("c",),
        lambda on: register_tiled_product[(size // 64, size // 64), (16, 16)](on.a, on.b, on.c),
        lambda on: product_by_loop(on.a, on.b, on.c),
        rtol=1e-4,
    )


@hip.jit
def transpose(matrix, turned):
    tile = hip.shared.array((32, 33), float32)
    tx, ty = hip.threadIdx.x, hip.threadIdx.y
    x, y = hip.blockIdx.x * 32 + tx, hip.blockIdx.y * 32 + ty
    for step in range(0, 32, 8):
        if x < matrix.shape[1] and y + step < matrix.shape[0]:
            tile[ty + step, tx] = matrix[y + step, x]
    hip.syncthreads()
    x, y = hip.blockIdx.y * 32 + tx, hip.blockIdx.x * 32 + ty
    for step in range(0, 32, 8):
        if x < turned.shape[1] and y + step < turned.shape[0]:
            turned[y + step, x] = tile[tx, ty + step]


@peer
def transpose_by_loop(matrix, turned):
    height, width = matrix.shape
    for top in range(0, height, 16):
        for left in range(0, width, 16):
            for x in range(left, min(left + 16, width)):
                for y in range(top, min(top + 16, height)):
                    turned[x, y] = matrix[y, x]


@kernel("transpose-tiles", opencl=True)
def TRANSPOSE(quick: bool) -> UserKernel:
    """a transpose through tiles of 32 x 33 in shared memory, four rows for each thread"""
    height, width = (50, 70) if quick else (600, 700)
    matrix = np.random.default_rng(102).random((height, width), np.float32)
    grid = (blocks(width, 32), blocks(height, 32))
    return UserKernel(
        {"matrix": matrix, "turned": np.zeros((width, height), np.float32)},
        ("turned",),
        lambda on: transpose[grid, (32, 8)](on.matrix, on.turned),
        lambda on: transpose_by_loop(on.matrix, on.turned),
    )


@hip.jit
def shortest_via(distances, k):
    j, i = hip.grid(2)
    if i < distances.shape[0] and j < distances.shape[1]:
        via = distances[i, k] + distances[k, j]
        if via < distances[i, j]:
            distances[i, j] = via


@peer
def shortest_via_by_loop(distances, k):
    for i in range(distances.shape[0]):
        first = distances[i, k]
        for j in range(distances.shape[1]):
            distances[i, j] = min(distances[i, j], first + distances[k, j])


@kernel("floyd-warshall", opencl=True)
def FLOYD(quick: bool) -> UserKernel:
    """four steps of Floyd and Warshall's shortest paths, each a launch"""
    size = 40 if quick else 400
    distances = np.random.default_rng(103).integers(1, 1000, (size, size)).astype(np.int32)
    np.fill_diagonal(distances, 0)

    def launch(on: Arrays) -> None:
        for k in range(4):
            shortest_via[(blocks(size, 16), blocks(size, 16)), (16, 16)](on.distances, k)

    def loops(on: Arrays) -> None:
        for k in range(4):
            shortest_via_by_loop(on.distances, k)

    return UserKernel({"distances": distances}, ("distances",), launch, loops, restored=("distances",))


@hip.jit
def eliminate(matrix, k):
    j, i = hip.grid(2)
    j += k + 1
    i += k + 1
    if i < matrix.shape[0] and j < matrix.shape[1]:
        matrix[i, j] -= matrix[i, k] / matrix[k, k] * matrix[k, j]


@peer
def eliminate_by_loop(matrix, k):
    for i in range(k + 1, matrix.shape[0]):
        factor = matrix[i, k] / matrix[k, k]
        for j in range(k + 1, matrix.shape[1]):
            matrix[i, j] -= factor * matrix[k, j]


@kernel("lu-step")
def LU(quick: bool) -> UserKernel:
    """four steps of an elimination, each a launch over what is left of the matrix, float64"""
    size = 40 if quick else 300
    matrix = np.random.default_rng(104).random((size, size)) + size * np.eye(size)

    def launch(on: Arrays) -> None:
        for k in range(4):
            rest = blocks(size - k - 1, 16)
            eliminate[(rest, rest), (16, 16)](on.matrix, k)

    def loops(on: Arrays) -> None:
        for k in range(4):
            eliminate_by_loop(on.matrix, k)

    return UserKernel({"matrix": matrix}, ("matrix",), launch, loops, rtol=1e-9, atol=1e-12, restored=("matrix",))
