"""How the threads of a grid are told their elements: with far more blocks than there is work for, a block for each
column, blocks of one thread or of 4 x 4, in steps of the grid, in waves, and by the plane and the row of a box."""

from __future__ import annotations

import math

import numpy as np
from numba import float32, hip

from benchmarks.user_kernels.definition import Launch, UserKernel, blocks, kernel, peer

THREADS = 256


def table(quick: bool, kind: type[np.generic] = np.float32) -> np.ndarray:
    """A table whose rows are no multiple of a vector."""
    shape = (33, 45) if quick else (700, 500)
    return np.random.default_rng(801).random(shape).astype(kind)


@hip.jit
def double(values, out):
    i = hip.grid(1)
    if i < values.size:
        out[i] = values[i] * 2


@peer
def double_by_loop(values, out):
    for i in range(values.size):
        out[i] = values[i] * 2


@kernel("large-grid")
def LARGE_GRID(quick: bool) -> UserKernel:
    """20,000 elements are doubled by 2048 blocks of 256 threads"""
    values = np.random.default_rng(802).random(1000 if quick else 20_000)
    return UserKernel(
        {"values": values, "out": np.zeros_like(values)},
        ("out",),
        lambda on: double[2048, THREADS](on.values, on.out),
        lambda on: double_by_loop(on.values, on.out),
        expected=lambda on: {"out": 2 * on.values},
    )


@kernel("single-thread-blocks")
def SINGLE(quick: bool) -> UserKernel:
    """a block of one thread for each element"""
    values = np.random.default_rng(803).random(1000 if quick else 1 << 18)
    return UserKernel(
        {"values": values, "out": np.zeros_like(values)},
        ("out",),
        lambda on: double[on.values.size, 1](on.values, on.out),
        lambda on: double_by_loop(on.values, on.out),
        expected=lambda on: {"out": 2 * on.values},
    )


