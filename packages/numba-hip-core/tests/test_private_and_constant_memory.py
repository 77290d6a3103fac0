"""Arrays of a thread's own, and arrays that are part of a kernel."""

import numpy as np
import pytest
from numba import float32, int16
from numba.core.errors import NumbaError

import numba_hip as hip


@hip.jit
def sort_columns(values):
    """Each thread sorts one column in private memory."""
    column = hip.grid(1)
    if column < values.shape[1]:
        own = hip.local.array(16, float32)
        for row in range(16):
            own[row] = values[row, column]
        for i in range(16):
            for j in range(15 - i):
                if own[j] > own[j + 1]:
                    own[j], own[j + 1] = own[j + 1], own[j]
        for row in range(16):
            values[row, column] = own[row]


def test_sorting_in_private_memory():
    values = np.random.default_rng(6).random((16, 300)).astype(np.float32)
    wanted = np.sort(values, axis=0)
    sort_columns[3, 128](values)
    np.testing.assert_array_equal(values, wanted)


@pytest.mark.parametrize("dtype", ["int16", np.int16, int16, np.dtype(np.int16)], ids=str)
@pytest.mark.sample(2)
def test_shapes_and_types_of_private_arrays(dtype):
    @hip.jit
    def kernel(out):
        own = hip.local.array(shape=(2, 3), dtype=dtype)
        for i in range(2):
            for j in range(3):
                own[i, j] = 10 * i + j + hip.threadIdx.x
        for i in range(2):
            for j in range(3):
                out[hip.threadIdx.x, i, j] = own[i, j] + own.size + own.ndim

    out = np.zeros((4, 2, 3), np.int64)
    kernel[1, 4](out)
    i, j = np.indices((2, 3))
    np.testing.assert_array_equal(out, np.arange(4)[:, None, None] + 10 * i + j + 8)


def test_constant_arrays():
    table = np.arange(12, dtype=np.complex64).reshape(3, 4) * 1j

    @hip.jit
    def kernel(out):
        constant = hip.const.array_like(table)
        i, j = hip.grid(2)
        out[i, j] = constant[i, j] + constant[2, 3]

    out = np.zeros((3, 4), np.complex64)
    kernel[1, (3, 4)](out)
    np.testing.assert_array_equal(out, table + table[2, 3])


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("hip.local.array(n, float32)", "the shape must consist of constants"),
        ("hip.local.array(-1, float32)", "extent -1; it must be an integer, 0 or more"),
        ("hip.local.array((2, 2.5), float32)", "the shape has a float64"),
        ("hip.local.array(4, 'no type')", "Invalid NumPy dtype specified: 'no type'"),
        ("hip.local.array(4, 7)", "the dtype has to be a type of numbers"),
        ("hip.local.array(4, float)", "hip.local.array: .*, got Python's float; pass np.float64, or np.float32"),
        ("hip.local.array(n / 2, float32)", "hip.local.array: the shape has a float64; divide with // instead"),
        ("hip.shared.array((2, 8 / 2), float32)", "hip.shared.array: the shape has a float64; divide with //"),
        ("hip.const.array_like([1, 2])", r"an array that the kernel captured, got list.*; make .* np.array\("),
        ("hip.shared.array(4, int)", "hip.shared.array: .*, got Python's int; pass np.int64, or np.int32"),
        ("hip.shared.array(4, bool)", "got Python's bool; pass np.bool_"),
        ("hip.local.array(4, complex)", "got Python's complex; pass np.complex128, or np.complex64"),
        ("hip.local.array(2**40, float32)", "4398046511104 bytes; at most"),
        ("hip.shared.array(4, float32, 3)", "hip.shared.array: Alignment must be a power of two, got 3"),
        ("hip.shared.array(0, float32, -8)", "hip.shared.array: Alignment must be a power of two, got -8"),
        ("hip.local.array(4, float32, 0)", "hip.local.array: Alignment must be a power of two, got 0"),
        ("hip.local.array(4, float32, 'wide')", "RequireLiteralValue: .*alignment must be a constant integer"),
        ("hip.local.array(4, float32, 16.0)", "RequireLiteralValue: .*alignment must be a constant integer"),
        ("hip.shared.array(2**34, float32)", "bytes; at most"),
        ("hip.const.array_like(n)", "takes an array that the kernel captured"),
    ],
)
def test_misuse(source, says):
    namespace = {"hip": hip, "float32": float32}
    exec(f"def kernel(n):\n    {source}", namespace)
    with pytest.raises(NumbaError, match=says):
        hip.jit(namespace["kernel"])[1, 1](3)


def test_private_arrays_are_aligned():
    @hip.jit
    def kernel(out):
        part = hip.local.array(3, float32, alignment=64)
        part[1] = hip.grid(1)
        out[hip.grid(1)] = part[1]

    out = np.zeros(4)
    kernel[1, 4](out)
    assert out.tolist() == [0, 1, 2, 3]
    (args,) = kernel.signatures
    unoptimised = hip.jit(kernel.py_func, opt=False).compile(args).llvm()
    assert "[3 x float], align 64" in unoptimised
    with pytest.raises(ValueError, match="Alignment must be a power of two, got 3"):

        @hip.jit("void(float64[:])")
        def odd(out):
            hip.local.array(3, float32, alignment=3)
