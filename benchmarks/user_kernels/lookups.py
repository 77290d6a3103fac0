"""Small tables that each thread looks something up in: letters, bases, directions."""

from __future__ import annotations

import numpy as np
from numba import hip

from benchmarks.user_kernels.definition import UserKernel, blocks, kernel, peer

THREADS = 256
LETTERS = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)


@hip.jit
def encode(data, letters, text):
    i = hip.grid(1)
    if i < data.size // 3:
        bits = (data[3 * i] << 16) | (data[3 * i + 1] << 8) | data[3 * i + 2]
        for k in range(4):
            text[4 * i + k] = letters[(bits >> (18 - 6 * k)) & 63]


@peer
def encode_by_loop(data, letters, text):
    for i in range(data.size // 3):
        bits = (data[3 * i] << 16) | (data[3 * i + 1] << 8) | data[3 * i + 2]
        for k in range(4):
            text[4 * i + k] = letters[(bits >> (18 - 6 * k)) & 63]


@kernel("base64-of-bytes")
def BASE64(quick: bool) -> UserKernel:
    """three bytes of each thread as four letters"""
    size = 3000 if quick else 300_000
    return UserKernel(
        {
            "data": np.random.default_rng(91).integers(0, 256, size).astype(np.uint8),
            "letters": LETTERS.copy(),
            "text": np.zeros(size // 3 * 4, np.uint8),
        },
        ("text",),
        lambda on: encode[blocks(size // 3, THREADS), THREADS](on.data, on.letters, on.text),
        lambda on: encode_by_loop(on.data, on.letters, on.text),
    )


PAIRS = np.array([3, 2, 1, 0, 4, 5, 6, 7], np.uint8)


@hip.jit
def complement(strand, other):
    pairs = hip.const.array_like(PAIRS)
    i = hip.grid(1)
    if i < strand.size:
        other[strand.size - 1 - i] = pairs[strand[i] & 7]


@peer
def complement_by_loop(strand, other):
    for i in range(strand.size):
        other[strand.size - 1 - i] = PAIRS[strand[i] & 7]


@kernel("complements-of-bases")
def COMPLEMENTS(quick: bool) -> UserKernel:
    """the other strand of DNA, a byte for each base"""
    size = 10_000 if quick else 500_000
    return UserKernel(
        {
            "strand": np.random.default_rng(92).integers(0, 4, size).astype(np.uint8),
            "other": np.zeros(size, np.uint8),
        },
        ("other",),
        lambda on: complement[blocks(size, THREADS), THREADS](on.strand, on.other),
        lambda on: complement_by_loop(on.strand, on.other),
    )


DIRECTIONS = np.array([[1, 1], [-1, 1], [1, -1], [-1, -1], [1.5, 0], [-1.5, 0], [0, 1.5], [0, -1.5]], np.float32)


@hip.jit
def project(hashes, xs, ys, lengths):
    directions = hip.const.array_like(DIRECTIONS)
    i = hip.grid(1)
    if i < hashes.size:
        k = hashes[i] & 7
        lengths[i] = directions[k, 0] * xs[i] + directions[k, 1] * ys[i]


@peer
def project_by_loop(hashes, xs, ys, lengths):
    for i in range(hashes.size):
        k = hashes[i] & 7
        lengths[i] = DIRECTIONS[k, 0] * xs[i] + DIRECTIONS[k, 1] * ys[i]


@kernel("directions-by-hash")
def DIRECTIONS_BY_HASH(quick: bool) -> UserKernel:
    """the length of a vector in one of eight directions, which a hash chooses, as noise is made of"""
    size = 5000 if quick else 100_000
    random = np.random.default_rng(93)
    return UserKernel(
        {
            "hashes": random.integers(0, 1 << 20, size).astype(np.int32),
            "xs": random.random(size).astype(np.float32),
            "ys": random.random(size).astype(np.float32),
            "lengths": np.zeros(size, np.float32),
        },
        ("lengths",),
        lambda on: project[blocks(size, THREADS), THREADS](on.hashes, on.xs, on.ys, on.lengths),
        lambda on: project_by_loop(on.hashes, on.xs, on.ys, on.lengths),
        rtol=1e-5,
        atol=1e-6,
    )
