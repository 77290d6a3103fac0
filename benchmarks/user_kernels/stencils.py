"""Stencils, with each of the usual ways to treat the edges."""

from __future__ import annotations

import numpy as np
from numba import float32, hip

from benchmarks.user_kernels.definition import UserKernel, blocks, kernel, peer

TILE = 16
WITH_HALO = TILE + 2


def square(quick: bool, name: str = "heat") -> dict[str, np.ndarray]:
    """A random square and a place for its next state."""
    size = 50 if quick else 500
    return {
        name: np.random.default_rng(61).random((size, size), np.float32),
        "after": np.zeros((size, size), np.float32),
    }


def tiles(array: np.ndarray) -> tuple[int, int]:
    """How many tiles cover *array*."""
    return blocks(array.shape[1], TILE), blocks(array.shape[0], TILE)


@hip.jit
def heat_2d(heat, after, rate):
    x, y = hip.grid(2)
    if x > 0 and x < heat.shape[1] - 1 and y > 0 and y < heat.shape[0] - 1:
        around = heat[y - 1, x] + heat[y + 1, x] + heat[y, x - 1] + heat[y, x + 1]
        after[y, x] = heat[y, x] + rate * (around - 4 * heat[y, x])


@peer
def heat_2d_by_loop(heat, after, rate):
    for y in range(1, heat.shape[0] - 1):
        for x in range(1, heat.shape[1] - 1):
            around = heat[y - 1, x] + heat[y + 1, x] + heat[y, x - 1] + heat[y, x + 1]
            after[y, x] = heat[y, x] + rate * (around - 4 * heat[y, x])


RATE = np.float32(0.1)


@kernel("heat-2d")
def HEAT_2D(quick: bool) -> UserKernel:
    """five points, inner elements only"""
    return UserKernel(
        square(quick),
        ("after",),
        lambda on: heat_2d[tiles(on.heat), (TILE, TILE)](on.heat, on.after, RATE),
        lambda on: heat_2d_by_loop(on.heat, on.after, RATE),
        rtol=1e-4,
        atol=1e-6,
    )


@hip.jit
def heat_3d(heat, after, rate):
    x, y, z = hip.grid(3)
    nz, ny, nx = heat.shape
    if 0 < x < nx - 1 and 0 < y < ny - 1 and 0 < z < nz - 1:
        around = (
            heat[z - 1, y, x] + heat[z + 1, y, x] + heat[z, y - 1, x]
            + heat[z, y + 1, x] + heat[z, y, x - 1] + heat[z, y, x + 1]
        )  # fmt: skip
        after[z, y, x] = heat[z, y, x] + rate * (around - 6 * heat[z, y, x])


@peer
def heat_3d_by_loop(heat, after, rate):
    nz, ny, nx = heat.shape
    for z in range(1, nz - 1):
        for y in range(1, ny - 1):
            for x in range(1, nx - 1):
                around = (
                    heat[z - 1, y, x] + heat[z + 1, y, x] + heat[z, y - 1, x]
                    + heat[z, y + 1, x] + heat[z, y, x - 1] + heat[z, y, x + 1]
                )  # fmt: skip
                after[z, y, x] = heat[z, y, x] + rate * (around - 6 * heat[z, y, x])


@kernel("heat-3d")
def HEAT_3D(quick: bool) -> UserKernel:
    """seven points in space, blocks of 8 x 8 x 4, inner elements only"""
    size = 20 if quick else 64
    heat = np.random.default_rng(62).random((size, size, size), np.float32)
    grid = (blocks(size, 8), blocks(size, 8), blocks(size, 4))
    return UserKernel(
        {"heat": heat, "after": np.zeros_like(heat)},
        ("after",),
        lambda on: heat_3d[grid, (8, 8, 4)](on.heat, on.after, RATE),
        lambda on: heat_3d_by_loop(on.heat, on.after, RATE),
        rtol=1e-4,
        atol=1e-6,
    )


@hip.jit
def heat_tiled(heat, after, rate):
    tile = hip.shared.array((WITH_HALO, WITH_HALO), float32)
    x, y = hip.grid(2)
    tx, ty = hip.threadIdx.x + 1, hip.threadIdx.y + 1
    height, width = heat.shape
    if x < width and y < height:
        tile[ty, tx] = heat[y, x]
        if tx == 1 and x > 0:
            tile[ty, 0] = heat[y, x - 1]
        if tx == TILE and x < width - 1:
            tile[ty, TILE + 1] = heat[y, x + 1]
        if ty == 1 and y > 0:
            tile[0, tx] = heat[y - 1, x]
        if ty == TILE and y < height - 1:
            tile[TILE + 1, tx] = heat[y + 1, x]
    hip.syncthreads()
    if 0 < x < width - 1 and 0 < y < height - 1:
        around = tile[ty - 1, tx] + tile[ty + 1, tx] + tile[ty, tx - 1] + tile[ty, tx + 1]
        after[y, x] = tile[ty, tx] + rate * (around - 4 * tile[ty, tx])


