"""Bits of integers and small arithmetic, against Python's integers and NumPy."""

import math

import numpy as np
import pytest

import numba_hip as hip

INTEGERS = [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64]


def values_of(dtype):
    info = np.iinfo(dtype)
    ordinary = np.random.default_rng(5).integers(info.min, info.max, 30, dtype, endpoint=True)
    return np.concatenate([np.array([0, 1, info.max, info.min, info.max // 3], dtype), ordinary])


def run(function, *columns, result):
    @hip.jit
    def kernel(arguments, out):
        i = hip.grid(1)
        out[i] = function(arguments[i])

    out = np.zeros(columns[0].size, result)
    kernel[1, columns[0].size](columns[0], out)
    return out


def binary(value, dtype):
    width = np.dtype(dtype).itemsize * 8
    return format(int(value) % 2**width, f"0{width}b")


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_counts_of_bits(dtype):
    values = values_of(dtype)
    texts = [binary(value, dtype) for value in values]
    np.testing.assert_array_equal(run(hip.popc, values, result=np.int32), [text.count("1") for text in texts])
    np.testing.assert_array_equal(run(hip.clz, values, result=np.int32), [len(t) - len(t.lstrip("0")) for t in texts])
    first = [len(text) - text.rindex("1") if "1" in text else 0 for text in texts]
    np.testing.assert_array_equal(run(hip.ffs, values, result=np.int32), first)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.sample(5)
def test_bits_of_the_magnitude(dtype):
    def count(value):
        return value.bit_count()

    values = values_of(dtype)
    wanted = [abs(int(value)).bit_count() for value in values]
    np.testing.assert_array_equal(run(hip.jit(device=True)(count), values, result=np.int64), wanted)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits_in_reverse(dtype):
    values = values_of(dtype)
    unsigned = np.dtype(f"u{np.dtype(dtype).itemsize}")
    wanted = np.array([int(binary(value, dtype)[::-1], 2) for value in values], unsigned)
    np.testing.assert_array_equal(run(hip.brev, values, result=dtype).view(unsigned), wanted)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fused_multiplication_and_addition_rounds_once(dtype):
    @hip.jit
    def kernel(a, b, c, out):
        i = hip.grid(1)
        out[i] = hip.fma(a[i], b[i], c[i])

    from fractions import Fraction

    epsilon = np.finfo(dtype).eps
    a = np.array([1 + epsilon, 3, 1e-3, 0.1], dtype)
    b = np.array([1 - epsilon, 1 / 3, 1e3, 10], dtype)
    c = np.array([-1, -1, -1, -1], dtype)
    out = np.zeros_like(a)
    kernel[1, 4](a, b, c, out)
    exact = [
        float(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))) for x, y, z in zip(a, b, c, strict=True)
    ]
    np.testing.assert_array_equal(out, np.array(exact).astype(dtype))
    assert (out != a * b + c).any(), "the plain expression rounds twice"


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_cube_root(dtype):
    values = np.array([0, 1, -8, 27, 1000, -5]).astype(dtype)
    result = np.float32 if dtype is np.float32 else np.float64
    np.testing.assert_allclose(run(hip.cbrt, values, result=result), np.cbrt(values), rtol=1e-6)


def test_selection():
    @hip.jit
    def kernel(which, a, b, out):
        i = hip.grid(1)
        out[i] = hip.selp(which[i], a[i], b[i])

    which, a, b, out = np.array([1, 0, 5, 0]), np.arange(4), np.arange(4) + 0.5, np.zeros(4)
    kernel[1, 4](which, a, b, out)
    np.testing.assert_array_equal(out, np.where(which, a, b))
    assert math.isclose(out[1], 1.5)
