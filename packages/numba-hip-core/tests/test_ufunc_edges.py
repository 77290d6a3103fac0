"""NumPy's ufuncs in kernels at the edges of their types, against NumPy."""

import numpy as np
import pytest
from numba.core.errors import NumbaError

import numba_hip as hip

INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.1, -0.1, np.inf, -np.inf, np.nan, 3.0, 7.0, -7.0, 1e30, 1e-30]


def check(ufunc, *operands):
    @hip.jit
    def unary(out, x):
        i = hip.grid(1)
        if i < out.size:
            out[i] = ufunc(x[i])

    @hip.jit
    def binary(out, x, y):
        i = hip.grid(1)
        if i < out.size:
            out[i] = ufunc(x[i], y[i])

    with np.errstate(all="ignore"):
        expected = ufunc(*operands)
    out = np.zeros_like(expected)
    (unary if len(operands) == 1 else binary)[-(-out.size // 64), 64](out, *operands)
    np.testing.assert_array_equal(out, expected)
    if out.dtype.kind == "f":
        has_sign = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(out[has_sign]), np.signbit(expected[has_sign]))


def pairs(dtype):
    """Edges with edges, and numbers anywhere."""
    has = np.iinfo(dtype)
    edges = np.array([has.min, has.max, 0, 1, 2, has.max // 2, has.max - 1], dtype)
    anywhere = np.random.default_rng(7).integers(has.min, has.max, (2, 300), dtype, endpoint=True)
    return np.append(np.repeat(edges, 7), anywhere[0]), np.append(np.tile(edges, 7), anywhere[1])


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_signs_and_multiples(dtype):
    one, two = pairs(dtype)
    check(np.sign, one)
    check(np.lcm, one, two)


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_by_any_amount(dtype):
    values, _ = pairs(dtype)
    has = np.iinfo(dtype)
    edges = np.array([0, 1, has.bits - 1, has.bits, has.bits + 1, has.max, has.min], dtype)
    amounts = np.append(np.repeat(edges, 7), np.random.default_rng(8).integers(0, has.bits + 5, 300).astype(dtype))
    check(np.left_shift, values, amounts)
    check(np.right_shift, values, amounts)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_quotients_and_powers_of_two(dtype):
    edges = np.array(FLOATS, dtype)
    one, two = np.random.default_rng(9).normal(0, ((100,), (3,)), (2, 400)).astype(dtype)
    check(np.floor_divide, np.append(np.repeat(edges, edges.size), one), np.append(np.tile(edges, edges.size), two))
    exponents = np.array([0, 1, -1, 2**32 + 1, -(2**33), 2000, -2000, 2**63 - 1, -(2**63)])
    check(np.ldexp, np.tile(edges, exponents.size), np.repeat(exponents, edges.size))


@pytest.mark.parametrize("ufunc", [np.nextafter, np.spacing])
def test_neighbours_of_float16(ufunc):
    x = np.ones(64, np.float16)
    with pytest.raises(NumbaError, match=rf"np.{ufunc.__name__} does not take numbers of float16"):
        check(ufunc, *[x] * ufunc.nin)
