"""Pictures that are computed pixel by pixel: noise, and rounds until a point has left."""

from __future__ import annotations

import math

import numpy as np
from numba import hip

from benchmarks.user_kernels.definition import UserKernel, blocks, kernel, peer

BLOCK = (16, 16)


def grid_of(image: np.ndarray) -> tuple[int, int]:
    """How many blocks cover *image*."""
    return blocks(image.shape[1], BLOCK[0]), blocks(image.shape[0], BLOCK[1])


def _gradient(hash_, x, y):
    """The product of (x, y) and one of four directions."""
    h = hash_ & 3
    return (x if h & 1 == 0 else -x) + (y if h & 2 == 0 else -y)


gradient, gradient_of_peer = hip.jit(device=True)(_gradient), peer(_gradient)


@hip.jit
def perlin(permutation, scale, image):
    j, i = hip.grid(2)
    if i < image.shape[0] and j < image.shape[1]:
        x, y = np.float32(j) * scale, np.float32(i) * scale
        column, row = math.floor(x), math.floor(y)
        x -= column
        y -= row
        u = x * x * x * (x * (x * 6 - 15) + 10)
        v = y * y * y * (y * (y * 6 - 15) + 10)
        left = permutation[column & 255] + row
        right = permutation[(column + 1) & 255] + row
        a = gradient(permutation[left & 255], x, y)
        b = gradient(permutation[right & 255], x - 1, y)
        c = gradient(permutation[(left + 1) & 255], x, y - 1)
        d = gradient(permutation[(right + 1) & 255], x - 1, y - 1)
        top, bottom = a + u * (b - a), c + u * (d - c)
        image[i, j] = top + v * (bottom - top)


@peer
def perlin_by_loop(permutation, scale, image):
    for i in range(image.shape[0]):
        row = math.floor(np.float32(i) * scale)
        y = np.float32(i) * scale - row
        v = y * y * y * (y * (y * 6 - 15) + 10)
        for j in range(image.shape[1]):
            x = np.float32(j) * scale
            column = math.floor(x)
            x -= column
            u = x * x * x * (x * (x * 6 - 15) + 10)
            left = permutation[column & 255] + row
            right = permutation[(column + 1) & 255] + row
            a = gradient_of_peer(permutation[left & 255], x, y)
            b = gradient_of_peer(permutation[right & 255], x - 1, y)
            c = gradient_of_peer(permutation[(left + 1) & 255], x, y - 1)
            d = gradient_of_peer(permutation[(right + 1) & 255], x - 1, y - 1)
            top, bottom = a + u * (b - a), c + u * (d - c)
            image[i, j] = top + v * (bottom - top)


@kernel("perlin-noise")
def PERLIN(quick: bool) -> UserKernel:
    """Perlin's noise, with a table of 256 permuted numbers"""
    size = 32 if quick else 300
    permutation = np.random.default_rng(51).permutation(256).astype(np.int32)
    scale = np.float32(0.05)
    arrays = {"permutation": permutation, "image": np.zeros((size, size), np.float32) + np.float32(9)}
    return UserKernel(
        arrays,
        ("image",),
        lambda on: perlin[grid_of(on.image), BLOCK](on.permutation, scale, on.image),
        lambda on: perlin_by_loop(on.permutation, scale, on.image),
        rtol=1e-4,
        atol=1e-4,
    )


@hip.jit
def julia(cx, cy, rounds, image):
    j, i = hip.grid(2)
    if i < image.shape[0] and j < image.shape[1]:
        x, y = 3.0 * j / image.shape[1] - 1.5, 3.0 * i / image.shape[0] - 1.5
        count = 0
        while count < rounds and x * x + y * y < 4.0:
            x, y = x * x - y * y + cx, 2.0 * x * y + cy
            count += 1
        image[i, j] = count


@peer
def julia_by_loop(cx, cy, rounds, image):
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            x, y = 3.0 * j / image.shape[1] - 1.5, 3.0 * i / image.shape[0] - 1.5
            count = 0
            while count < rounds and x * x + y * y < 4.0:
                x, y = x * x - y * y + cx, 2.0 * x * y + cy
                count += 1
            image[i, j] = count


@kernel("julia-f64", opencl=True)
def JULIA(quick: bool) -> UserKernel:
    """Julia's set of float64, at most 50 rounds"""
    size = 32 if quick else 150
    return UserKernel(
        {"image": np.zeros((size, size), np.int32) - 1},
        ("image",),
        lambda on: julia[grid_of(on.image), BLOCK](-0.8, 0.156, 50, on.image),
        lambda on: julia_by_loop(-0.8, 0.156, 50, on.image),
        atol=1,
    )


def _bulb_rounds(px, py, pz, rounds):
    """Rounds of the mandelbulb of power eight until a point has left."""
    x, y, z = px, py, pz
    for count in range(rounds):
        r = math.sqrt(x * x + y * y + z * z)
        if r > 2:
            return count
        theta, phi = 8 * math.acos(z / (r + np.float32(1e-9))), 8 * math.atan2(y, x)
        power = r**8
        x = power * math.sin(theta) * math.cos(phi) + px
        y = power * math.sin(theta) * math.sin(phi) + py
        z = power * math.cos(theta) + pz
    return rounds


bulb_rounds, bulb_rounds_of_peer = hip.jit(device=True)(_bulb_rounds), peer(_bulb_rounds)


@hip.jit
def mandelbulb(z, step, image):
    j, i = hip.grid(2)
    if i < image.shape[0] and j < image.shape[1]:
        x, y = np.float32(j) * step - np.float32(1.2), np.float32(i) * step - np.float32(1.2)
        image[i, j] = bulb_rounds(x, y, z, 8)


@peer
def mandelbulb_by_loop(z, step, image):
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            x, y = np.float32(j) * step - np.float32(1.2), np.float32(i) * step - np.float32(1.2)
            image[i, j] = bulb_rounds_of_peer(x, y, z, 8)


@kernel("mandelbulb")
def BULB(quick: bool) -> UserKernel:
    """a slice of the mandelbulb, at most 8 rounds of sines, arc tangents and a power"""
    size = 16 if quick else 64
    z, step = np.float32(0.3), np.float32(2.4 / size)
    return UserKernel(
        {"image": np.zeros((size, size), np.int32) - 1},
        ("image",),
        lambda on: mandelbulb[grid_of(on.image), BLOCK](z, step, on.image),
        lambda on: mandelbulb_by_loop(z, step, on.image),
        atol=1,
    )