@kernel("heat-2d-tiles")
def HEAT_TILED(quick: bool) -> UserKernel:
    """five points through tiles of 16 x 16 in shared memory, whose halo is loaded by the threads at its edge"""
    return UserKernel(
        square(quick),
        ("after",),
        lambda on: heat_tiled[tiles(on.heat), (TILE, TILE)](on.heat, on.after, RATE),
        lambda on: heat_2d_by_loop(on.heat, on.after, RATE),
        rtol=1e-4,
        atol=1e-6,
    )


@hip.jit
def heat_clamped(heat, after, rate):
    x, y = hip.grid(2)
    height, width = heat.shape
    if x < width and y < height:
        left, right = max(x - 1, 0), min(x + 1, width - 1)
        above, below = max(y - 1, 0), min(y + 1, height - 1)
        around = heat[above, x] + heat[below, x] + heat[y, left] + heat[y, right]
        after[y, x] = heat[y, x] + rate * (around - 4 * heat[y, x])


@peer
def heat_clamped_by_loop(heat, after, rate):
    height, width = heat.shape
    for y in range(height):
        above, below = max(y - 1, 0), min(y + 1, height - 1)
        for x in (0, width - 1):
            left, right = max(x - 1, 0), min(x + 1, width - 1)
            around = heat[above, x] + heat[below, x] + heat[y, left] + heat[y, right]
            after[y, x] = heat[y, x] + rate * (around - 4 * heat[y, x])
        for x in range(1, width - 1):
            around = heat[above, x] + heat[below, x] + heat[y, x - 1] + heat[y, x + 1]
            after[y, x] = heat[y, x] + rate * (around - 4 * heat[y, x])


@kernel("heat-2d-clamped")
def HEAT_CLAMPED(quick: bool) -> UserKernel:
    """five points, indices clamped at the edges by min and max"""
    return UserKernel(
        square(quick),
        ("after",),
        lambda on: heat_clamped[tiles(on.heat), (TILE, TILE)](on.heat, on.after, RATE),
        lambda on: heat_clamped_by_loop(on.heat, on.after, RATE),
        rtol=1e-4,
        atol=1e-6,
    )


@hip.jit
def heat_wrapped(heat, after, rate):
    x, y = hip.grid(2)
    height, width = heat.shape
    if x < width and y < height:
        left, right = (x - 1 + width) % width, (x + 1) % width
        above, below = (y - 1 + height) % height, (y + 1) % height
        around = heat[above, x] + heat[below, x] + heat[y, left] + heat[y, right]
        after[y, x] = heat[y, x] + rate * (around - 4 * heat[y, x])


@peer
def heat_wrapped_by_loop(heat, after, rate):
    height, width = heat.shape
    for y in range(height):
        above, below = y - 1 if y > 0 else height - 1, y + 1 if y < height - 1 else 0
        for x in (0, width - 1):
            left, right = x - 1 if x > 0 else width - 1, x + 1 if x < width - 1 else 0
            around = heat[above, x] + heat[below, x] + heat[y, left] + heat[y, right]
            after[y, x] = heat[y, x] + rate * (around - 4 * heat[y, x])
        for x in range(1, width - 1):
            around = heat[above, x] + heat[below, x] + heat[y, x - 1] + heat[y, x + 1]
            after[y, x] = heat[y, x] + rate * (around - 4 * heat[y, x])


@kernel("heat-2d-wrapped")
def HEAT_WRAPPED(quick: bool) -> UserKernel:
    """five points on a torus, indices by remainders"""
    return UserKernel(
        square(quick),
        ("after",),
        lambda on: heat_wrapped[tiles(on.heat), (TILE, TILE)](on.heat, on.after, RATE),
        lambda on: heat_wrapped_by_loop(on.heat, on.after, RATE),
        rtol=1e-4,
        atol=1e-6,
    )


@hip.jit
def life(cells, after):
    x, y = hip.grid(2)
    height, width = cells.shape
    if x < width and y < height:
        alive = 0
        for dy in range(-1, 2):
            for dx in range(-1, 2):
                if (dx != 0 or dy != 0) and 0 <= y + dy < height and 0 <= x + dx < width:
                    alive += cells[y + dy, x + dx]
        after[y, x] = 1 if alive == 3 or (alive == 2 and cells[y, x] == 1) else 0


@peer
def life_by_loop(cells, after):
    height, width = cells.shape
    padded = np.zeros((height + 2, width + 2), np.uint8)
    padded[1:-1, 1:-1] = cells
    for y in range(height):
        for x in range(width):
            alive = np.uint8(0)
            for dy in range(3):
                alive += padded[y + dy, x] + padded[y + dy, x + 1] + padded[y + dy, x + 2]
            alive -= cells[y, x]
            after[y, x] = (alive == 3) | ((alive == 2) & (cells[y, x] == 1))


@kernel("life-bytes")
def LIFE(quick: bool) -> UserKernel:
    """a step of the game of life on bytes, neighbours outside not counted"""
    size = 50 if quick else 300
    cells = np.random.default_rng(63).integers(0, 2, (size, size)).astype(np.uint8)
    return UserKernel(
        {"cells": cells, "after": np.zeros_like(cells)},
        ("after",),
        lambda on: life[tiles(on.cells), (TILE, TILE)](on.cells, on.after),
        lambda on: life_by_loop(on.cells, on.after),
    )
