"""Kernels on the current device, their results against NumPy."""

import collections
import enum
import inspect
import math
import sys

import numpy as np
import pytest
from numba import float32, int32, njit, void

import numba_hip as hip
from numba_hip.errors import KernelArgumentError

THREADS = 64


def blocks(count):
    return -(-count // THREADS)


@hip.jit
def saxpy(a, x, y, out):
    i = hip.grid(1)
    if i < out.size:
        out[i] = a * x[i] + y[i]


@pytest.mark.sample(6)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.int32, np.uint16, np.int64, np.complex64])
@pytest.mark.parametrize("count", [1, 63, 64, 1000])
def test_saxpy_of_host_arrays(dtype, count):
    rng = np.random.default_rng(count)
    x, y = (rng.integers(0, 9, count).astype(dtype) for _ in range(2))
    out = np.zeros(count, dtype)
    before = x.copy(), y.copy()
    saxpy[blocks(count), THREADS](dtype(3), x, y, out)
    np.testing.assert_array_equal(out, dtype(3) * x + y)
    np.testing.assert_array_equal((x, y), before)


def test_device_arrays_stay_on_the_device():
    x = np.arange(100, dtype=np.float32)
    device_x, out = hip.to_device(x), hip.device_array(100, np.float32)
    saxpy[2, THREADS](np.float32(2), device_x, device_x, out)
    np.testing.assert_array_equal(out.copy_to_host(), 3 * x)
    saxpy[2, THREADS](np.float32(1), out, out, out)
    np.testing.assert_array_equal(out.copy_to_host(), 6 * x)


@hip.jit
def indices(out):
    i, j, k = hip.grid(3)
    sx, sy, sz = hip.gridsize(3)
    if i < out.shape[0] and j < out.shape[1] and k < out.shape[2]:
        out[i, j, k, 0] = hip.threadIdx.x + 10 * hip.threadIdx.y + 100 * hip.threadIdx.z
        out[i, j, k, 1] = hip.blockIdx.x + 10 * hip.blockIdx.y + 100 * hip.blockIdx.z
        out[i, j, k, 2] = hip.blockDim.x + 10 * hip.blockDim.y + 100 * hip.blockDim.z
        out[i, j, k, 3] = hip.gridDim.x + 10 * hip.gridDim.y + 100 * hip.gridDim.z
        out[i, j, k, 4] = sx + 100 * sy + 10000 * sz


