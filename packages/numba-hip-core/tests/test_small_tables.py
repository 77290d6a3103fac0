"""Tables that threads look something up in: by bytes, remainders and low bits of numbers, in any kind of memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import hip

COUNT, THREADS = 1000, 96
BLOCKS = -(-COUNT // THREADS)
TYPES = ("i1", "u1", "i2", "u2", "i4", "i8", "f2", "f4", "f8")
Array = np.ndarray[Any, Any]

DIRECTIONS = np.array([[1, 1], [-1, 2], [3, -1], [-4, -1], [1.5, 0], [-1.5, 6], [0, 1.5], [8, -1.5]], np.float32)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("size", [2, 7, 16, 100, 256])
@pytest.mark.sample(12)
def test_by_bytes_and_remainders(kind: str, size: int) -> None:
    @hip.jit
    def kernel(picture, numbers, table, out, size):
        i = hip.grid(1)
        if i < out.shape[1]:
            if picture[i] < size:
                out[0, i] = table[picture[i]]
            out[1, i] = table[numbers[i] & 1]
            if numbers[i] > 0:
                out[2, i] = table[numbers[i] % 2 + 1 - 1]

    random = np.random.default_rng(size)
    picture = random.integers(0, 256, COUNT).astype(np.uint8)
    numbers = random.integers(-(1 << 40), 1 << 40, COUNT)
    table = random.integers(0, 100, size).astype(kind)
    out = np.full((3, COUNT), 101, kind)
    wanted = out.copy()
    kernel[BLOCKS, THREADS](picture, numbers, table, out, size)
    wanted[0] = np.where(picture < size, table[np.minimum(picture, size - 1)], 101)
    wanted[1] = table[numbers & 1]
    wanted[2] = np.where(numbers > 0, table[numbers % 2], 101)
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("divisor", [5, 8])
def test_rows_of_a_constant(divisor: int) -> None:
    """The index is one of bytes: of rows of two floats."""

    @hip.jit
    def kernel(hashes, xs, ys, lengths):
        directions = hip.const.array_like(DIRECTIONS)
        i = hip.grid(1)
        if i < hashes.size:
            k = hashes[i] % divisor
            lengths[i] = directions[k, 0] * xs[i] + directions[k, 1] * ys[i]

    random = np.random.default_rng(1)
    hashes = random.integers(0, 1 << 30, COUNT).astype(np.uint32)
    xs, ys = random.random((2, COUNT)).astype(np.float32)
    lengths = np.zeros(COUNT, np.float32)
    kernel[BLOCKS, THREADS](hashes, xs, ys, lengths)
    chosen = DIRECTIONS[hashes % divisor]
    np.testing.assert_allclose(lengths, chosen[:, 0] * xs + chosen[:, 1] * ys, rtol=1e-5, atol=1e-6)


def test_a_table_of_the_block() -> None:
    """It is written before each look, by all threads."""

    @hip.jit
    def kernel(numbers, out):
        table = hip.shared.array(16, np.int32)
        t, i = hip.threadIdx.x, hip.grid(1)
        number, total = numbers[i], 0
        for step in range(5):
            if t < 16:
                table[t] = (t + 1) * (step + hip.blockIdx.x + 1)
            hip.syncthreads()
            total += table[(number >> 4 * step) & 15] - table[(number >> 2) & 7]
            hip.syncthreads()
        out[i] = total

    numbers = np.random.default_rng(2).integers(0, 1 << 30, BLOCKS * THREADS)
    out = np.zeros_like(numbers)
    kernel[BLOCKS, THREADS](numbers, out)
    steps = np.arange(5)[:, None]
    nibbles, blocks = (numbers >> 4 * steps) & 15, np.arange(numbers.size) // THREADS
    np.testing.assert_array_equal(out, ((nibbles - ((numbers >> 2) & 7)) * (steps + blocks + 1)).sum(axis=0))


def test_a_machine_of_a_few_states() -> None:
    """A state looks up the next one, until the first of some is reached: lanes leave the loop apart."""

    @hip.jit
    def kernel(text, following, lengths, state_of):
        i = hip.grid(1)
        if i < text.shape[1]:
            state, place = 0, 0
            while place < text.shape[0]:
                state = following[(state & 7) * 8 + (text[place, i] & 7)]
                place += 1
                if state == 5:
                    break
            lengths[i], state_of[i] = place, state

    random = np.random.default_rng(3)
    text = random.integers(0, 256, (30, COUNT)).astype(np.uint8)
    following = random.integers(0, 8, 64).astype(np.uint8)
    lengths, state_of = np.zeros(COUNT, np.int64), np.zeros(COUNT, np.int64)
    kernel[BLOCKS, THREADS](text, following, lengths, state_of)
    for i in range(COUNT):
        state = place = 0
        while place < len(text) and state != 5:
            state = int(following[state * 8 + (text[place, i] & 7)])
            place += 1
        assert (lengths[i], state_of[i]) == (place, state)


def test_views_of_tables() -> None:
    """Every second element, from the last one on, and one beside another table."""

    @hip.jit
    def kernel(numbers, tables, turned, apart, out):
        i = hip.grid(1)
        if i < numbers.size:
            k = numbers[i] & 31
            out[i] = tables[numbers[i] & 3, k] * 10000 + turned[k] * 100 + apart[k]

    random = np.random.default_rng(4)
    numbers = random.integers(0, 1 << 20, COUNT)
    tables, whole = random.integers(0, 100, (4, 32)), random.integers(0, 100, 64)
    out = np.zeros(COUNT, np.int64)
    on = hip.to_device(whole)
    kernel[BLOCKS, THREADS](numbers, tables, hip.to_device(whole[:32][::-1]), on[::2], out)
    k = numbers & 31
    np.testing.assert_array_equal(out, tables[numbers & 3, k] * 10000 + whole[:32][::-1][k] * 100 + whole[::2][k])
