"""What programs for CUDA write otherwise than a manual of Python does: signatures, quotients and roots as in C."""

from __future__ import annotations

import math

import numpy as np
from numba import float32, hip

from benchmarks.user_kernels.definition import UserKernel, blocks, kernel, peer


@hip.jit("void(float32[:], float32[:], float32, float32[:])")
def axpy_of_any_strides(x, y, factor, out):
    for i in range(hip.grid(1), out.size, hip.gridsize(1)):
        out[i] = factor * x[i] + y[i]


@peer
def axpy_by_loop(x, y, factor, out):
    for i in range(out.size):
        out[i] = factor * x[i] + y[i]


@kernel("axpy-open-strides")
def OPEN_STRIDES(quick: bool) -> UserKernel:
    """``a * x + y`` in steps of the grid, with a signature that leaves the strides open, as ``float32[:]`` does"""
    size = 1000 if quick else 500_000
    x, y = np.random.default_rng(501).random((2, size), np.float32)
    return UserKernel(
        {"x": x, "y": y, "out": np.zeros_like(x)},
        ("out",),
        lambda on: axpy_of_any_strides[64, 256](on.x, on.y, np.float32(3), on.out),
        lambda on: axpy_by_loop(on.x, on.y, np.float32(3), on.out),
        rtol=1e-6,
    )


@hip.jit
def brighten(image, width, out):
    i = hip.grid(1)
    if i < image.size:
        row = int(i / width)
        column = i - row * width
        out[row, column] = image[row, column] * float32(1.5)


@peer
def brighten_by_loop(image, out):
    for row in range(image.shape[0]):
        for column in range(image.shape[1]):
            out[row, column] = image[row, column] * float32(1.5)


@kernel("rows-by-quotient")
def QUOTIENT(quick: bool) -> UserKernel:
    """a matrix times a number, whose rows are found by ``int(i / width)``"""
    shape = (33, 50) if quick else (600, 800)
    image = np.random.default_rng(502).random(shape, np.float32)
    return UserKernel(
        {"image": image, "out": np.zeros_like(image)},
        ("out",),
        lambda on: brighten[blocks(image.size, 256), 256](on.image, shape[1], on.out),
        lambda on: brighten_by_loop(on.image, on.out),
    )


@hip.jit
def distances(x, y, out):
    i = hip.grid(1)
    if i < out.size:
        out[i] = (x[i] ** 2 + math.pow(y[i], 2)) ** 0.5


@peer
def distances_by_loop(x, y, out):
    for i in range(out.size):
        out[i] = (x[i] ** 2 + math.pow(y[i], 2)) ** 0.5


@kernel("distances-by-powers")
def DISTANCES(quick: bool) -> UserKernel:
    """distances of points from the origin, with squares and roots written as powers"""
    size = 1000 if quick else 500_000
    x, y = np.random.default_rng(503).random((2, size))
    return UserKernel(
        {"x": x, "y": y, "out": np.zeros_like(x)},
        ("out",),
        lambda on: distances[blocks(size, 256), 256](on.x, on.y, on.out),
        lambda on: distances_by_loop(on.x, on.y, on.out),
        rtol=1e-15,
    )
