"""What programs for CUDA write otherwise than a manual of Python does: signatures, quotients and roots as in C, grids
for matrices of any shape, and rows of a dynamic program that each thread has for itself."""

from __future__ import annotations

import math

import numpy as np
from numba import float32, float64, hip

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


@hip.jit
def project(points, axes, out):
    i, j = hip.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        total = 0.0
        for k in range(points.shape[1]):
            total += points[i, k] * axes[k, j]
        out[i, j] = total


@peer
def project_by_loop(points, axes, out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total = 0.0
            for k in range(points.shape[1]):
                total += points[i, k] * axes[k, j]
            out[i, j] = total


@kernel("few-columns")
def FEW_COLUMNS(quick: bool) -> UserKernel:
    """points of 100 dimensions projected on three axes, in blocks of 16 x 16 with rows along x, float64"""
    generator = np.random.default_rng(504)
    points, axes = generator.random((40 if quick else 2000, 100)), generator.random((100, 3))
    return UserKernel(
        {"points": points, "axes": axes, "out": np.zeros((len(points), 3))},
        ("out",),
        lambda on: project[(blocks(len(points), 16), 1), (16, 16)](on.points, on.axes, on.out),
        lambda on: project_by_loop(on.points, on.axes, on.out),
        rtol=1e-13,
    )


_LENGTH, _ROW = 48, 49


@hip.jit
def warp(first, second, out):
    pair = hip.grid(1)
    if pair < out.size:
        above = hip.local.array(_ROW, float64)
        row = hip.local.array(_ROW, float64)
        for k in range(_ROW):
            above[k] = math.inf
        above[0] = 0.0
        for j in range(_LENGTH):
            row[0] = math.inf
            for k in range(_LENGTH):
                apart = abs(first[pair, j] - second[pair, k])
                row[k + 1] = apart + min(row[k], above[k], above[k + 1])
            for k in range(_ROW):
                above[k] = row[k]
        out[pair] = above[_LENGTH]


@peer
def warp_by_loop(first, second, out):
    above, row = np.empty(_ROW), np.empty(_ROW)
    for pair in range(out.size):
        above[:] = math.inf
        above[0] = 0.0
        for j in range(_LENGTH):
            row[0] = math.inf
            for k in range(_LENGTH):
                apart = abs(first[pair, j] - second[pair, k])
                row[k + 1] = apart + min(row[k], above[k], above[k + 1])
            above[:] = row
        out[pair] = above[_LENGTH]


@kernel("time-warping")
def TIME_WARPING(quick: bool) -> UserKernel:
    """distances of pairs of series by dynamic time warping, two rows of the table in each thread's private arrays"""
    pairs = 20 if quick else 1024
    first, second = np.random.default_rng(505).random((2, pairs, _LENGTH))
    return UserKernel(
        {"first": first, "second": second, "out": np.zeros(pairs)},
        ("out",),
        lambda on: warp[blocks(pairs, 64), 64](on.first, on.second, on.out),
        lambda on: warp_by_loop(on.first, on.second, on.out),
        rtol=1e-13,
    )
