"""Vectors of any shape, loaded from arrays and stored to them; arrays of vectors; complex numbers made of vectors."""

import numpy as np
import pytest
from numba import types
from numba.core.errors import NumbaError

import numba_hip as hip
from numba_hip import config


def move(a, out):
    i = hip.threadIdx.x
    v = hip.vector.load(a, i * 4, 4)
    hip.vector.store(out, i * 4, v)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "bool", "complex64"])
def test_every_type_of_number(dtype):
    a = np.arange(32).astype(dtype)
    out = np.zeros(32, dtype)
    hip.jit(move)[1, 8](a, out)
    np.testing.assert_array_equal(out, a)


@hip.jit
def shapes(rows, a, reverse, out):
    view = rows[1:, 2:]
    first = hip.vector.load(view, (0, 0), 2, alignment=8)
    hip.vector.store(out, 0, first + 1, alignment=8)
    hip.vector.store(out, 2, hip.vector.load(rows, 8, 2))  # the elements of the array, counted
    square = hip.vector.load(rows, (1, 3), (2, 2))
    hip.vector.store(out, 4, hip.float64x4(square))
    out[8] = (square * 2 - square).y
    hip.vector.store(out, 10, hip.vector.load(a, -4, (2, 2)) * 2)
    hip.vector.store(reverse, 2, hip.vector.load(a, 0, 3))
    hip.vector.store(out, 14, hip.vector.load(a, 1, 2, None))


def test_indices_and_shapes():
    rows, a = np.arange(35.0).reshape(5, 7), np.arange(10.0)
    reverse, out = np.zeros(6), np.zeros(16)
    on_device = hip.to_device(reverse)
    shapes[1, 1](rows, a, on_device[::-1], out)
    assert out.tolist() == [10, 11, 8, 9, 10, 11, 17, 18, 11, 0, 12, 14, 16, 18, 1, 2]
    assert on_device.copy_to_host().tolist() == [0, 2, 1, 0, 0, 0]


def square(a, out):
    hip.vector.store(out, (4 * hip.threadIdx.x, 0), hip.vector.load(a, (4 * hip.threadIdx.x, 0), (4, 4)))


def test_two_axes():
    a = np.arange(64, dtype=np.float32).reshape(16, 4)
    out = np.zeros_like(a)
    hip.jit(square)[1, 4](a, out)
    np.testing.assert_array_equal(out, a)


@hip.jit("void(CPointer(int32), int32[::1])")
def behind_a_pointer(pointer, out):
    hip.vector.store(out, 0, hip.vector.load(pointer, 2, 4, alignment=8))
    hip.vector.store(pointer, 0, hip.int32x2(7, 8))


def test_pointers():
    a, out = hip.to_device(np.arange(8, dtype=np.int32)), np.zeros(4, np.int32)
    behind_a_pointer[1, 1](a.address, out)
    assert out.tolist() == [2, 3, 4, 5]
    assert a.copy_to_host()[:3].tolist() == [7, 8, 2]


def aligned(a, out):
    hip.vector.store(out, 0, hip.vector.load(a, 4 * hip.threadIdx.x, 4, 16), 16)


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100", "gfx1201"])
def test_one_access_of_an_amd_gpu(target):
    text, _ = hip.compile(aligned, "(float32[::1], float32[::1])", target=target, output="asm")
    wide = ("_dwordx4 ", "_b128 ")
    assert any(f"global_load{one}" in text for one in wide)
    assert any(f"global_store{one}" in text for one in wide)


@pytest.mark.cpu_device("it checks bounds")
def test_bounds_are_checked():
    kernel = hip.jit(boundscheck=True)(move)
    with pytest.raises(IndexError, match=r"tid=\[7, 0, 0\].* index 31 is out of range of dimension 0 with extent 31"):
        kernel[1, 8](np.zeros(31, np.float32), np.zeros(32, np.float32))
    kernel[1, 8](np.zeros(32, np.float32), np.zeros(32, np.float32))


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("hip.vector.load(a, 0, n)", "the shape must consist of constants"),
        ("hip.vector.load(a, 0, 0)", "a vector has 1 to 256 components"),
        ("hip.vector.load(a, 0, 1000)", "a vector has 1 to 256 components"),
        ("hip.vector.load(a, (0, 0), 2)", "an array of 1 dimensions cannot be indexed"),
        ("hip.vector.load(a, 0.5, 2)", "the index has to be an integer or a tuple of integers"),
        ("hip.vector.load(c, 0, 2)", "one index counts the elements of an array in C order"),
        ("hip.vector.load(c, (0, 0), (1, 1, 2))", "has more axes than"),
        ("hip.vector.load(n, 0, 2)", "has to be an array of numbers or a pointer"),
        ("hip.vector.load(a, 0, 2, n)", "alignment must be a constant integer"),
        ("hip.vector.load(a, 0, 2, 3)", "Alignment must be a power of two"),
        ("hip.vector.store(a, 0, n)", "the third argument has to be a vector"),
        ("hip.vector.store(r, 0, hip.int2(1))", "the array is read-only"),
    ],
)
def test_what_is_refused(source, says):
    namespace = {"hip": hip}
    exec(f"def kernel(a, c, r, n):\n    {source}", namespace)
    readonly = types.Array(types.int32, 1, "C", readonly=True)
    kinds = (types.int32[::1], types.int32[::1, :], readonly, types.int64)
    with pytest.raises((NumbaError, ValueError), match=says):
        hip.compile(namespace["kernel"], kinds, target="cpu", output="llvm")


