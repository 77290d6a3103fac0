"""NumPy's ufuncs in kernels, each loop against NumPy; and that each compiles for AMD GPUs."""

import warnings

import numpy as np
import pytest
from numba.core import types
from numba.core.errors import NumbaError, TypingError
from numba.np import ufunc_db
from numba.np.numpy_support import from_dtype

import numba_hip as hip

UFUNCS = sorted(ufunc_db.get_ufuncs(), key=lambda ufunc: ufunc.__name__)
LETTERS = frozenset("?biLfdFDmM")
"""Types that are tried: one of each kind and size would repeat the same code."""

MISSING_FROM_NUMPY = {("negative", "?->?"), ("positive", "?->?"), ("subtract", "??->?")}
ROUNDED = {("divide", "bb->d")}
"""Loops for which Numba computes in float32, as precise as the operands."""


def kernel_of(ufunc):
    names = [f"a{n}" for n in range(ufunc.nargs)]
    namespace = {"np": np}
    exec(f"def kernel({', '.join(names)}):\n    np.{ufunc.__name__}({', '.join(names)})", namespace)
    return namespace["kernel"]


def column(letter, ufunc, rng):
    dtype = np.dtype({"m": "m8[s]", "M": "M8[s]"}.get(letter, letter))
    if dtype.kind == "f":
        return np.concatenate([rng.uniform(-3, 3, 8), rng.uniform(0, 1, 4), [0, 1, -1, 2]]).astype(dtype)
    if dtype.kind == "c":
        return (rng.uniform(-2, 2, 16) + 1j * rng.uniform(-2, 2, 16)).astype(dtype)
    positive = dtype.kind in "buM" or ufunc in (np.power, np.left_shift, np.right_shift, np.reciprocal)
    low = 1 if dtype.kind == "m" or ufunc is np.reciprocal else 0 if positive else -6
    return rng.integers(low, 2 if dtype.kind == "b" else 7, 16).astype(dtype)


def cases(ufunc):
    """Operands and results of every loop that NumPy has, too."""
    rng = np.random.default_rng(1)
    for loop in ufunc_db.get_ufunc_info(ufunc):
        if (ufunc.__name__, loop) in MISSING_FROM_NUMPY or not set(loop) <= LETTERS | {"-", ">"}:
            continue
        operands = [column(letter, ufunc, rng) for letter in loop.partition("->")[0]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # divisions by zero, logarithms of negative numbers
            wanted = ufunc(*operands)
        yield loop, operands, wanted if isinstance(wanted, tuple) else (wanted,)


@pytest.mark.sample(2)
@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda ufunc: ufunc.__name__)
def test_every_loop_of_a_ufunc(ufunc):
    kernel = hip.jit(kernel_of(ufunc))
    for loop, operands, wanted in cases(ufunc):
        results = [np.zeros_like(array) for array in wanted]
        kernel[1, 1](*operands, *results)
        single = {"f", "F"} & set(loop) or (ufunc.__name__, loop) in ROUNDED
        for result, array in zip(results, wanted, strict=True):
            if array.dtype.kind in "fc":
                close = {"rtol": 3e-5, "atol": 1e-6} if single else {"rtol": 1e-10, "atol": 1e-13}
                np.testing.assert_allclose(result, array, **close, err_msg=loop)
            else:
                np.testing.assert_array_equal(result, array, loop)


@pytest.mark.long
@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("kind", [types.float32, types.float64, types.complex128, types.int32], ids=str)
def test_ufuncs_for_amd_gpus(kind, target):
    letter = np.dtype(str(kind)).char
    for ufunc in UFUNCS:
        loop = next((text for text in ufunc.types if text in (f"{letter}->{letter}", f"{letter * 2}->{letter}")), None)
        if loop is None or loop not in ufunc_db.get_ufunc_info(ufunc):
            continue
        array = types.Array(kind, 1, "C")
        image, _ = hip.compile(kernel_of(ufunc), (array,) * ufunc.nargs, target=target, output="object")
        assert image[:4] == b"\x7fELF"


@pytest.mark.sample(3)
@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda ufunc: ufunc.__name__)
def test_every_loop_compiles_for_an_amd_gpu(ufunc):
    for loop, operands, wanted in cases(ufunc):
        kinds = tuple(types.Array(from_dtype(array.dtype), 1, "C") for array in (*operands, *wanted))
        image, _ = hip.compile(kernel_of(ufunc), kinds, target="gfx90a", output="object")
        assert image[:4] == b"\x7fELF", loop


def test_ufuncs_on_numbers():
    @hip.jit
    def kernel(x, out):
        i = hip.grid(1)
        out[i] = np.sin(x[i]) + np.maximum(x[i], 0.5) * np.sqrt(np.float32(2)) + np.sign(-x[i])

    x = np.linspace(-2, 2, 50)
    out = np.zeros(50)
    kernel[1, 50](x, out)
    np.testing.assert_allclose(out, np.sin(x) + np.maximum(x, 0.5) * np.sqrt(np.float32(2)) + np.sign(-x), rtol=1e-6)


def test_arrays_are_broadcast_against_the_result():
    @hip.jit
    def kernel(column, row, out):
        np.add(column, row, out)
        np.multiply(out, 2.0, out)

    column, row, out = np.arange(3.0).reshape(3, 1), np.arange(4.0), np.zeros((3, 4))
    kernel[1, 1](column, row, out)
    np.testing.assert_array_equal(out, (column + row) * 2)
    across = np.zeros((4, 3)).T
    kernel[1, 1](column, row, across)
    np.testing.assert_array_equal(across, out)


def test_each_thread_works_on_rows_of_its_own():
    @hip.jit
    def kernel(x, out):
        i = hip.grid(1)
        np.exp(x[i], out[i])
        np.multiply(out[i], x[i, 0], out[i])

    x = np.linspace(0, 1, 40).reshape(8, 5)
    out = np.zeros_like(x)
    kernel[2, 4](x, out)
    np.testing.assert_allclose(out, np.exp(x) * x[:, :1], rtol=1e-14)


def test_operands_that_do_not_fit_raise():
    @hip.jit(exceptions=True)
    def kernel(x, y, out):
        np.add(x, y, out)

    out = np.zeros(4)
    with pytest.raises(ValueError, match="operands could not be broadcast together"):
        kernel[1, 1](np.zeros(3), np.zeros(4), out)
    assert (out == 0).all()


@pytest.mark.parametrize("target", ["cpu", "gfx942"])
def test_an_array_that_would_have_to_be_allocated(target):
    def kernel(x, out):
        out[0] = np.sin(x)[0]

    with pytest.raises(NumbaError, match=r"cannot allocate memory: pass an array for the result") as caught:
        hip.compile(kernel, "(float64[::1], float64[::1])", target=target, output="llvm")
    assert "test_ufuncs.py" in str(caught.value), "the place in the user's file"


def test_wrong_operands():
    with pytest.raises(TypingError, match="explicit output that is not an array"):
        hip.compile(lambda x, out: np.sin(x, 1.0), "(float64[::1], float64[::1])", target="cpu", output="llvm")
    with pytest.raises(NumbaError, match="too many arguments|not supported|No implementation"):
        hip.compile(lambda x, out: np.sin(x, out, out), "(float64[::1], float64[::1])", target="cpu", output="llvm")