@hip.jit
def filter_columns(image, taps, out):
    x = hip.blockIdx.x
    y = hip.blockIdx.y * hip.blockDim.y + hip.threadIdx.y
    if y < image.shape[0]:
        total = float32(0)
        for k in range(taps.size):
            total += image[min(max(y + k - taps.size // 2, 0), image.shape[0] - 1), x] * taps[k]
        out[y, x] = total


@peer
def filter_columns_by_loop(image, taps, out):
    height = image.shape[0]
    for y in range(height):
        for x in range(image.shape[1]):
            out[y, x] = 0
        for k in range(taps.size):
            from_row = min(max(y + k - taps.size // 2, 0), height - 1)
            for x in range(image.shape[1]):
                out[y, x] += image[from_row, x] * taps[k]


@kernel("block-for-each-column")
def COLUMNS(quick: bool) -> UserKernel:
    """a filter of nine taps along columns, which ``hip.blockIdx.x`` names"""
    image = table(quick)
    return UserKernel(
        {"image": image, "taps": np.hanning(9).astype(np.float32), "out": np.zeros_like(image)},
        ("out",),
        lambda on: filter_columns[(on.image.shape[1], blocks(on.image.shape[0], 128)), (1, 128)](
            on.image, on.taps, on.out
        ),
        lambda on: filter_columns_by_loop(on.image, on.taps, on.out),
        rtol=1e-5,
    )


@hip.jit
def standardise(values, means, deviations, out):
    j = hip.blockIdx.x
    for i in range(hip.threadIdx.x, values.shape[0], hip.blockDim.x):
        out[i, j] = (values[i, j] - means[j]) / deviations[j]


@peer
def standardise_by_loop(values, means, deviations, out):
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            out[i, j] = (values[i, j] - means[j]) / deviations[j]


@kernel("rows-of-each-column")
def STANDARDISED(quick: bool) -> UserKernel:
    """numbers less the mean of their column, in its deviations: a block for each column, whose threads are the rows"""
    values = table(quick)
    return UserKernel(
        {
            "values": values,
            "means": values.mean(axis=0),
            "deviations": values.std(axis=0),
            "out": np.zeros_like(values),
        },
        ("out",),
        lambda on: standardise[on.values.shape[1], 128](on.values, on.means, on.deviations, on.out),
        lambda on: standardise_by_loop(on.values, on.means, on.deviations, on.out),
        rtol=1e-5,
        expected=lambda on: {"out": (on.values - on.means) / on.deviations},
    )


@hip.jit
def turn_rows(values, angles, out):
    i, j = hip.grid(2)
    if i < values.shape[0] and j < values.shape[1]:
        out[i, j] = values[i, j] * math.sin(angles[i])


@peer
def turn_rows_by_loop(values, angles, out):
    for i in range(values.shape[0]):
        factor = math.sin(angles[i])
        for j in range(values.shape[1]):
            out[i, j] = values[i, j] * factor


def turned_rows(quick: bool, side: int) -> UserKernel:
    """Rows times the sine of an angle, in blocks of *side* x *side* threads."""
    values = table(quick, np.float64)
    return UserKernel(
        {"values": values, "angles": np.linspace(-9, 9, len(values)), "out": np.zeros_like(values)},
        ("out",),
        lambda on: turn_rows[tuple(blocks(extent, side) for extent in on.out.shape), (side, side)](
            on.values, on.angles, on.out
        ),
        lambda on: turn_rows_by_loop(on.values, on.angles, on.out),
        rtol=1e-13,
    )


@kernel("angles-of-rows")
def ANGLES(quick: bool) -> UserKernel:
    """rows of float64 times the sine of an angle that each has, in blocks of 16 x 16"""
    return turned_rows(quick, 16)


@kernel("blocks-of-4-by-4")
def SMALL_BLOCKS(quick: bool) -> UserKernel:
    """the same in blocks of 4 x 4"""
    return turned_rows(quick, 4)


@hip.jit
def scale_in_steps(values, by_column, by_row, out):
    for place in range(hip.grid(1), values.size, hip.gridsize(1)):
        i, j = place // values.shape[1], place % values.shape[1]
        out[i, j] = values[i, j] * by_column[j] + by_row[i]


@hip.jit
def scale_by_waves(values, by_column, by_row, out):
    thread = hip.grid(1)
    i, lane = thread // 32, thread % 32
    if i < values.shape[0]:
        for j in range(lane, values.shape[1], 32):
            out[i, j] = values[i, j] * by_column[j] + by_row[i]


@peer
def scale_by_loop(values, by_column, by_row, out):
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            out[i, j] = values[i, j] * by_column[j] + by_row[i]


def scaled(quick: bool, launch: Launch) -> UserKernel:
    """A table times a row, plus a column, by what *launch* launches."""
    values = table(quick)
    return UserKernel(
        {"values": values, "by_column": values[0] * 3, "by_row": values[:, 0] - 1, "out": np.zeros_like(values)},
        ("out",),
        launch,
        lambda on: scale_by_loop(on.values, on.by_column, on.by_row, on.out),
        rtol=1e-5,
        expected=lambda on: {"out": on.values * on.by_column + on.by_row[:, None]},
    )


@kernel("steps-through-a-table")
def STEPS(quick: bool) -> UserKernel:
    """a table in steps of the grid, whose rows and columns are quotients and remainders"""
    return scaled(quick, lambda on: scale_in_steps[64, THREADS](on.values, on.by_column, on.by_row, on.out))


@kernel("waves-through-rows")
def WAVES(quick: bool) -> UserKernel:
    """32 threads for each row, which are told apart by ``// 32`` and ``% 32``"""
    return scaled(
        quick,
        lambda on: scale_by_waves[blocks(32 * len(on.values), 128), 128](on.values, on.by_column, on.by_row, on.out),
    )


@hip.jit
def grow_box(box, out):
    place = hip.grid(1)
    i = place // (box.shape[1] * box.shape[2])
    rest = place % (box.shape[1] * box.shape[2])
    j, k = rest // box.shape[2], rest % box.shape[2]
    if i < box.shape[0] - 1 and j < box.shape[1] - 1:
        out[i, j, k] = box[i, j, k] + box[i + 1, j, k] + box[i, j + 1, k]


@peer
def grow_box_by_loop(box, out):
    for i in range(box.shape[0] - 1):
        for j in range(box.shape[1] - 1):
            for k in range(box.shape[2]):
                out[i, j, k] = box[i, j, k] + box[i + 1, j, k] + box[i, j + 1, k]


@kernel("planes-and-rows")
def PLANES(quick: bool) -> UserKernel:
    """sums in a box, of which each thread computes its plane, what is left, its row and its column"""
    box = np.random.default_rng(804).random((9, 11, 13) if quick else (60, 70, 90)).astype(np.float32)
    return UserKernel(
        {"box": box, "out": np.zeros_like(box)},
        ("out",),
        lambda on: grow_box[blocks(on.box.size, THREADS), THREADS](on.box, on.out),
        lambda on: grow_box_by_loop(on.box, on.out),
        rtol=1e-6,
    )


DEPTH, HEIGHT, WIDTH = 50, 70, 90


@hip.jit
def sum_neighbours(box, out):
    place = hip.grid(1)
    if place < DEPTH * HEIGHT * WIDTH:
        i, j, k = place // (HEIGHT * WIDTH), place // WIDTH % HEIGHT, place % WIDTH
        if 0 < i < DEPTH - 1 and 0 < j < HEIGHT - 1 and 0 < k < WIDTH - 1:
            planes = box[i - 1, j, k] + box[i + 1, j, k]
            out[i, j, k] = planes + box[i, j - 1, k] + box[i, j + 1, k] + box[i, j, k - 1] + box[i, j, k + 1]


@peer
def sum_neighbours_by_loop(box, out):
    for i in range(1, DEPTH - 1):
        for j in range(1, HEIGHT - 1):
            for k in range(1, WIDTH - 1):
                planes = box[i - 1, j, k] + box[i + 1, j, k]
                out[i, j, k] = planes + box[i, j - 1, k] + box[i, j + 1, k] + box[i, j, k - 1] + box[i, j, k + 1]


@kernel("box-of-constants")
def CONSTANTS(quick: bool) -> UserKernel:
    """sums of six neighbours in a box whose extents are global names"""
    box = np.random.default_rng(805).random((DEPTH, HEIGHT, WIDTH)).astype(np.float32)
    return UserKernel(
        {"box": box, "out": np.zeros_like(box)},
        ("out",),
        lambda on: sum_neighbours[blocks(on.box.size, THREADS), THREADS](on.box, on.out),
        lambda on: sum_neighbours_by_loop(on.box, on.out),
        rtol=1e-6,
    )


@hip.jit
def brighten(image, out):
    i, j = hip.grid(2)
    if i < image.shape[0] and j < image.shape[1]:
        for k in range(image.shape[2]):
            out[i, j, k] = image[i, j, k] + 1


@peer
def brighten_by_loop(image, out):
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            for k in range(image.shape[2]):
                out[i, j, k] = image[i, j, k] + 1


@kernel("bytes-of-bands")
def BANDS(quick: bool) -> UserKernel:
    """90 bytes for each pixel, through which its thread goes"""
    image = np.random.default_rng(805).integers(0, 200, (9, 11, 90) if quick else (60, 70, 90)).astype(np.uint8)
    return UserKernel(
        {"image": image, "out": np.zeros_like(image)},
        ("out",),
        lambda on: brighten[(blocks(on.image.shape[0], 16), blocks(on.image.shape[1], 16)), (16, 16)](on.image, on.out),
        lambda on: brighten_by_loop(on.image, on.out),
        expected=lambda on: {"out": on.image + 1},
    )
