"""Filters of pictures: a thread for each pixel, which looks at those around it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import float32, hip

from benchmarks.user_kernels.definition import Arrays, Launch, UserKernel, blocks, kernel, peer

BLOCK = (32, 8)


def picture(quick: bool, *colours: int, kind: type = np.float32, size: int = 300) -> dict[str, np.ndarray]:
    """A random picture of floats below one, or of bytes, and a place for the result."""
    rng = np.random.default_rng(71)
    shape = (40, 50, *colours) if quick else (size, size, *colours)
    image = rng.random(shape, np.float32) if kind is np.float32 else rng.integers(0, 256, shape).astype(kind)
    return {"image": image, "result": np.zeros_like(image)}


def on_pixels(jitted: Any, *values: object) -> Launch:
    """Launches a kernel with a thread for each pixel."""

    def launch(on: Arrays) -> None:
        height, width = on.result.shape[:2]
        jitted[(blocks(width, BLOCK[0]), blocks(height, BLOCK[1])), BLOCK](on.image, on.result, *values)

    return launch


@hip.jit
def sobel(image, result):
    x, y = hip.grid(2)
    height, width = image.shape
    if x >= width or y >= height:
        return
    if x == 0 or y == 0 or x == width - 1 or y == height - 1:
        result[y, x] = 0
        return
    gx = (
        image[y - 1, x + 1] + 2 * image[y, x + 1] + image[y + 1, x + 1]
        - image[y - 1, x - 1] - 2 * image[y, x - 1] - image[y + 1, x - 1]
    )  # fmt: skip
    gy = (
        image[y + 1, x - 1] + 2 * image[y + 1, x] + image[y + 1, x + 1]
        - image[y - 1, x - 1] - 2 * image[y - 1, x] - image[y - 1, x + 1]
    )  # fmt: skip
    result[y, x] = math.sqrt(gx * gx + gy * gy)


@peer
def sobel_by_loop(image, result):
    height, width = image.shape
    for y in range(1, height - 1):
        for x in range(1, width - 1):
            gx = (
                image[y - 1, x + 1] + 2 * image[y, x + 1] + image[y + 1, x + 1]
                - image[y - 1, x - 1] - 2 * image[y, x - 1] - image[y + 1, x - 1]
            )  # fmt: skip
            gy = (
                image[y + 1, x - 1] + 2 * image[y + 1, x] + image[y + 1, x + 1]
                - image[y - 1, x - 1] - 2 * image[y - 1, x] - image[y - 1, x + 1]
            )  # fmt: skip
            result[y, x] = math.sqrt(gx * gx + gy * gy)
    result[0] = result[-1] = 0
    result[:, 0] = result[:, -1] = 0


@kernel("sobel")
def SOBEL(quick: bool) -> UserKernel:
    """the length of Sobel's gradient, zero at the edges"""
    return UserKernel(
        picture(quick, size=500),
        ("result",),
        on_pixels(sobel),
        lambda on: sobel_by_loop(on.image, on.result),
        rtol=1e-3,
        atol=1e-5,
    )


WEIGHTS = np.outer([1, 4, 6, 4, 1], [1, 4, 6, 4, 1]).astype(np.int32)


@hip.jit
def gauss_rgb(image, result):
    x, y = hip.grid(2)
    height, width, colours = image.shape
    weights = hip.const.array_like(WEIGHTS)
    if x < width and y < height:
        for colour in range(colours):
            total = 0
            for dy in range(-2, 3):
                for dx in range(-2, 3):
                    row, column = min(max(y + dy, 0), height - 1), min(max(x + dx, 0), width - 1)
                    total += weights[dy + 2, dx + 2] * image[row, column, colour]
            result[y, x, colour] = total // 256


@peer
def gauss_rgb_by_loop(image, result):
    height, width, colours = image.shape
    for y in range(height):
        for x in range(width):
            if 2 <= x < width - 2 and 2 <= y < height - 2:
                for colour in range(colours):
                    total = np.int32(0)
                    for dy in range(5):
                        for dx in range(5):
                            total += WEIGHTS[dy, dx] * np.int32(image[y + dy - 2, x + dx - 2, colour])
                    result[y, x, colour] = total >> 8
            else:
                for colour in range(colours):
                    total = np.int32(0)
                    for dy in range(5):
                        row = min(max(y + dy - 2, 0), height - 1)
                        for dx in range(5):
                            column = min(max(x + dx - 2, 0), width - 1)
                            total += WEIGHTS[dy, dx] * np.int32(image[row, column, colour])
                    result[y, x, colour] = total >> 8


@kernel("gauss-5x5-rgb", opencl=True)
def GAUSS(quick: bool) -> UserKernel:
    """bytes of RGB blurred by 5 x 5 weights, indices clamped at the edges"""
    return UserKernel(
        picture(quick, 3, kind=np.uint8),
        ("result",),
        on_pixels(gauss_rgb),
        lambda on: gauss_rgb_by_loop(on.image, on.result),
    )


