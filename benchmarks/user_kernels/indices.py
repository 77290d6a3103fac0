"""Indices as programs for CUDA compute them: in 32 bits and fewer, with a constant behind a sum, by rows of a constant
length, and around a ring."""

from __future__ import annotations

import numpy as np
from numba import float32, hip, int16, int32, uint32

from benchmarks.user_kernels.definition import Arrays, UserKernel, blocks, fast_peer, kernel, peer

THREADS = 256


@hip.jit(fastmath=True)
def filter_by_int32(signal, taps, out):
    i = int32(hip.grid(1))
    if i < out.size:
        total = 0.0
        for k in range(taps.size):
            total += signal[int32(i + k)] * taps[k]
        out[i] = total


@fast_peer
def filter_by_loop(signal, taps, out):
    for i in range(out.size):
        total = 0.0
        for k in range(taps.size):
            total += signal[i + k] * taps[k]
        out[i] = total


@kernel("fir-int32")
def FIR(quick: bool) -> UserKernel:
    """a filter of 33 taps over float64, whose indices are ``int32(hip.grid(1))`` and ``int32(i + k)``"""
    generator = np.random.default_rng(701)
    signal, taps = generator.random(1000 if quick else 50_000), generator.random(33)
    return UserKernel(
        {"signal": signal, "taps": taps, "out": np.zeros(signal.size - taps.size + 1)},
        ("out",),
        lambda on: filter_by_int32[blocks(on.out.size, THREADS), THREADS](on.signal, on.taps, on.out),
        lambda on: filter_by_loop(on.signal, on.taps, on.out),
        rtol=1e-12,
        expected=lambda on: {"out": np.correlate(on.signal, on.taps)},
    )


@hip.jit
def change_over(values, width, out):
    i = hip.grid(1)
    if i < out.size:
        out[i] = (values[i + width - 1] - values[i]) / values[i]


@peer
def change_over_by_loop(values, width, out):
    for i in range(out.size):
        out[i] = (values[i + width - 1] - values[i]) / values[i]


@kernel("window-ends")
def ENDS(quick: bool) -> UserKernel:
    """the change over windows of float64, of which the last element is ``values[i + width - 1]``"""
    values, width = np.random.default_rng(702).uniform(1, 2, 1000 if quick else 200_000), 20
    return UserKernel(
        {"values": values, "out": np.zeros(values.size - width + 1)},
        ("out",),
        lambda on: change_over[blocks(on.out.size, THREADS), THREADS](on.values, width, on.out),
        lambda on: change_over_by_loop(on.values, width, on.out),
        expected=lambda on: {"out": (on.values[width - 1 :] - on.values[: 1 - width]) / on.values[: 1 - width]},
    )


RADIUS = 8


@hip.jit(fastmath=True)
def smooth(values, weights, out):
    i = hip.grid(1)
    if i < out.size:
        total = weight = 0.0
        for k in range(2 * RADIUS + 1):
            place = i + k - RADIUS
            if 0 <= place < values.size:
                total += weights[k] * values[place]
                weight += weights[k]
        out[i] = total / weight


@fast_peer
def smooth_by_loop(values, weights, out):
    whole = weights.sum()
    for i in range(RADIUS, out.size - RADIUS):
        total = 0.0
        for k in range(2 * RADIUS + 1):
            total += weights[k] * values[i - RADIUS + k]
        out[i] = total / whole
    for edge in range(2 * RADIUS):
        i = edge if edge < RADIUS else out.size - 2 * RADIUS + edge
        total = weight = 0.0
        for place in range(max(i - RADIUS, 0), min(i + RADIUS + 1, values.size)):
            total += weights[place - i + RADIUS] * values[place]
            weight += weights[place - i + RADIUS]
        out[i] = total / weight


@kernel("window-radius")
def AROUND(quick: bool) -> UserKernel:
    """weighted means of the 17 elements around each, ``i + k - RADIUS``, without those outside, float64; the peer
    has the edges apart"""
    values = np.random.default_rng(703).random(1000 if quick else 100_000)
    weights = np.exp(-((np.arange(2 * RADIUS + 1) - RADIUS) ** 2) / 20)

    def means(on: Arrays) -> dict[str, np.ndarray]:
        whole = np.convolve(np.ones(values.size), weights, "same")
        return {"out": np.convolve(on.values, weights, "same") / whole}

    return UserKernel(
        {"values": values, "weights": weights, "out": np.zeros_like(values)},
        ("out",),
        lambda on: smooth[blocks(values.size, THREADS), THREADS](on.values, on.weights, on.out),
        lambda on: smooth_by_loop(on.values, on.weights, on.out),
        rtol=1e-12,
        expected=means,
    )


BEFORE = 16


@hip.jit(fastmath=True)
def smooth_ring(values, weights, out):
    i = hip.grid(1)
    if i < out.size:
        total = 0.0
        for k in range(BEFORE + 1):
            total += weights[k] * values[i + k - BEFORE]
        out[i] = total


@fast_peer
def smooth_ring_by_loop(values, weights, out):
    for i in range(BEFORE):
        total = 0.0
        for k in range(BEFORE + 1):
            total += weights[k] * values[i + k - BEFORE]
        out[i] = total
    for i in range(BEFORE, out.size):
        total = 0.0
        for k in range(BEFORE + 1):
            total += weights[k] * values[k + (i - BEFORE)]
        out[i] = total


