"""What kernels are passed of an array, and what they know of it nevertheless."""

from __future__ import annotations

import numpy as np
import pytest
from numba import from_dtype, hip, types

from numba_hip.bfloat import bfloat16
from numba_hip.float8 import float8_e5m2


@hip.jit
def tell(array, out):
    """Everything that can be asked of an array of two axes."""
    if hip.grid(1) == 0:
        out[0], out[1] = array.shape
        out[2], out[3] = array.strides
        out[4], out[5], out[6], out[7] = array.size, array.itemsize, array.nbytes, array.ndim
        total = 0
        for i in range(array.shape[0]):
            for j in range(array.shape[1]):
                total += array[i, j] * (i + 10 * j + 1)
        out[8] = total
        out[9] = array[-1, -1]


def expected_of(array: np.ndarray) -> list[int]:
    weights = np.add.outer(np.arange(array.shape[0]), 10 * np.arange(array.shape[1])) + 1
    return [
        *array.shape, *array.strides, array.size, array.itemsize, array.nbytes, 2, int((array * weights).sum()),
        int(array[-1, -1]),
    ]  # fmt: skip


ARRAYS = {
    "C": np.arange(35, dtype=np.int32).reshape(7, 5),
    "F": np.asfortranarray(np.arange(35, dtype=np.int16).reshape(7, 5)),
    "A": np.arange(140, dtype=np.int64).reshape(14, 10)[::2, 1::2],
}


@pytest.mark.parametrize("order", ARRAYS)
@pytest.mark.sample(2)
def test_kernels_know_all_of_an_array(order):
    array, out = ARRAYS[order], np.zeros(10, np.int64)
    whole = hip.to_device(np.ascontiguousarray(array) if order == "C" else array if order == "F" else array.base)
    given = whole.reshape(14, 10)[::2, 1::2] if order == "A" else whole
    tell[1, 1](given, out)
    assert given.strides == array.strides
    assert out.tolist() == expected_of(array)


@pytest.mark.parametrize("order", ARRAYS)
def test_any_array_for_a_kernel_of_any_strides(order):
    """A kernel that was compiled for any strides is passed all of them, whatever the array is."""
    kernel = hip.jit("(int64[:, :], int64[::1])")(tell.py_func)
    array, out = ARRAYS[order].astype(np.int64, order="K"), np.zeros(10, np.int64)
    kernel[1, 1](hip.to_device(array), out)
    assert out.tolist() == expected_of(array)


def test_arrays_in_tuples():
    @hip.jit
    def add(pair, scale, out):
        i = hip.grid(1)
        if i < out.size:
            out[i] = pair[0][i, 1] * scale + pair[1][i]

    matrix, vector = np.asfortranarray(np.arange(20.0).reshape(10, 2)), np.arange(10, dtype=np.float32)
    out = np.zeros(10)
    add[1, 16]((hip.to_device(matrix), hip.to_device(vector)), 3, out)
    np.testing.assert_array_equal(out, matrix[:, 1] * 3 + vector)


@pytest.mark.parametrize("target", ["cpu", "gfx942"])
@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("int8[::1]", 2), ("int8[:]", 3), ("int8[:, ::1]", 4), ("int8[::1, :]", 4), ("int8[:, :]", 5),
        ("float64[:, :, ::1]", 6), ("Tuple((int8[::1], float32))", 3),
    ],
)  # fmt: skip
def test_what_is_passed(kind, count, target):
    """The address, the extents, and the strides but that of the axis whose elements lie side by side."""

    def kernel(array):
        pass

    code = hip.jit(kernel).compile(f"({kind},)", target)
    assert code.parameters[0].type == "ptr"
    assert len(code.parameters) == count
    assert [parameter.offset for parameter in code.parameters] == [8 * place for place in range(count)]


def test_an_array_without_axes():
    @hip.jit
    def double(array):
        array[()] *= 2

    array = hip.to_device(np.array(21))
    double[1, 1](array)
    assert int(array.copy_to_host()) == 42
    (code,) = double.overloads.values()
    assert code.argument_types == (types.Array(types.int64, 0, "C"),)
    assert len(code.parameters) == 1


OPEN = {
    "(float32[:], int64, float64[:, :])": ((2, 4), (8, 8)),
    "(float32[::1], complex64[:], int8[:, ::1])": ((4, 8),),
    "(UniTuple(int16[:], 2), boolean, float64[:])": ((2, 2), (5, 2), (9, 8)),
    "(Tuple((int32, uint8[:, :, :])), complex128, float16[:])": ((7, 1), (12, 2)),
    "(int64[::1, :], int64[:, ::1], int64)": (),
}


