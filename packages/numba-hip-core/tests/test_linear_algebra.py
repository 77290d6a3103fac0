"""Products of vectors, norms and sorting within one thread, against NumPy."""

import re
import sys

import numpy as np
import pytest
from numba.core.errors import NumbaError

import numba_hip as hip

DTYPES = ("int32", "int64", "uint8", "float32", "float64", "complex64", "complex128")


def vector(size, dtype, seed=0):
    numbers = np.random.default_rng(seed).normal(size=(2, size)) * 10
    return (numbers[0] + 1j * numbers[1]).astype(dtype) if "c" in dtype else np.abs(numbers[0]).astype(dtype)


@hip.jit(exceptions=True)
def dot(a, b, out):
    out[0] = np.dot(a, b)
    out[1] = a @ b
    out[2] = np.vdot(a, b)


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("other", DTYPES)
def test_products(dtype, other):
    a, b = vector(7, dtype), vector(14, other, 1)[::2]
    wanted = np.array([np.dot(a, b), a @ b, np.vdot(a, b)])
    out = np.zeros_like(wanted)
    dot[1, 1](a, b, out)
    np.testing.assert_allclose(out, wanted, rtol=1e-5)


def test_products_of_private_arrays():
    @hip.jit
    def kernel(out):
        row = hip.local.array(3, np.float64)
        for k in range(3):
            row[k] = hip.threadIdx.x + k
        out[hip.threadIdx.x] = row @ row

    out = np.zeros(5)
    kernel[1, 5](out)
    np.testing.assert_array_equal(out, [sum((i + k) ** 2 for k in range(3)) for i in range(5)])


def test_vectors_of_different_lengths():
    with pytest.raises(ValueError, match="different lengths"):
        dot[1, 1](np.zeros(3), np.zeros(4), np.zeros(3))


def operator_product(a, b, out):
    out[0] = a @ b


def dot_product(a, b, out):
    out[0] = np.dot(a, b)


def conjugate_product(a, b, out):
    out[0] = np.vdot(a, b)


def product_into(a, b, out):
    np.dot(a, b, out)


def norm_of_rows(a, b, out):
    out[0] = np.linalg.norm(a, 1)


MATRIX_BY_VECTOR = "void(float64[:, ::1], float64[::1], float64[::1])"
VECTORS = "void(float64[::1], float64[::1], float64[::1])"
NOT_NUMBERS = "void(boolean[::1], float64[::1], float64[::1])"
REFUSED = {
    (operator_product, MATRIX_BY_VECTOR): "a @ b of arrays of 2 and 1 dimensions makes an array, for which a kernel",
    (dot_product, MATRIX_BY_VECTOR): "np.dot of arrays of 2 and 1 dimensions makes an array, for which a kernel",
    (conjugate_product, MATRIX_BY_VECTOR): "np.vdot of arrays of 2 and 1 dimensions makes an array",
    (dot_product, NOT_NUMBERS): "np.dot multiplies arrays of numbers in a kernel, not of bool and float64",
    (product_into, VECTORS): "np.dot has no out= in a kernel: assign the number",
    (norm_of_rows, MATRIX_BY_VECTOR): "np.linalg.norm of an array of 2 dimensions takes neither order nor axis",
    (norm_of_rows, NOT_NUMBERS): "np.linalg.norm takes an array of numbers in a kernel, not of bool",
}


@pytest.mark.parametrize("call", REFUSED, ids=lambda call: f"{call[0].__name__}-{call[1]}")
@pytest.mark.parametrize("scipy", ["missing", "as installed"])
def test_calls_without_a_number_as_result_name_the_reason_and_the_line(call, scipy, monkeypatch):
    if scipy == "missing":  # Numba's own overloads, for hosts, ask for it as soon as they are tried
        monkeypatch.setitem(sys.modules, "scipy", None)
    kernel, signature = call
    with pytest.raises(NumbaError, match=re.escape(REFUSED[call])) as error:
        hip.compile(kernel, signature)
    line = kernel.__code__.co_firstlineno + 1
    assert f'{__file__}", line {line}' in str(error.value) or f"({line})" in str(error.value)


@hip.jit
def norms(x, out):
    out[0] = np.linalg.norm(x)
    out[1] = np.linalg.norm(x, 1)
    out[2] = np.linalg.norm(x, 2)
    out[3] = np.linalg.norm(x, 3)
    out[4] = np.linalg.norm(x, np.inf)
    out[5] = np.linalg.norm(x, -np.inf)
    out[6] = np.linalg.norm(x, 0)


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", DTYPES)
def test_norms(dtype):
    x = vector(9, dtype)
    x[3] = 0
    out = np.zeros(7)
    norms[1, 1](x, out)
    np.testing.assert_allclose(out, [np.linalg.norm(x, o) for o in (None, 1, 2, 3, np.inf, -np.inf, 0)], rtol=1e-5)
    x[5] = -1 if "u" not in dtype else 7
    norms[1, 1](x, out)
    np.testing.assert_allclose(out[4:6], [np.linalg.norm(x, o) for o in (np.inf, -np.inf)], rtol=1e-5)


def test_norm_of_a_matrix():
    @hip.jit
    def kernel(x, out):
        out[0] = np.linalg.norm(x)

    x, out = np.arange(12.0).reshape(3, 4), np.zeros(1)
    kernel[1, 1](x, out)
    np.testing.assert_allclose(out[0], np.linalg.norm(x))


def test_norm_of_nan():
    out = np.zeros(7)
    norms[1, 1](np.array([1.0, np.nan, 3.0]), out)
    assert np.isnan(out[:6]).all()


@hip.jit
def sort(a):
    a.sort()


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "float32", "float64"])
@pytest.mark.parametrize("size", [0, 1, 2, 5, 24, 25, 64, 1000])
def test_sorting(dtype, size):
    a = (np.random.default_rng(size).normal(size=size) * 50).astype(np.int64).astype(dtype)
    if a.dtype.kind == "f":
        a[::7], a[1::7], a[2::7] = np.nan, np.inf, -np.inf
    wanted = np.sort(a)
    sort[1, 1](a)
    np.testing.assert_array_equal(a, wanted)


def test_sorting_other_layouts_and_private_arrays():
    @hip.jit
    def kernel(rows):
        private = hip.local.array(6, np.float64)
        i = hip.grid(1)
        for k in range(6):
            private[k] = rows[i, k]
        private.sort()
        rows[i, ::-2].sort()
        for k in range(0, 6, 2):
            rows[i, k] = private[k]

    rows = np.random.default_rng(3).normal(size=(10, 6))
    wanted = np.sort(rows, axis=1)
    odd = np.sort(rows[:, ::-2], axis=1)[:, ::-1]
    kernel[1, 10](rows)
    np.testing.assert_array_equal(rows[:, ::2], wanted[:, ::2])
    np.testing.assert_array_equal(rows[:, 1::2], odd)


@pytest.mark.parametrize("value", [np.zeros((2, 2)), np.zeros(2, np.complex64)])
def test_what_cannot_be_sorted(value):
    with pytest.raises(NumbaError, match="one dimension with real numbers"):
        sort[1, 1](value)


@pytest.mark.parametrize("target", ["gfx90a", "gfx1201"])
@pytest.mark.sample(1)
def test_for_amd_gpus(target):
    for function, signature in ((dot, "void(float64[::1], float64[::1], float64[::1])"), (sort, "void(float32[::1])")):
        image, _ = hip.compile(function.py_func, signature, target=target, output="object")
        assert image[:4] == b"\x7fELF"
