"""Pictures of which each thread computes one pixel from few others: colours, sizes, turns and distances."""

from __future__ import annotations

import math

import numpy as np
from numba import hip

from benchmarks.user_kernels.definition import Arrays, UserKernel, blocks, kernel, peer
from benchmarks.user_kernels.filters import on_pixels, picture

THREADS = 256


@hip.jit
def equalise(image, result, table):
    x, y = hip.grid(2)
    if x < image.shape[1] and y < image.shape[0]:
        result[y, x] = table[image[y, x]]


@peer
def equalise_by_loop(image, result, table):
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            result[y, x] = table[image[y, x]]


@kernel("equalise")
def EQUALISE(quick: bool) -> UserKernel:
    """the brightness of each pixel looked up in a table of 256 bytes"""
    table = np.sort(np.random.default_rng(81).integers(0, 256, 256)).astype(np.uint8)

    def launch(on: Arrays) -> None:
        on_pixels(equalise, on.table)(on)

    return UserKernel(
        picture(quick, kind=np.uint8, size=800) | {"table": table},
        ("result",),
        launch,
        lambda on: equalise_by_loop(on.image, on.result, on.table),
    )


@hip.jit
def yuv_to_rgb(image, result):
    x, y = hip.grid(2)
    if x < image.shape[1] and y < image.shape[0]:
        luma, u, v = image[y, x, 0], image[y, x, 1] - 128, image[y, x, 2] - 128
        r = luma + 1.402 * v
        g = luma - 0.344136 * u - 0.714136 * v
        b = luma + 1.772 * u
        result[y, x, 0] = max(0, min(255, r))
        result[y, x, 1] = max(0, min(255, g))
        result[y, x, 2] = max(0, min(255, b))


@peer
def yuv_to_rgb_by_loop(image, result):
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            luma = np.float32(image[y, x, 0])
            u, v = np.float32(image[y, x, 1]) - np.float32(128), np.float32(image[y, x, 2]) - np.float32(128)
            r = luma + np.float32(1.402) * v
            g = luma - np.float32(0.344136) * u - np.float32(0.714136) * v
            b = luma + np.float32(1.772) * u
            result[y, x, 0] = max(np.float32(0), min(np.float32(255), r))
            result[y, x, 1] = max(np.float32(0), min(np.float32(255), g))
            result[y, x, 2] = max(np.float32(0), min(np.float32(255), b))


@kernel("yuv-to-rgb")
def YUV(quick: bool) -> UserKernel:
    """bytes of YUV to bytes of RGB, clamped, by float64 as Python's constants are; the peer has float32"""
    return UserKernel(
        picture(quick, 3, kind=np.uint8),
        ("result",),
        on_pixels(yuv_to_rgb),
        lambda on: yuv_to_rgb_by_loop(on.image, on.result),
        atol=1,
    )


@hip.jit
def resize(image, result):
    x, y = hip.grid(2)
    height, width = result.shape
    if x < width and y < height:
        fx = np.float32(x) * (image.shape[1] - 1) / (width - 1)
        fy = np.float32(y) * (image.shape[0] - 1) / (height - 1)
        x0, y0 = int(fx), int(fy)
        x1, y1 = min(x0 + 1, image.shape[1] - 1), min(y0 + 1, image.shape[0] - 1)
        fx -= x0
        fy -= y0
        top = image[y0, x0] * (1 - fx) + image[y0, x1] * fx
        bottom = image[y1, x0] * (1 - fx) + image[y1, x1] * fx
        result[y, x] = top * (1 - fy) + bottom * fy


@peer
def resize_by_loop(image, result):
    height, width = result.shape
    columns, parts = np.empty(width, np.int64), np.empty(width)
    for x in range(width):
        place = x * (image.shape[1] - 1) / (width - 1)
        columns[x] = min(int(place), image.shape[1] - 2)
        parts[x] = place - columns[x]
    for y in range(height):
        place = y * (image.shape[0] - 1) / (height - 1)
        row = min(int(place), image.shape[0] - 2)
        part = place - row
        for x in range(width):
            column, right = columns[x], parts[x]
            top = image[row, column] * (1 - right) + image[row, column + 1] * right
            bottom = image[row + 1, column] * (1 - right) + image[row + 1, column + 1] * right
            result[y, x] = top * (1 - part) + bottom * part