@hip.jit
def box_rgba(image, result, radius):
    x, y = hip.grid(2)
    height, width = image.shape[0], image.shape[1]
    if x < width and y < height:
        r, g, b, a, count = 0, 0, 0, 0, 0
        for row in range(max(y - radius, 0), min(y + radius + 1, height)):
            for column in range(max(x - radius, 0), min(x + radius + 1, width)):
                r += image[row, column, 0]
                g += image[row, column, 1]
                b += image[row, column, 2]
                a += image[row, column, 3]
                count += 1
        result[y, x, 0] = r // count
        result[y, x, 1] = g // count
        result[y, x, 2] = b // count
        result[y, x, 3] = a // count


@peer
def box_rgba_by_loop(image, result, radius):
    height, width = image.shape[:2]
    sums = np.zeros(4, np.int32)
    for y in range(height):
        top, bottom = max(y - radius, 0), min(y + radius + 1, height)
        for x in range(width):
            left, right = max(x - radius, 0), min(x + radius + 1, width)
            sums[:] = 0
            for row in range(top, bottom):
                for column in range(left, right):
                    for colour in range(4):
                        sums[colour] += image[row, column, colour]
            count = np.int32((bottom - top) * (right - left))
            for colour in range(4):
                result[y, x, colour] = sums[colour] // count


@kernel("box-blur-rgba")
def BOX(quick: bool) -> UserKernel:
    """means of bytes of RGBA over 5 x 5 pixels, fewer at the edges"""
    return UserKernel(
        picture(quick, 4, kind=np.uint8, size=200),
        ("result",),
        on_pixels(box_rgba, 2),
        lambda on: box_rgba_by_loop(on.image, on.result, 2),
    )


@hip.jit
def bilateral(image, result, radius, near, alike):
    x, y = hip.grid(2)
    height, width = image.shape
    if x < width and y < height:
        centre = image[y, x]
        total, weights = float32(0), float32(0)
        for dy in range(-radius, radius + 1):
            for dx in range(-radius, radius + 1):
                row, column = min(max(y + dy, 0), height - 1), min(max(x + dx, 0), width - 1)
                value = image[row, column]
                difference = value - centre
                weight = math.exp(-(float32(dx * dx + dy * dy) * near) - difference * difference * alike)
                total += weight * value
                weights += weight
        result[y, x] = total / weights


@peer
def bilateral_by_loop(image, result, radius, near, alike):
    height, width = image.shape
    for y in range(height):
        for x in range(width):
            centre = image[y, x]
            total, weights = float32(0), float32(0)
            for dy in range(-radius, radius + 1):
                row = min(max(y + dy, 0), height - 1)
                for dx in range(-radius, radius + 1):
                    value = image[row, min(max(x + dx, 0), width - 1)]
                    difference = value - centre
                    weight = math.exp(-(float32(dx * dx + dy * dy) * near) - difference * difference * alike)
                    total += weight * value
                    weights += weight
            result[y, x] = total / weights


@kernel("bilateral")
def BILATERAL(quick: bool) -> UserKernel:
    """means of 5 x 5 pixels, weighted by how near and how alike they are"""
    near, alike = np.float32(0.2), np.float32(10)
    return UserKernel(
        picture(quick, size=120),
        ("result",),
        on_pixels(bilateral, 2, near, alike),
        lambda on: bilateral_by_loop(on.image, on.result, 2, near, alike),
        rtol=1e-4,
    )


@hip.jit
def median(image, result):
    x, y = hip.grid(2)
    height, width = image.shape
    if 0 < x < width - 1 and 0 < y < height - 1:
        window = hip.local.array(9, float32)
        for dy in range(3):
            for dx in range(3):
                window[3 * dy + dx] = image[y + dy - 1, x + dx - 1]
        for i in range(5):
            for j in range(i + 1, 9):
                if window[j] < window[i]:
                    window[i], window[j] = window[j], window[i]
        result[y, x] = window[4]


@peer
def median_by_loop(image, result):
    height, width = image.shape
    window = np.empty(9, np.float32)
    for y in range(1, height - 1):
        for x in range(1, width - 1):
            for dy in range(3):
                for dx in range(3):
                    window[3 * dy + dx] = image[y + dy - 1, x + dx - 1]
            for i in range(5):
                for j in range(i + 1, 9):
                    low, high = min(window[i], window[j]), max(window[i], window[j])
                    window[i], window[j] = low, high
            result[y, x] = window[4]


@kernel("median-3x3")
def MEDIAN(quick: bool) -> UserKernel:
    """medians of 3 x 3 pixels, sorted by exchanges in a private array"""
    return UserKernel(
        picture(quick, size=200), ("result",), on_pixels(median), lambda on: median_by_loop(on.image, on.result)
    )
