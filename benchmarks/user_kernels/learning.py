"""Layers of neural networks."""

from __future__ import annotations

import math

import numpy as np
from numba import float32, hip

from benchmarks.user_kernels.definition import UserKernel, blocks, fast_peer, kernel, peer

THREADS = 128


def random_floats(*shape: int) -> np.ndarray:
    """Normally distributed float32."""
    return np.random.default_rng(91).normal(size=shape).astype(np.float32)


@hip.jit
def im2col(image, columns, size):
    i = hip.grid(1)
    height, width = image.shape[1] - size + 1, image.shape[2] - size + 1
    if i < columns.shape[0] * columns.shape[1]:
        row, place = i // columns.shape[1], i % columns.shape[1]
        channel, within = row // (size * size), row % (size * size)
        y, x = place // width, place % width
        if y < height:
            columns[row, place] = image[channel, y + within // size, x + within % size]


@peer
def im2col_by_loop(image, columns, size):
    height, width = image.shape[1] - size + 1, image.shape[2] - size + 1
    row = 0
    for channel in range(image.shape[0]):
        for dy in range(size):
            for dx in range(size):
                for y in range(height):
                    columns[row, y * width : (y + 1) * width] = image[channel, y + dy, dx : dx + width]
                row += 1


@kernel("im2col")
def IM2COL(quick: bool) -> UserKernel:
    """patches of 3 x 3 in eight channels as columns of a matrix, all indices by division of a flat one"""
    size = 12 if quick else 66
    image = random_floats(8, size, size)
    columns = np.zeros((8 * 9, (size - 2) ** 2), np.float32)
    return UserKernel(
        {"image": image, "columns": columns},
        ("columns",),
        lambda on: im2col[blocks(columns.size, THREADS), THREADS](on.image, on.columns, 3),
        lambda on: im2col_by_loop(on.image, on.columns, 3),
    )


@hip.jit
def max_pool(image, pooled):
    x, y, channel = hip.grid(3)
    if channel < pooled.shape[0] and y < pooled.shape[1] and x < pooled.shape[2]:
        best = image[channel, 2 * y, 2 * x]
        for dy in range(2):
            for dx in range(2):
                best = max(best, image[channel, 2 * y + dy, 2 * x + dx])
        pooled[channel, y, x] = best


@peer
def max_pool_by_loop(image, pooled):
    for channel in range(pooled.shape[0]):
        for y in range(pooled.shape[1]):
            for x in range(pooled.shape[2]):
                upper = max(image[channel, 2 * y, 2 * x], image[channel, 2 * y, 2 * x + 1])
                lower = max(image[channel, 2 * y + 1, 2 * x], image[channel, 2 * y + 1, 2 * x + 1])
                pooled[channel, y, x] = max(upper, lower)


@kernel("max-pool")
def POOL(quick: bool) -> UserKernel:
    """maxima of 2 x 2 in 16 channels, float32"""
    size = 20 if quick else 200
    return UserKernel(
        {"image": random_floats(16, size, size), "pooled": np.zeros((16, size // 2, size // 2), np.float32)},
        ("pooled",),
        lambda on: max_pool[(blocks(size // 2, 32), blocks(size // 2, 4), 16), (32, 4, 1)](on.image, on.pooled),
        lambda on: max_pool_by_loop(on.image, on.pooled),
    )


@hip.jit
def softmax(values, result):
    part = hip.shared.array(THREADS, float32)
    row, thread = hip.blockIdx.x, hip.threadIdx.x
    highest = float32(-np.inf)
    for j in range(thread, values.shape[1], THREADS):
        highest = max(highest, values[row, j])
    part[thread] = highest
    hip.syncthreads()
    half = THREADS // 2
    while half > 0:
        if thread < half:
            part[thread] = max(part[thread], part[thread + half])
        hip.syncthreads()
        half //= 2
    highest = part[0]
    hip.syncthreads()
    total = float32(0)
    for j in range(thread, values.shape[1], THREADS):
        total += math.exp(values[row, j] - highest)
    part[thread] = total
    hip.syncthreads()
    half = THREADS // 2
    while half > 0:
        if thread < half:
            part[thread] += part[thread + half]
        hip.syncthreads()
        half //= 2
    for j in range(thread, values.shape[1], THREADS):
        result[row, j] = math.exp(values[row, j] - highest) / part[0]


@peer
def softmax_by_loop(values, result):
    for row in range(values.shape[0]):
        highest = values[row, 0]
        for j in range(1, values.shape[1]):
            highest = max(highest, values[row, j])
        total = np.float32(0)
        for j in range(values.shape[1]):
            result[row, j] = math.exp(values[row, j] - highest)
            total += result[row, j]
        for j in range(values.shape[1]):
            result[row, j] /= total


@kernel("softmax-rows")
def SOFTMAX(quick: bool) -> UserKernel:
    """softmax of rows of 1000, a block for each, with a maximum and a sum in shared memory"""
    rows = 5 if quick else 200
    values = random_floats(rows, 1000)
    return UserKernel(
        {"values": values, "result": np.zeros_like(values)},
        ("result",),
        lambda on: softmax[rows, THREADS](on.values, on.result),
        lambda on: softmax_by_loop(on.values, on.result),
        rtol=1e-4,
    )


@hip.jit(fastmath=True)
def layer_norm(values, scale, shift, result):
    sums = hip.shared.array(THREADS, float32)
    squares = hip.shared.array(THREADS, float32)
    row, thread, width = hip.blockIdx.x, hip.threadIdx.x, values.shape[1]
    total, square = float32(0), float32(0)
    for j in range(thread, width, hip.blockDim.x):
        total += values[row, j]
        square += values[row, j] * values[row, j]
    sums[thread], squares[thread] = total, square
    hip.syncthreads()
    half = hip.blockDim.x // 2
    while half > 0:
        if thread < half:
            sums[thread] += sums[thread + half]
            squares[thread] += squares[thread + half]
        hip.syncthreads()
        half //= 2
    mean = sums[0] / float32(width)
    inverse = float32(1) / math.sqrt(squares[0] / float32(width) - mean * mean + float32(1e-5))
    for j in range(thread, width, hip.blockDim.x):
        result[row, j] = (values[row, j] - mean) * inverse * scale[j] + shift[j]


@fast_peer
def layer_norm_by_loop(values, scale, shift, result):
    width = values.shape[1]
    for row in range(values.shape[0]):
        total, square = np.float32(0), np.float32(0)
        for j in range(width):
            total += values[row, j]
            square += values[row, j] * values[row, j]
        mean = total / np.float32(width)
        inverse = np.float32(1) / math.sqrt(square / np.float32(width) - mean * mean + np.float32(1e-5))
        for j in range(width):
            result[row, j] = (values[row, j] - mean) * inverse * scale[j] + shift[j]


@kernel("layernorm-rows")
def LAYER_NORM(quick: bool) -> UserKernel:
    """rows of 768 without their mean and with variance one, a block for each"""
    rows = 5 if quick else 1000
    values = random_floats(rows, 768)
    return UserKernel(
        {"values": values, "scale": values[0].copy(), "shift": values[1].copy(), "result": np.zeros_like(values)},
        ("result",),
        lambda on: layer_norm[rows, THREADS](on.values, on.scale, on.shift, on.result),
        lambda on: layer_norm_by_loop(on.values, on.scale, on.shift, on.result),
        rtol=1e-3,
        atol=1e-4,
    )


@hip.jit
def batch_norm(values, mean, variance, result, width):
    i = hip.grid(1)
    if i < result.size:
        channel = (i // width) % mean.size
        result[i] = (values[i] - mean[channel]) / math.sqrt(variance[channel] + float32(1e-5))


@peer
def batch_norm_by_loop(values, mean, variance, result, width):
    channels = mean.size
    for row in range(values.size // width):
        channel = row % channels
        average = mean[channel]
        inverse = np.float32(1) / math.sqrt(variance[channel] + np.float32(1e-5))
        for i in range(row * width, (row + 1) * width):
            result[i] = (values[i] - average) * inverse


@kernel("batchnorm")
def BATCH_NORM(quick: bool) -> UserKernel:
    """channels with their mean and variance, found by division of a flat index"""
    batch, channels, width = (2, 4, 50) if quick else (16, 32, 28 * 28)
    values = random_floats(batch * channels * width)
    mean = random_floats(channels)
    return UserKernel(
        {"values": values, "mean": mean, "variance": mean * mean + 1, "result": np.zeros_like(values)},
        ("result",),
        lambda on: batch_norm[blocks(values.size, THREADS), THREADS](on.values, on.mean, on.variance, on.result, width),
        lambda on: batch_norm_by_loop(on.values, on.mean, on.variance, on.result, width),
        rtol=1e-4,
        atol=1e-5,
    )


@hip.jit
def embed(table, words, result):
    i = hip.grid(1)
    width = table.shape[1]
    if i < words.size * width:
        row, column = i // width, i % width
        result[row, column] = table[words[row], column]


@peer
def embed_by_loop(table, words, result):
    for row in range(words.size):
        word = words[row]
        for column in range(table.shape[1]):
            result[row, column] = table[word, column]


@kernel("embedding")
def EMBED(quick: bool) -> UserKernel:
    """rows of a table for each word, row and column by division of a flat index"""
    count, width = (50, 32) if quick else (12_000, 128)
    words = np.random.default_rng(92).integers(0, 1000, count).astype(np.int32)
    return UserKernel(
        {"table": random_floats(1000, width), "words": words, "result": np.zeros((count, width), np.float32)},
        ("result",),
        lambda on: embed[blocks(count * width, THREADS), THREADS](on.table, on.words, on.result),
        lambda on: embed_by_loop(on.table, on.words, on.result),
    )


@hip.jit
def gelu(values, result):
    i = hip.grid(1)
    if i < values.size:
        x = values[i]
        inner = float32(0.7978845608) * (x + float32(0.044715) * x * x * x)
        result[i] = float32(0.5) * x * (float32(1) + math.tanh(inner))


@peer
def gelu_by_loop(values, result):
    for i in range(values.size):
        x = values[i]
        inner = float32(0.7978845608) * (x + float32(0.044715) * x * x * x)
        result[i] = float32(0.5) * x * (float32(1) + math.tanh(inner))


@kernel("gelu")
def GELU(quick: bool) -> UserKernel:
    """GELU by the hyperbolic tangent"""
    values = random_floats(2000 if quick else 200_000)
    return UserKernel(
        {"values": values, "result": np.zeros_like(values)},
        ("result",),
        lambda on: gelu[blocks(values.size, THREADS), THREADS](on.values, on.result),
        lambda on: gelu_by_loop(on.values, on.result),
        rtol=1e-4,
        atol=1e-5,
    )


@hip.jit
def attention(queries, keys, scores, scale):
    j, i, head = hip.grid(3)
    if head < scores.shape[0] and i < scores.shape[1] and j < scores.shape[2]:
        total = float32(0)
        for d in range(queries.shape[2]):
            total += queries[head, i, d] * keys[head, j, d]
        scores[head, i, j] = total * scale if j <= i else float32(-np.inf)


@peer
def attention_by_loop(queries, keys, scores, scale):
    turned = np.empty((queries.shape[2], scores.shape[2]), np.float32)
    for head in range(scores.shape[0]):
        turned[:] = keys[head].T
        for i in range(scores.shape[1]):
            scores[head, i, : i + 1] = 0
            for d in range(queries.shape[2]):
                query = queries[head, i, d] * scale
                for j in range(i + 1):
                    scores[head, i, j] += query * turned[d, j]
            scores[head, i, i + 1 :] = -np.inf


@kernel("attention-scores")
def ATTENTION(quick: bool) -> UserKernel:
    """products of queries and keys of 64 float32 in four heads, with a causal mask"""
    length = 20 if quick else 128
    queries, keys = random_floats(2, 4, length, 64)
    grid = (blocks(length, 16), blocks(length, 16), 4)
    scale = np.float32(0.125)
    return UserKernel(
        {"queries": queries, "keys": keys, "scores": np.zeros((4, length, length), np.float32)},
        ("scores",),
        lambda on: attention[grid, (16, 16, 1)](on.queries, on.keys, on.scores, scale),
        lambda on: attention_by_loop(on.queries, on.keys, on.scores, scale),
        rtol=1e-3,
        atol=1e-4,
    )