@kernel("bilinear-resize")
def RESIZE(quick: bool) -> UserKernel:
    """a picture of float32 in another size, by weights of four pixels"""
    arrays = picture(quick, size=250)
    height, width = arrays["image"].shape
    arrays["result"] = np.zeros((height * 3 // 2, width * 3 // 2), np.float32)
    return UserKernel(
        arrays,
        ("result",),
        on_pixels(resize),
        lambda on: resize_by_loop(on.image, on.result),
        rtol=1e-3,
        atol=1e-3,
    )


@hip.jit
def rotate(image, result, cosine, sine):
    x, y = hip.grid(2)
    height, width = image.shape
    if x < width and y < height:
        cx, cy = x - width / 2, y - height / 2
        column = round(cosine * cx + sine * cy + width / 2)
        row = round(cosine * cy - sine * cx + height / 2)
        if 0 <= column < width and 0 <= row < height:
            result[y, x] = image[row, column]
        else:
            result[y, x] = 0


@peer
def rotate_by_loop(image, result, cosine, sine):
    height, width = image.shape
    for y in range(height):
        cy = y - height / 2
        for x in range(width):
            cx = x - width / 2
            column = int(np.rint(cosine * cx + sine * cy + width / 2))
            row = int(np.rint(cosine * cy - sine * cx + height / 2))
            if 0 <= column < width and 0 <= row < height:
                result[y, x] = image[row, column]
            else:
                result[y, x] = 0


@kernel("rotate")
def ROTATE(quick: bool) -> UserKernel:
    """a picture turned by 30 degrees, the nearest pixel, zero outside"""
    cosine, sine = math.cos(math.pi / 6), math.sin(math.pi / 6)
    return UserKernel(
        picture(quick, size=400),
        ("result",),
        on_pixels(rotate, cosine, sine),
        lambda on: rotate_by_loop(on.image, on.result, cosine, sine),
    )


@hip.jit
def threshold(image, mask, result, limit):
    i = hip.grid(1)
    if i < mask.size and mask[i] != 0:
        grey = 0.299 * image[i, 0] + 0.587 * image[i, 1] + 0.114 * image[i, 2]
        if grey > limit:
            result[i] = 255
        else:
            result[i] = 0


@peer
def threshold_by_loop(image, mask, result, limit):
    for i in range(mask.size):
        grey = 0.299 * image[i, 0] + 0.587 * image[i, 1] + 0.114 * image[i, 2]
        value = 255 if grey > limit else 0
        result[i] = value if mask[i] != 0 else result[i]


@kernel("threshold-masked")
def THRESHOLD(quick: bool) -> UserKernel:
    """pixels of RGB bytes that a mask selects, white where they are brighter than a limit"""
    size = 2000 if quick else 150_000
    rng = np.random.default_rng(82)
    return UserKernel(
        {
            "image": rng.integers(0, 256, (size, 3)).astype(np.uint8),
            "mask": rng.integers(0, 2, size).astype(np.uint8),
            "result": np.zeros(size, np.uint8) + np.uint8(7),
        },
        ("result",),
        lambda on: threshold[blocks(size, THREADS), THREADS](on.image, on.mask, on.result, 128.0),
        lambda on: threshold_by_loop(on.image, on.mask, on.result, 128.0),
    )


@hip.jit
def every_third(values, chosen, result):
    i = hip.grid(1)
    if i < chosen.size and chosen[i] > 0:
        result[3 * i] = values[3 * i] * 2 + values[3 * i + 1]


@peer
def every_third_by_loop(values, chosen, result):
    for i in range(chosen.size):
        if chosen[i] > 0:
            result[3 * i] = values[3 * i] * 2 + values[3 * i + 1]


@kernel("strided-masked")
def STRIDED(quick: bool) -> UserKernel:
    """every third element of float32, where a condition holds"""
    size = 2000 if quick else 100_000
    rng = np.random.default_rng(83)
    return UserKernel(
        {
            "values": rng.random(3 * size, np.float32),
            "chosen": rng.integers(0, 2, size).astype(np.int32),
            "result": np.zeros(3 * size, np.float32),
        },
        ("result",),
        lambda on: every_third[blocks(size, THREADS), THREADS](on.values, on.chosen, on.result),
        lambda on: every_third_by_loop(on.values, on.chosen, on.result),
        rtol=1e-6,
    )


@hip.jit
def flood(image, result, step):
    x, y = hip.grid(2)
    height, width = image.shape[0], image.shape[1]
    if x < width and y < height:
        best_x, best_y = image[y, x, 0], image[y, x, 1]
        best = (best_x - x) ** 2 + (best_y - y) ** 2 if best_x >= 0 else 1 << 30
        for dy in range(-1, 2):
            for dx in range(-1, 2):
                column, row = x + dx * step, y + dy * step
                if 0 <= column < width and 0 <= row < height:
                    seed_x, seed_y = image[row, column, 0], image[row, column, 1]
                    if seed_x >= 0:
                        distance = (seed_x - x) ** 2 + (seed_y - y) ** 2
                        if distance < best:
                            best, best_x, best_y = distance, seed_x, seed_y
        result[y, x, 0] = best_x
        result[y, x, 1] = best_y


@peer
def flood_by_loop(image, result, step):
    height, width = image.shape[0], image.shape[1]
    for y in range(height):
        for x in range(width):
            best_x, best_y = image[y, x, 0], image[y, x, 1]
            best = (best_x - x) * (best_x - x) + (best_y - y) * (best_y - y) if best_x >= 0 else 1 << 30
            for row in range(y - step if y >= step else y, min(y + step + 1, height), step):
                for column in range(x - step if x >= step else x, min(x + step + 1, width), step):
                    seed_x, seed_y = image[row, column, 0], image[row, column, 1]
                    if seed_x >= 0:
                        distance = (seed_x - x) * (seed_x - x) + (seed_y - y) * (seed_y - y)
                        if distance < best:
                            best, best_x, best_y = distance, seed_x, seed_y
            result[y, x, 0] = best_x
            result[y, x, 1] = best_y


@kernel("jump-flood-step")
def FLOOD(quick: bool) -> UserKernel:
    """a step of the jump flood: the nearest seed of those that nine pixels know"""
    size = 40 if quick else 150
    rng = np.random.default_rng(84)
    seeds = rng.integers(0, size, (size, size, 2)).astype(np.int32)
    seeds[rng.random((size, size)) < 0.5] = -1
    return UserKernel(
        {"image": seeds, "result": np.zeros_like(seeds) - 2},
        ("result",),
        on_pixels(flood, 4),
        lambda on: flood_by_loop(on.image, on.result, 4),
    )


@hip.jit
def brighten_window(pixels, columns, top, left, height, width):
    y, x = hip.grid(2)
    if top <= y < top + height and left <= x < left + width:
        pixels[y * columns + x] = pixels[y * columns + x] * np.float32(2)
    hip.syncthreads()


@peer
def brighten_window_by_loop(pixels, columns, top, left, height, width):
    for y in range(top, top + height):
        for x in range(left, left + width):
            pixels[y * columns + x] = pixels[y * columns + x] * np.float32(2)


@kernel("window-then-barrier")
def WINDOW(quick: bool) -> UserKernel:
    """pixels of a window in a flat array of float32, twice as bright; the kernel ends with a barrier"""
    rows, columns = (50, 60) if quick else (300, 500)
    pixels = np.random.default_rng(310).random(rows * columns, np.float32)
    window = columns, 3, 5, rows - 20, columns - 30

    def brightened(on: Arrays) -> dict[str, np.ndarray]:
        on.pixels.reshape(rows, columns)[3 : rows - 17, 5 : columns - 25] *= 2
        return {"pixels": on.pixels}

    grid = blocks(rows, 16), blocks(columns, 16)
    return UserKernel(
        {"pixels": pixels},
        ("pixels",),
        lambda on: brighten_window[grid, (16, 16)](on.pixels, *window),
        lambda on: brighten_window_by_loop(on.pixels, *window),
        restored=("pixels",),
        expected=brightened,
    )