@pytest.mark.parametrize("kinds", OPEN)
def test_innermost_strides_that_a_signature_leaves_open(kinds):
    code = hip.jit(lambda one, other, last: None).compile(kinds)
    assert code.kernel.likely_arguments == OPEN[kinds]


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        (bfloat16, 2), (float8_e5m2, 1), (types.float16, 2), (types.boolean, 1), (types.complex128, 16),
        (types.NPDatetime("D"), 8), (from_dtype(np.dtype([("a", "i4"), ("b", "f8")])), 12),
        (types.UnicodeCharSeq(5), 20),
    ],
    ids=str,
)  # fmt: skip
def test_the_size_of_any_element_is_known(kind, size):
    code = hip.jit(lambda array: None).compile((types.Array(kind, 1, "A"),))
    assert code.kernel.likely_arguments == ((2, size),)


def test_innermost_strides_of_further_arguments():
    code = hip.jit(lambda first, *more: None).compile("(float32[:], int64, float64[:])")
    assert code.kernel.likely_arguments == ((2, 4), (6, 8))


@hip.jit("(float32[:], float32[:], float32[:])")
def add_open(x, y, out):
    i = hip.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


@hip.jit("(float32[:], float32[:], float32[:])")
def sum_open(x, y, out):
    """The product of *x* and *y*: each thread every so many, and a tree in shared memory."""
    parts = hip.shared.array(64, types.float32)
    t = hip.threadIdx.x
    total = types.float32(0)
    for i in range(hip.grid(1), x.size, hip.gridsize(1)):
        total += x[i] * y[i]
    parts[t] = total
    hip.syncthreads()
    half = 32
    while half > 0:
        if t < half:
            parts[t] += parts[t + half]
        hip.syncthreads()
        half //= 2
    if t == 0:
        hip.atomic.add(out, 0, parts[0])


def views(size: int) -> dict[str, np.ndarray]:
    """Arrays of *size* small whole numbers whose strides differ."""
    base = np.random.default_rng(5).integers(-9, 9, 3 * size).astype(np.float32)
    return {
        "contiguous": base[:size],
        "every third": base[::3],
        "reversed": base[:size][::-1],
        "pairs": base[1::2][:size],
    }


@pytest.mark.parametrize("right", ["contiguous", "every third", "reversed"])
@pytest.mark.parametrize("left", ["contiguous", "every third", "reversed", "pairs"])
@pytest.mark.sample(4)
def test_arrays_of_any_strides_for_signatures_that_leave_them_open(left, right):
    size = 1000
    x, y = views(size)[left], views(size)[right]
    given = [hip.to_device(array.base)[_slice_of(array, size)] for array in (x, y)]
    out, room = hip.to_device(np.zeros(size, np.float32)), hip.to_device(np.full(2 * size, -1, np.float32))
    add_open[4, 256](*given, out)
    np.testing.assert_array_equal(out.copy_to_host(), x + y)
    add_open[4, 256](*given, room[::2])
    np.testing.assert_array_equal(room.copy_to_host(), np.stack([x + y, np.full(size, -1)], 1).ravel())
    total = hip.to_device(np.zeros(1, np.float32))
    sum_open[3, 64](*given, total)
    assert total.copy_to_host()[0] == float(x @ y)


def _slice_of(array: np.ndarray, size: int) -> slice:
    step = array.strides[0] // array.itemsize
    first = (array.ctypes.data - array.base.ctypes.data) // array.itemsize
    end = first + step * size
    return slice(first, end if end >= 0 else None, step)


@pytest.mark.parametrize("order", ["C", "F", "A", "repeated"])
def test_tables_of_any_strides_for_signatures_that_leave_them_open(order):
    kernel = hip.jit("(int64[:, :], int64[:, :])")(_double)
    table = {**ARRAYS, "repeated": np.broadcast_to(np.arange(5), (7, 5))}[order].astype(np.int64, order="K")
    out = hip.to_device(np.zeros(table.shape, np.int64, order="F" if order == "F" else "C"))
    kernel[(1, 1), (8, 8)](hip.to_device(table), out)
    np.testing.assert_array_equal(out.copy_to_host(), 2 * table)


def _double(table, out):
    i, j = hip.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] = 2 * table[i, j]


@hip.jit
def number_elements(out):
    p = hip.grid(1)
    row = p // out.shape[2]
    if p < out.size:
        out[row // out.shape[1], row % out.shape[1], p % out.shape[2]] = p


@pytest.mark.parametrize("target", ["cpu", "gfx942"])
def test_no_extent_is_negative(target):
    """Python's quotients are those of numbers without sign, then, and indices are not counted from the end."""
    text = number_elements.inspect_llvm("(int64[:, :, ::1],)", target=target)
    assert "udiv" in text
    assert "sdiv" not in text
    assert "srem" not in text
