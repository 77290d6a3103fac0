"""Tuples that programs pass to kernels, a shape and the distances of a grid; functions that are members of one, and one
of constants."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import float32, hip

from benchmarks.user_kernels.definition import Arrays, UserKernel, blocks, kernel, peer

BLOCK = (32, 8)
STEPS = 100


@hip.jit
def diffuse(before, after, shape, spacing, rate):
    x, y = hip.grid(2)
    if 0 < x < shape[1] - 1 and 0 < y < shape[0] - 1:
        along_y = (before[y - 1, x] - 2 * before[y, x] + before[y + 1, x]) / (spacing[0] * spacing[0])
        along_x = (before[y, x - 1] - 2 * before[y, x] + before[y, x + 1]) / (spacing[1] * spacing[1])
        after[y, x] = before[y, x] + rate * (along_y + along_x)


@peer
def diffuse_by_loop(before, after, shape, spacing, rate):
    for y in range(1, shape[0] - 1):
        for x in range(1, shape[1] - 1):
            along_y = (before[y - 1, x] - 2 * before[y, x] + before[y + 1, x]) / (spacing[0] * spacing[0])
            along_x = (before[y, x - 1] - 2 * before[y, x] + before[y, x + 1]) / (spacing[1] * spacing[1])
            after[y, x] = before[y, x] + rate * (along_y + along_x)


@kernel("launches-with-tuples")
def DIFFUSION(quick: bool) -> UserKernel:
    """100 steps of diffusion over 24 x 30 float64, each a launch with its shape and spacing as tuples"""
    shape, spacing, rate = (24, 30), (0.5, 0.25), 0.01
    grid = (blocks(shape[1], BLOCK[0]), blocks(shape[0], BLOCK[1]))
    values = np.random.default_rng(731).random(shape)

    def launch(on: Arrays) -> None:
        before, after = on.values, on.other
        for _ in range(STEPS):
            diffuse[grid, BLOCK](before, after, shape, spacing, rate)
            before, after = after, before

    def loops(on: Arrays) -> None:
        before, after = on.values, on.other
        for _ in range(STEPS):
            diffuse_by_loop(before, after, shape, spacing, rate)
            before, after = after, before

    def diffused(on: Arrays) -> dict[str, np.ndarray]:
        before, after = on.values, on.other
        for _ in range(STEPS):
            inner = before[1:-1, 1:-1]
            along_y = (before[:-2, 1:-1] - 2 * inner + before[2:, 1:-1]) / spacing[0] ** 2
            along_x = (before[1:-1, :-2] - 2 * inner + before[1:-1, 2:]) / spacing[1] ** 2
            after[1:-1, 1:-1] = inner + rate * (along_y + along_x)
            before, after = after, before
        return {"values": before}

    arrays = {"values": values, "other": values.copy()}
    return UserKernel(arrays, ("values",), launch, loops, rtol=1e-9, restored=("values", "other"), expected=diffused)


class Semiring(NamedTuple):
    """What a product of matrices adds and multiplies by, and what its sums begin with."""

    add: Any
    multiply: Any
    neutral: np.float32


LENGTHS = Semiring(
    hip.jit(lambda a, b: min(a, b), device=True), hip.jit(lambda a, b: a + b, device=True), np.float32(np.inf)
)
"""Sums are minima and products sums: a product of distances is that of the shortest ways in two steps."""


def product_over(ring: Semiring) -> Any:
    """A kernel for the product of two matrices over *ring*."""

    @hip.jit
    def multiply(left, right, out):
        column, row = hip.grid(2)
        if row < out.shape[0] and column < out.shape[1]:
            total = ring.neutral
            for k in range(right.shape[0]):
                total = ring.add(total, ring.multiply(left[row, k], right[k, column]))
            out[row, column] = total

    return multiply


shortest_of_two = product_over(LENGTHS)


@peer
def shortest_of_two_by_loop(left, right, out):
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            out[row, column] = float32(np.inf)
        for k in range(right.shape[0]):
            first = left[row, k]
            for column in range(out.shape[1]):
                out[row, column] = min(out[row, column], first + right[k, column])


@kernel("functions-in-a-tuple")
def RING(quick: bool) -> UserKernel:
    """a product of matrices over a semiring, minima of sums, whose two functions are members of a named tuple"""
    size = 40 if quick else 128
    left, right = np.random.default_rng(732).random((2, size, size + 5), np.float32)
    right = np.ascontiguousarray(right.T)
    return UserKernel(
        {"left": left, "right": right, "out": np.zeros((size, size), np.float32)},
        ("out",),
        lambda on: shortest_of_two[(blocks(size, BLOCK[0]), blocks(size, BLOCK[1])), BLOCK](on.left, on.right, on.out),
        lambda on: shortest_of_two_by_loop(on.left, on.right, on.out),
        expected=lambda on: {"out": np.min(on.left[:, :, None] + on.right[None], axis=1)},
    )


WEIGHTS = tuple(np.random.default_rng(733).random(50).tolist())


@hip.jit
def weigh_in_turns(values, out):
    i = hip.grid(1)
    if i < values.size:
        total = 0.0
        for k in range(8):
            total += WEIGHTS[(7 * i + k) % 50] * values[i]
        out[i] = total


@peer
def weigh_in_turns_by_loop(values, out):
    for i in range(values.size):
        total = 0.0
        for k in range(8):
            total += WEIGHTS[(7 * i + k) % 50] * values[i]
        out[i] = total


@kernel("constants-in-a-tuple")
def CONSTANTS(quick: bool) -> UserKernel:
    """eight of 50 constants in a tuple for each element, at indices that threads compute"""
    size = 500 if quick else 50_000
    values = np.random.default_rng(734).random(size)
    first = 7 * np.arange(size)[:, None] + np.arange(8)
    return UserKernel(
        {"values": values, "out": np.zeros(size)},
        ("out",),
        lambda on: weigh_in_turns[blocks(size, 128), 128](on.values, on.out),
        lambda on: weigh_in_turns_by_loop(on.values, on.out),
        rtol=1e-12,
        expected=lambda on: {"out": np.array(WEIGHTS)[first % 50].sum(axis=1) * on.values},
    )
