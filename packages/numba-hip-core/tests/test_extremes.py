"""``max`` and ``min`` of numbers: Python's results and Numba's types, and what ``fastmath`` makes of them."""

import itertools
import math
import re

import numba
import numpy as np
import pytest

import numba_hip as hip
from hip_runtime import config as runtime_config

FUNCTIONS = pytest.mark.parametrize("function", [max, min])
AMD = pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
SPECIAL = [math.nan, -0.0, 0.0, -1.5, 2.0, -math.inf, math.inf]


def calling(function, count):
    """A kernel that stores the *function* of *count* numbers, of which each thread has its own."""
    names = [f"x{number}" for number in range(count)]
    values = ", ".join(f"{name}[i]" for name in names)
    source = f"def kernel({', '.join(names)}, out):\n    i = hip.grid(1)\n    if i < out.size:\n"
    known = {"hip": hip, "function": function}
    exec(f"{source}        out[i] = function({values})\n", known)
    return known["kernel"]


def row(function):
    """A kernel that finds the extreme of each row."""

    def kernel(values, out):
        i = hip.grid(1)
        if i < values.shape[0]:
            found = values[i, 0]
            for k in range(values.shape[1]):
                found = function(found, values[i, k])
            out[i] = found

    return kernel


def results(kernel, columns, kind):
    out = np.zeros(len(columns[0]), kind)
    kernel[1, 512](*columns, out)
    return out


def assert_same(found, expected):
    """Equal, zeros with their signs and NaN included."""
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@FUNCTIONS
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("fastmath", [False, {"contract"}, "ulp4 alone"])
@pytest.mark.sample(4)
def test_the_first_of_equals_and_no_nan_unless_it_is_first(function, dtype, count, fastmath):
    numbers = list(itertools.product(SPECIAL, repeat=count))
    columns = [np.array(column, dtype) for column in zip(*numbers, strict=True)]
    kernel = hip.jit(fastmath={"ulp4"} if fastmath == "ulp4 alone" else fastmath)(calling(function, count))
    assert_same(results(kernel, columns, dtype), np.array([function(one) for one in numbers], dtype))


REALS = {
    np.bool_: [False, True], np.int8: [-128, 0, 127], np.int32: [-(2**31), -1, 2**31 - 1], np.uint32: [0, 2**32 - 1],
    np.int64: [-(2**63), 2, 2**53 + 1], np.uint64: [0, 2**64 - 1], np.float16: [-0.0, math.nan, 1.5],
    np.float32: [-0.0, math.nan, 2.0**60], np.float64: [0.1, math.nan, -math.inf],
}  # fmt: skip


@FUNCTIONS
@pytest.mark.parametrize(
    "kinds",
    [*itertools.product(REALS, repeat=2), (np.int64, np.uint64, np.float32), (np.float32, np.int32, np.bool_),
     (np.int8, np.int32, np.int64)],
    ids=lambda kinds: "-".join(kind.__name__ for kind in kinds),
)  # fmt: skip
@pytest.mark.sample(30)
def test_numbers_of_several_types_are_converted_as_in_numpy(function, kinds):
    numbers = list(itertools.product(*(REALS[kind] for kind in kinds)))
    columns = [np.array(column, kind) for column, kind in zip(zip(*numbers, strict=True), kinds, strict=True)]
    kind = np.result_type(*kinds)
    args = tuple(numba.from_dtype(column.dtype) for column in columns)
    device_function = (lambda a, b: function(a, b)) if len(kinds) == 2 else (lambda a, b, c: function(a, b, c))
    _, found_type = hip.compile(device_function, args, target="cpu", device=True, output="llvm")
    assert found_type == numba.from_dtype(kind)
    found = results(hip.jit(calling(function, len(kinds))), columns, kind)
    converted = [column.astype(kind).tolist() for column in columns]
    assert_same(found, np.array([function(one) for one in zip(*converted, strict=True)], kind))


def test_other_forms():
    @hip.jit(fastmath=True)
    def kernel(x, out):
        pair = (x[0], x[1])
        out[0] = max(pair)
        out[1] = min((x[0], 3))
        out[2] = max(True, x[0] > 5)
        out[3] = min(True, x[0] > 5)

    out = np.zeros(4)
    kernel[1, 1](np.array([4.0, 2.0]), out)
    assert out.tolist() == [4, 3, 1, 0]


@pytest.mark.cpu_device("looks at the code of the CPU device")
@FUNCTIONS
@pytest.mark.parametrize(
    ("fastmath", "in_vectors"), [(True, True), ({"nnan", "nsz"}, True), ({"nnan"}, False), (False, False)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.sample(4)
def test_over_a_row_it_is_computed_in_vectors(function, fastmath, in_vectors, dtype):
    values = np.random.default_rng(5).uniform(-9, 9, (64, 300)).astype(dtype)
    kernel = hip.jit(fastmath=fastmath)(row(function))
    with runtime_config.cpu_form.scope("loop"):
        found = results(kernel, [values], dtype)
        text = kernel.inspect_llvm(next(iter(kernel.overloads)))
    np.testing.assert_array_equal(found, getattr(values, function.__name__)(axis=1))
    assert (f"@llvm.vector.reduce.f{function.__name__}." in text) == in_vectors


@FUNCTIONS
@AMD
@pytest.mark.sample(2)
def test_on_amd_gpus_it_is_one_instruction(function, target):
    def instructions(fastmath):
        signature = "(float32[::1], float32[::1], float32[::1])"
        text, _ = hip.compile(calling(function, 2), signature, target=target, output="asm", fastmath=fastmath)
        return re.findall(r"^\s+(v_(?:max|min|cmp_\w+|cndmask)_\w*[fb]32)", text, re.MULTILINE)

    assert [re.sub("_e(32|64)", "", name) for name in instructions(True)] == [f"v_{function.__name__}_f32"]
    assert len(instructions(False)) > 1


@FUNCTIONS
@pytest.mark.parametrize("fastmath", [True, {"nnan", "nsz", "ninf"}])
def test_infinities_are_kept(function, fastmath):
    """Also where a constant is as large as any finite number, which LLVM takes for the maximum of finite numbers."""
    infinity = function(-math.inf, math.inf)
    largest = math.copysign(float(np.finfo(np.float32).max), infinity)

    @hip.jit(fastmath=fastmath)
    def kernel(x, out):
        i = hip.grid(1)
        out[i, 0] = function(x[i], np.float32(largest))
        out[i, 1] = function(np.float32(-infinity), x[i])
        found = np.float32(-infinity)
        for k in range(out.shape[1]):
            if k == i:
                found = function(found, x[i])
        out[i, 2] = found

    out = np.zeros((4, 3), np.float32)
    kernel[1, 4](np.array([infinity, 2, -infinity, infinity], np.float32), out)
    expected = [[infinity] * 3, [largest, 2, 2], [largest, -infinity, -infinity], [infinity, infinity, -infinity]]
    np.testing.assert_array_equal(out, np.array(expected, np.float32))


def test_each_function_has_its_own_choice():
    """What a function without ``fastmath`` finds, its kernel with it does not change."""

    @hip.jit(device=True)
    def exact(a, b):
        return max(a, b)

    @hip.jit(device=True, fastmath=True)
    def fast(a, b):
        return max(a, b)

    def compiled(choose, fastmath):
        signature = "(float32[::1], float32[::1], float32[::1])"
        return hip.compile(calling(choose, 2), signature, target="cpu", output="llvm", fastmath=fastmath)[0]

    assert "@llvm.maxnum" not in compiled(exact, True)
    assert "call nnan nsz float @llvm.maxnum" in compiled(fast, False)
