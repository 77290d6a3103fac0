"""Bits of numbers, one at a time, and characters of a few kinds."""

from __future__ import annotations

import numpy as np
from numba import hip

from benchmarks.user_kernels.definition import UserKernel, blocks, kernel, peer

THREADS = 256


@hip.jit
def number_points(xs, ys, numbers):
    i = hip.grid(1)
    if i < numbers.size:
        number = 0
        for place in range(16):
            number |= ((xs[i] >> place) & 1) << (2 * place)
            number |= ((ys[i] >> place) & 1) << (2 * place + 1)
        numbers[i] = number


@peer
def number_points_by_loop(xs, ys, numbers):
    for i in range(numbers.size):
        number = 0
        for place in range(16):
            number |= ((xs[i] >> place) & 1) << (2 * place)
            number |= ((ys[i] >> place) & 1) << (2 * place + 1)
        numbers[i] = number


@kernel("morton-numbers")
def MORTON(quick: bool) -> UserKernel:
    """the bits of two int32 in turns, one after another"""
    size = 1000 if quick else 200_000
    xs, ys = np.random.default_rng(740).integers(0, 65536, (2, size)).astype(np.int32)
    places = np.arange(16)
    return UserKernel(
        {"xs": xs, "ys": ys, "numbers": np.zeros(size, np.int64)},
        ("numbers",),
        lambda on: number_points[blocks(size, THREADS), THREADS](on.xs, on.ys, on.numbers),
        lambda on: number_points_by_loop(on.xs, on.ys, on.numbers),
        expected=lambda on: {
            "numbers": sum(
                ((on.xs >> p & 1) << 2 * p) + ((on.ys >> p & 1).astype(np.int64) << 2 * p + 1) for p in places
            )
        },
    )


@hip.jit
def reverse(values, out):
    i = hip.grid(1)
    if i < values.size:
        result = 0
        for place in range(32):
            result = (result << 1) | ((values[i] >> place) & 1)
        out[i] = result


@peer
def reverse_by_loop(values, out):
    for i in range(values.size):
        result = 0
        for place in range(32):
            result = (result << 1) | ((values[i] >> place) & 1)
        out[i] = result


@kernel("reversed-bits")
def REVERSED(quick: bool) -> UserKernel:
    """the 32 bits of numbers in reverse, one after another"""
    size = 1000 if quick else 200_000
    values = np.random.default_rng(741).integers(0, 2**32, size).astype(np.uint32)
    return UserKernel(
        {"values": values, "out": np.zeros(size, np.uint32)},
        ("out",),
        lambda on: reverse[blocks(size, THREADS), THREADS](on.values, on.out),
        lambda on: reverse_by_loop(on.values, on.out),
        expected=lambda on: {"out": np.array([int(f"{x:032b}"[::-1], 2) for x in on.values], np.uint32)},
    )


@hip.jit
def mark_separators(text, marks):
    i = hip.grid(1)
    if i < text.size:
        marks[i] = text[i] in (32, 9, 10, 13, 44, 46, 59)


@peer
def mark_separators_by_loop(text, marks):
    for i in range(text.size):
        marks[i] = text[i] in (32, 9, 10, 13, 44, 46, 59)


@kernel("separators-in-text")
def SEPARATORS(quick: bool) -> UserKernel:
    """which bytes of a text are ``in`` a tuple of seven"""
    size = 1000 if quick else 500_000
    text = np.random.default_rng(742).integers(0, 128, size).astype(np.uint8)
    return UserKernel(
        {"text": text, "marks": np.zeros(size, np.bool_)},
        ("marks",),
        lambda on: mark_separators[blocks(size, THREADS), THREADS](on.text, on.marks),
        lambda on: mark_separators_by_loop(on.text, on.marks),
        expected=lambda on: {"marks": np.isin(on.text, (32, 9, 10, 13, 44, 46, 59))},
    )


@hip.jit
def unpack(packed, scales, weights):
    i = hip.grid(1)
    if i < weights.size:
        weights[i] = ((packed[i // 2] >> (4 * (i % 2))) & 15) * scales[i // 32]


@peer
def unpack_by_loop(packed, scales, weights):
    for i in range(weights.size):
        weights[i] = ((packed[i // 2] >> (4 * (i % 2))) & 15) * scales[i // 32]


@kernel("packed-weights")
def WEIGHTS(quick: bool) -> UserKernel:
    """numbers of 4 bits, two in a byte, times a float32 for each 32 of them"""
    size = 1024 if quick else 262_144
    random = np.random.default_rng(743)
    packed, scales = random.integers(0, 256, size // 2).astype(np.uint8), random.random(size // 32, np.float32)
    return UserKernel(
        {"packed": packed, "scales": scales, "weights": np.zeros(size, np.float32)},
        ("weights",),
        lambda on: unpack[blocks(size, THREADS), THREADS](on.packed, on.scales, on.weights),
        lambda on: unpack_by_loop(on.packed, on.scales, on.weights),
        expected=lambda on: {
            "weights": np.stack([on.packed & 15, on.packed >> 4], axis=1).ravel() * on.scales.repeat(32)
        },
    )