def views(out, halves, rows):
    pairs = out.view(hip.float32x2)
    pairs[1] = hip.float32x2(1.5, 2.5)
    pairs[2] = hip.float2(pairs.shape[0])
    out[:6].view(hip.float32x3)[0] = hip.float32x3(7, 8, 9)
    halves.view(hip.half4)[1] = hip.half4(1, 2, 3, 4)
    rows.view(hip.double2)[1, 1] = rows.view(hip.double2)[0, 0] * 2


def test_arrays_as_arrays_of_vectors():
    out, halves, rows = np.zeros(8, np.float32), np.zeros(8, np.float16), np.ones((2, 4))
    hip.jit(views)[1, 1](out, halves, rows)
    assert out.tolist() == [7, 8, 9, 2.5, 4, 4, 0, 0]
    assert halves.tolist() == [0, 0, 0, 0, 1, 2, 3, 4]
    assert rows.tolist() == [[1, 1, 1, 1], [1, 1, 2, 2]]
    hip.compile(views, "(float32[::1], float16[::1], float64[:,::1])", target="gfx942", output="object")


def complex_numbers(out64, out128, parts):
    out64[0] = complex(hip.float2(1.5, 2.5))
    out64[1] = np.complex64(hip.half2(1, 2)) / 4
    out64[2] = np.complex64(1.5, -2.5)
    out64[3] = np.complex64(out64[0])
    out128[0] = complex(hip.int2(1, 2))
    out128[1] = np.complex128(hip.float32x2(3, 4))
    out128[2] = np.complex128(True, 2)
    shared = hip.shared.array(1, hip.float64x2)
    shared[0] = out128[1]
    out128[3] = shared[0]
    out128[4] = np.complex128(7)
    vector = hip.float2(out64[2])
    parts[0], parts[1] = vector.x, vector.y


def test_complex_numbers_and_vectors_of_two():
    out64, out128, parts = np.zeros(4, np.complex64), np.zeros(5, np.complex128), np.zeros(2)
    hip.jit(complex_numbers)[1, 1](out64, out128, parts)
    assert out64.tolist() == [1.5 + 2.5j, 0.25 + 0.5j, 1.5 - 2.5j, 1.5 + 2.5j]
    assert out128.tolist() == [1 + 2j, 3 + 4j, 1 + 2j, 3 + 4j, 7]
    assert parts.tolist() == [1.5, -2.5]
    hip.compile(complex_numbers, "(complex64[::1], complex128[::1], float64[::1])", target="gfx942", output="object")


@pytest.mark.parametrize(
    "source",
    [
        "out[0] = complex(hip.float4(1))",
        "out[0] = np.complex64(hip.float4(1))",
        "out[0] = np.complex64(1, 1j)",
        "out[0] = np.complex64(1, 2, 3)",
        "out[0] = hip.float4(1)",
    ],
)
def test_what_is_no_complex_number(source):
    namespace = {"hip": hip, "np": np}
    exec(f"def kernel(out):\n    {source}", namespace)
    with pytest.raises(NumbaError):
        hip.compile(namespace["kernel"], "(complex64[::1],)", target="cpu", output="llvm")


def test_simulated():
    rows, out = np.arange(8.0).reshape(2, 4), np.zeros(4)
    with config.simulator.scope(True):

        @hip.jit
        def kernel(rows, out):
            vector = hip.vector.load(rows, (1, 1), 2, alignment=8)
            hip.vector.store(out, 1, hip.vector.load(rows, 5, 2))
            out[0] = vector.y
            out[3] = hip.float2(7).y

        kernel[1, 1](rows, out)
    assert out.tolist() == [6, 5, 6, 7]