def test_three_dimensional_indices():
    grid, block = (2, 3, 4), (4, 3, 2)
    extent = tuple(g * b for g, b in zip(grid, block, strict=True))
    out = np.full((*extent, 5), -1)
    indices[grid, block](out)
    i, j, k = np.indices(extent)
    np.testing.assert_array_equal(out[..., 0], i % 4 + 10 * (j % 3) + 100 * (k % 2))
    np.testing.assert_array_equal(out[..., 1], i // 4 + 10 * (j // 3) + 100 * (k // 2))
    assert (out[..., 2] == 4 + 30 + 200).all()
    assert (out[..., 3] == 2 + 30 + 400).all()
    assert (out[..., 4] == 8 + 900 + 80000).all()


@hip.jit
def stride_loop(out):
    for i in range(hip.grid(1), out.size, hip.gridsize(1)):
        out[i] += i


def test_a_grid_stride_loop_covers_everything_once():
    out = np.zeros(10_007, np.int64)
    stride_loop[3, 50](out)
    np.testing.assert_array_equal(out, np.arange(10_007))


@njit
def clip(value, low, high):
    return min(max(value, low), high)


@hip.jit(device=True)
def factorial(n):
    if n <= 1:
        return 1
    return n * factorial(n - 1)


@hip.jit(device=True)
def sum_and_product(values):
    total, product = 0.0, 1.0
    for value in values:
        total += value
        product *= value
    return total, product


@hip.jit
def calls_others(x, clipped, factorials, pairs):
    i = hip.grid(1)
    if i >= x.size:
        return
    clipped[i] = clip(x[i], -1.0, 1.0)
    factorials[i] = factorial(i)
    total, product = sum_and_product((x[i], 2.0, 3.0))
    pairs[i, 0] = total
    pairs[i, 1] = product


def test_functions_called_from_kernels():
    x = np.linspace(-3, 3, 12)
    clipped, factorials, pairs = np.empty(12), np.empty(12, np.int64), np.empty((12, 2))
    calls_others[1, 32](x, clipped, factorials, pairs)
    np.testing.assert_array_equal(clipped, np.clip(x, -1, 1))
    np.testing.assert_array_equal(factorials, [math.factorial(n) for n in range(12)])
    np.testing.assert_allclose(pairs, np.stack([x + 5, 6 * x], axis=1), rtol=1e-15)


@hip.jit
def thread_index_in_a_device_function(out):
    out[hip.grid(1)] = _reversed_thread()


@hip.jit(device=True)
def _reversed_thread():
    return hip.blockDim.x - 1 - hip.threadIdx.x


def test_device_functions_know_their_thread():
    out = np.zeros(40, np.int32)
    thread_index_in_a_device_function[4, 10](out)
    np.testing.assert_array_equal(out, np.tile(np.arange(10)[::-1], 4))


@hip.jit
def copy_2d(source, target):
    i, j = hip.grid(2)
    if i < source.shape[0] and j < source.shape[1]:
        target[i, j] = source[i, j] + source[-1, -1]


LAYOUTS = {
    "C": lambda a: a,
    "F": np.asfortranarray,
    "every other column": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "backwards": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "transposed": lambda a: np.ascontiguousarray(a.T).T,
    "offset": lambda a: np.pad(a, 1)[1:-1, 1:-1],
}


@pytest.mark.parametrize("source_layout", LAYOUTS)
@pytest.mark.parametrize("target_layout", LAYOUTS)
@pytest.mark.sample(22)
def test_arrays_of_any_layout(source_layout, target_layout):
    values = np.arange(30.0).reshape(5, 6)
    source = LAYOUTS[source_layout](values)
    target = LAYOUTS[target_layout](np.zeros((5, 6)))
    copy_2d[(1, 1), (8, 8)](source, target)
    np.testing.assert_array_equal(target, values + 29)


def test_slices_of_device_arrays():
    values = np.arange(48, dtype=np.float32).reshape(8, 6)
    device = hip.to_device(values)
    copy_2d[(1, 1), (8, 8)](device[1:4, ::2], device[4:7, 1::2])
    expected = values.copy()
    expected[4:7, 1::2] = values[1:4, ::2] + values[3, 4]
    np.testing.assert_array_equal(device.copy_to_host(), expected)


def test_zero_dimensional_and_empty_arrays():
    @hip.jit
    def kernel(scalar, empty):
        if hip.grid(1) == 0:
            scalar[()] = 7 + empty.size

    scalar = np.zeros((), np.int32)
    kernel[1, 1](scalar, np.zeros((0, 3)))
    assert scalar == 7


Point = collections.namedtuple("Point", "x y")


@hip.jit
def of_tuples(out, pair, point, nested):
    if hip.grid(1) == 0:
        out[0] = pair[0]
        out[1] = pair[1]
        out[2] = point.x * point.y
        out[3] = nested[1][0] + nested[0]


def test_tuples_and_named_tuples():
    out = np.zeros(4)
    of_tuples[1, 1](out, (1, 2.5), Point(3.0, 4.0), (5, (6.0, np.int8(7))))
    np.testing.assert_array_equal(out, [1, 2.5, 12, 11])


def test_arrays_in_tuples_come_back():
    @hip.jit
    def kernel(arrays):
        i = hip.grid(1)
        arrays[1][i] = 2 * arrays[0][i]

    source, target = np.arange(8.0), np.zeros(8)
    kernel[1, 8]((source, target))
    np.testing.assert_array_equal(target, 2 * source)


@pytest.mark.parametrize(
    "value",
    [
        True,
        -5,
        2**63 + 5,
        1.5,
        2 + 3j,
        np.float32(0.1),
        np.uint8(200),
        np.int16(-300),
        np.complex64(1 - 1j),
        np.bool_(True),
    ],
)
def test_scalars_of_every_kind(value):
    @hip.jit
    def kernel(out, given):
        out[0] = given

    out = np.zeros(1, np.asarray(value).dtype)
    kernel[1, 1](out, value)
    assert out[0] == value


def test_dates_and_durations():
    @hip.jit
    def kernel(out, start, step):
        out[hip.grid(1)] = start + hip.grid(1) * step

    out = np.zeros(3, "M8[h]")
    kernel[1, 3](out, np.datetime64("2024-02-28T22", "h"), np.timedelta64(1, "h"))
    assert list(out) == list(np.arange("2024-02-28T22", "2024-02-29T01", dtype="M8[h]"))


def test_captured_arrays_and_values_are_constants():
    table = np.arange(12, dtype=np.float32).reshape(3, 4)
    column = np.asfortranarray(table)[:, ::2]
    scale = 10

    @hip.jit
    def kernel(out):
        i, j = hip.grid(2)
        out[i, j] = table[i, j] * scale + column[i, j // 2]

    out = np.zeros((3, 4))
    kernel[1, (3, 4)](out)
    np.testing.assert_array_equal(out, table * 10 + np.repeat(column, 2, axis=1))


def test_default_arguments_are_filled_in():
    @hip.jit
    def kernel(out, factor=3, offset=0.5):
        out[hip.grid(1)] = hip.grid(1) * factor + offset

    out = np.zeros(4)
    kernel[1, 4](out)
    np.testing.assert_array_equal(out, np.arange(4) * 3 + 0.5)
    kernel[1, 4](out, 2)
    np.testing.assert_array_equal(out, np.arange(4) * 2 + 0.5)


def test_integer_arithmetic_is_pythons():
    @hip.jit
    def kernel(a, b, quotient, remainder, power):
        i = hip.grid(1)
        quotient[i] = a[i] // b[i]
        remainder[i] = a[i] % b[i]
        power[i] = a[i] ** 3

    a, b = (m.ravel() for m in np.meshgrid(np.arange(-7, 8), [-3, -2, -1, 1, 2, 5]))
    quotient, remainder, power = (np.zeros_like(a) for _ in range(3))
    kernel[1, a.size](a, b, quotient, remainder, power)
    np.testing.assert_array_equal(quotient, a // b)
    np.testing.assert_array_equal(remainder, a % b)
    np.testing.assert_array_equal(power, a**3)


def test_integer_division_by_zero_gives_zero_as_in_numpy():
    @hip.jit
    def kernel(a, out):
        out[hip.grid(1)] = a[hip.grid(1)] // 0 + a[hip.grid(1)] % 0

    out = np.ones(3, np.int64)
    kernel[1, 3](np.arange(3), out)
    np.testing.assert_array_equal(out, 0)


def test_boolean_arrays():
    @hip.jit
    def kernel(values, out):
        i = hip.grid(1)
        out[i] = not values[i] and i != 2

    values = np.array([True, False, False, True, False])
    out = np.zeros(5, np.bool_)
    kernel[1, 5](values, out)
    np.testing.assert_array_equal(out, [False, True, False, False, True])


def test_a_kernel_that_raises():
    @hip.jit(exceptions=True)
    def kernel(values):
        i = hip.grid(1)
        if values[i] < 0:
            raise ValueError("negative", 17)
        values[i] += 1

    values = np.arange(20.0)
    kernel[2, 10](values)
    values[13] = -1
    with pytest.raises(ValueError, match=r"tid=\[3, 0, 0\] ctaid=\[1, 0, 0\]: negative") as caught:
        kernel[2, 10](values)
    assert caught.value.args[1] == 17
    assert "test_kernels.py" in str(caught.value)
    np.testing.assert_array_equal(values[:13], np.arange(1.0, 14.0)), "the caller's array is as it was"


class TestSignatures:
    def test_string(self):
        @hip.jit("void(float32[:], float32)")
        def kernel(out, value):
            out[hip.grid(1)] = value

        assert kernel.signatures == [(float32[:], float32)]
        out = np.zeros(3, np.float32)
        kernel[1, 3](out, 2)
        np.testing.assert_array_equal(out, 2)
        assert len(kernel.signatures) == 1, "a conversion, not a second compilation"

    @pytest.mark.parametrize("signature", [(int32[:], int32), void(int32[:], int32), "(int32[:], int32)"])
    def test_types(self, signature):
        @hip.jit(signature)
        def kernel(out, value):
            out[hip.grid(1)] = value

        out = np.zeros(3, np.int32)
        with pytest.raises(KernelArgumentError, match="argument 'value' is 2.75"):
            kernel[1, 3](out, 2.75)
        assert not out.any()
        kernel[1, 3](out, 2.0)
        np.testing.assert_array_equal(out, 2)

    def test_several(self):
        @hip.jit(["void(int32[:], int32)", "void(float32[:], float32)"])
        def kernel(out, value):
            out[hip.grid(1)] = value / 2

        assert len(kernel.signatures) == 2
        for dtype, expected in ((np.int32, 1), (np.float32, 1.5)):
            out = np.zeros(2, dtype)
            kernel[1, 2](out, dtype(3))
            np.testing.assert_array_equal(out, expected)

    def test_other_types_are_refused(self):
        @hip.jit("void(float32[:], float32)")
        def kernel(out, value):
            out[hip.grid(1)] = value

        out = np.zeros(3, np.float64)
        with pytest.raises(TypeError, match=r"kernel was compiled for .*float32.* the launch passes .*float64"):
            kernel[1, 3](out, 2)

    def test_device_function_with_a_signature(self):
        @hip.jit("float64(float64, float64)", device=True)
        def average(a, b):
            return (a + b) / 2

        @hip.jit
        def kernel(a, b, out):
            i = hip.grid(1)
            out[i] = average(a[i], b[i])

        a, b, out = np.arange(4.0), np.ones(4), np.zeros(4)
        kernel[1, 4](a, b, out)
        np.testing.assert_array_equal(out, (a + b) / 2)

    def test_kernel_with_a_return_type(self):
        with pytest.raises(TypeError, match="return type int32; it can be void only"):
            hip.jit("int32(int32)")(lambda a: None)


def test_compiles_once_for_each_tuple_of_types():
    @hip.jit
    def kernel(out, value):
        out[hip.grid(1)] = value

    for dtype in (np.float32, np.float64, np.float32):
        for _ in range(2):
            kernel[1, 2](np.zeros(2, dtype), 1)
    assert len(kernel.signatures) == 2


def test_inspection():
    @hip.jit
    def kernel(out):
        out[hip.grid(1)] = 1

    kernel[1, 2](hip.device_array(2, np.float32))
    (signature,) = kernel.signatures
    name = "kernel, blocks of 2x1x1 threads, as " if hip.get_current_device().is_cpu else "@kernel("
    assert name in kernel.inspect_llvm(signature)
    assert name.replace("@kernel(", "kernel:") in kernel.inspect_asm()[signature]


def test_types_are_shown(capsys):
    @hip.jit
    def kernel(out):
        out[hip.grid(1)] = 1

    kernel[1, 2](hip.device_array(2, np.float32))
    kernel.inspect_types()
    assert "int64" in capsys.readouterr().out


def test_functions_that_the_host_has_called_before():
    @njit
    def double(x):
        return 2 * x

    assert double(4) == 8

    @hip.jit
    def kernel(out):
        out[hip.grid(1)] = double(hip.grid(1))

    out = np.zeros(4)
    kernel[1, 4](out)
    np.testing.assert_array_equal(out, [0, 2, 4, 6])


class Planet(enum.Enum):
    EARTH = (5.976e24, 6378)
    MARS = (6.421e23, 3397)


def test_members_of_an_enum_of_tuples_are_arguments():
    @hip.jit
    def kernel(first, second, out):
        out[0] = first == second
        out[1] = first is second

    for first, second in [(Planet.EARTH, Planet.EARTH), (Planet.EARTH, Planet.MARS)]:
        out = np.full(2, -1)
        kernel[1, 1](first, second, out)
        assert out.tolist() == [first is second] * 2


def test_a_variable_that_was_set_many_branches_ago():
    branches = "".join(f"    if a[i] == {k}: b[i] = {k + 1}\n" for k in range(2, 132))
    source = (
        "def kernel(a, b):\n    i = hip.grid(1)\n    y = 0\n    if a[i] > 1: y = a[i] * 1000\n"
        + branches
        + "    b[i] += y\n"
    )
    names = {"hip": hip}
    exec(source, names)
    a, b = np.array([0, 1, 2, 131]), np.zeros(4, np.int64)
    usual = sys.getrecursionlimit()
    # Numba goes 260 calls deep for this; a usual limit would need four times the branches.
    low = len(inspect.stack()) + 220
    sys.setrecursionlimit(low)
    try:
        hip.jit(names["kernel"])[1, 4](a, b)
        assert sys.getrecursionlimit() == low
    finally:
        sys.setrecursionlimit(usual)
    assert b.tolist() == [0, 0, 2003, 131132]
