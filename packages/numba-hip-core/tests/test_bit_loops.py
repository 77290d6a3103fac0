"""Loops over the bits of numbers, which are unrolled, against Python."""

import numpy as np
import pytest

import numba_hip as hip

COUNT = 300


def reverse(x, y):
    result = 0
    for place in range(32):
        result = (result << 1) | ((x >> place) & 1)
    return result


def interleave(x, y):
    result = 0
    for place in range(16):
        result |= ((x >> place) & 1) << (2 * place)
        result |= ((y >> place) & 1) << (2 * place + 1)
    return result


def longest_run(x, y):
    most, length = 0, 0
    for place in range(32):
        if (x >> place) & 1:
            length += 1
            most = max(most, length)
        else:
            length = 0
    return most


def distance(x, y):
    different = 0
    for place in range(64):
        different += ((x >> place) ^ (y >> place)) & 1
    return different


def multiply_without_carry(x, y):
    product = 0
    for place in range(20):
        if (y >> place) & 1:
            product ^= x << place
    return product


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("function", [reverse, interleave, longest_run, distance, multiply_without_carry])
@pytest.mark.sample(6)
def test_results(function, dtype):
    called = hip.jit(device=True)(function)

    @hip.jit
    def kernel(left, right, out):
        i = hip.grid(1)
        if i < out.size:
            out[i] = called(left[i], right[i])

    generator, most = np.random.default_rng(7), min(np.iinfo(dtype).max, 2**40)
    left, right = (generator.integers(0, most, COUNT, endpoint=True).astype(dtype) for _ in range(2))
    left[0], right[0] = 0, most
    out = np.zeros(COUNT, np.int64)
    kernel[(COUNT + 127) // 128, 128](left, right, out)
    np.testing.assert_array_equal(out, [function(int(x), int(y)) for x, y in zip(left, right, strict=True)])