@kernel("window-before")
def BEHIND(quick: bool) -> UserKernel:
    """weighted sums of each element and the 16 before it, ``i + k - BEFORE``, of a period: before the first is the
    last, as negative indices have it; float64"""
    generator = np.random.default_rng(706)
    values, weights = generator.random(1000 if quick else 100_000), generator.random(BEFORE + 1)

    def sums(on: Arrays) -> dict[str, np.ndarray]:
        return {"out": np.correlate(np.concatenate([on.values[-BEFORE:], on.values]), on.weights)}

    return UserKernel(
        {"values": values, "weights": weights, "out": np.zeros_like(values)},
        ("out",),
        lambda on: smooth_ring[blocks(values.size, THREADS), THREADS](on.values, on.weights, on.out),
        lambda on: smooth_ring_by_loop(on.values, on.weights, on.out),
        rtol=1e-12,
        expected=sums,
    )


COLUMNS = 37


@hip.jit
def scale_columns(matrix, factors, out):
    i = hip.grid(1)
    if i < matrix.size:
        row, column = i // COLUMNS, i % COLUMNS
        out[row, column] = matrix[row, column] * factors[column]


@peer
def scale_columns_by_loop(matrix, factors, out):
    for row in range(matrix.shape[0]):
        for column in range(COLUMNS):
            out[row, column] = matrix[row, column] * factors[column]


@kernel("constant-columns")
def CONSTANT(quick: bool) -> UserKernel:
    """a matrix of 37 columns times a factor of each, ``row = i // 37`` and ``column = i % 37``, float32"""
    generator = np.random.default_rng(704)
    matrix = generator.random((30 if quick else 8000, COLUMNS), np.float32)
    return UserKernel(
        {"matrix": matrix, "factors": generator.random(COLUMNS, np.float32), "out": np.zeros_like(matrix)},
        ("out",),
        lambda on: scale_columns[blocks(matrix.size, THREADS), THREADS](on.matrix, on.factors, on.out),
        lambda on: scale_columns_by_loop(on.matrix, on.factors, on.out),
        expected=lambda on: {"out": on.matrix * on.factors},
    )


RING, TAPS = 1024, 16


@hip.jit(fastmath=True)
def filter_rings(rings, taps, head, out):
    channel = hip.blockIdx.y
    thread = int16(hip.threadIdx.x)
    i = int32(hip.blockIdx.x * hip.blockDim.x + thread)
    if i < RING:
        total = float32(0)
        for k in range(TAPS):
            total += rings[channel, uint32(head + i + k) & (RING - 1)] * taps[k]
        out[channel, i] = total


@fast_peer
def filter_rings_by_loop(rings, taps, head, out):
    line = np.empty(RING + TAPS - 1, np.float32)
    for channel in range(rings.shape[0]):
        for i in range(line.size):
            line[i] = rings[channel, (head + i) & (RING - 1)]
        for i in range(RING):
            total = float32(0)
            for k in range(TAPS):
                total += line[i + k] * taps[k]
            out[channel, i] = total


@fast_peer
def filter_rings_translated(rings, taps, head, out):
    for channel in range(rings.shape[0]):
        for i in range(RING):
            total = float32(0)
            for k in range(TAPS):
                total += rings[channel, (head + i + k) & (RING - 1)] * taps[k]
            out[channel, i] = total


@kernel("ring-of-1024", translated=True)
def RINGS(quick: bool) -> UserKernel:
    """a filter of 16 taps over rings of 1024 float32, ``& 1023`` with indices of int16 and uint32; the peer has each
    ring in a line"""
    generator = np.random.default_rng(705)
    rings = generator.random((3 if quick else 64, RING), np.float32)
    taps, head = generator.random(TAPS, np.float32), 700

    def filtered(on: Arrays) -> dict[str, np.ndarray]:
        return {"out": sum(np.roll(on.rings, -head - k, axis=1) * on.taps[k] for k in range(TAPS))}

    return UserKernel(
        {"rings": rings, "taps": taps, "out": np.zeros_like(rings)},
        ("out",),
        lambda on: filter_rings[(blocks(RING, THREADS), len(rings)), THREADS](on.rings, on.taps, head, on.out),
        lambda on: filter_rings_by_loop(on.rings, on.taps, head, on.out),
        rtol=1e-5,
        expected=filtered,
        translated=lambda on: filter_rings_translated(on.rings, on.taps, head, on.out),
    )


@hip.jit
def double_flat(matrix, out):
    i = hip.grid(1)
    width = out.shape[1]
    if i < out.size:
        row, column = i // width, i % width
        out[row, column] = float32(2) * matrix[row, column]


@peer
def double_by_rows(matrix, out):
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            out[row, column] = float32(2) * matrix[row, column]


@kernel("flat-rows-of-8")
def FLAT(quick: bool) -> UserKernel:
    """twice a matrix with eight columns, which threads find by ``i // width`` and ``i % width``"""
    matrix = np.random.default_rng(708).random((130 if quick else 25_000, 8), np.float32)
    return UserKernel(
        {"matrix": matrix, "out": np.zeros_like(matrix)},
        ("out",),
        lambda on: double_flat[blocks(matrix.size, THREADS), THREADS](on.matrix, on.out),
        lambda on: double_by_rows(on.matrix, on.out),
        expected=lambda on: {"out": 2 * on.matrix},
    )
