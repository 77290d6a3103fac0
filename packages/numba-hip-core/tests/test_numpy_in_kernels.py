"""NumPy in kernels besides ufuncs: reductions, assignment of arrays, functions of numbers, and Python's own numbers."""

import math
import re
import subprocess
import sys

import numpy as np
import pytest
from numba import literal_unroll, njit
from numba.core.errors import NumbaError
from numba.np import arraymath

import numba_hip as hip

TARGETS = ["gfx942", "gfx1201"]  # waves of 64 and of 32


def run(function, *args, **options):
    hip.jit(function, **options)[1, 1](*args)
    return args[-1]


def reduce_numbers(a, out):
    out[0] = a.sum()
    out[1] = np.prod(a)
    out[2] = a.mean()
    out[3] = np.var(a)
    out[4] = a.std()
    out[5] = np.max(a)
    out[6] = a.min()
    out[7] = a.argmax()
    out[8] = np.argmin(a)
    out[9] = np.all(a)
    out[10] = a.any()


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.uint8, np.int64])
@pytest.mark.parametrize("shape", [(12,), (3, 4), (2, 3, 2)])
def test_reductions(dtype, shape):
    a = np.random.default_rng(3).integers(1, 5, shape).astype(dtype)
    wanted = np.zeros(11)
    reduce_numbers(a, wanted)
    np.testing.assert_allclose(run(reduce_numbers, a, np.zeros(11)), wanted, rtol=1e-6)
    wanted = np.zeros(11)
    reduce_numbers(a.T[::-1], wanted)
    np.testing.assert_allclose(run(reduce_numbers, a.T[::-1], np.zeros(11)), wanted, rtol=1e-6)


def reduce_without_nan(a, out):
    out[0] = np.nansum(a)
    out[1] = np.nanprod(a)
    out[2] = np.nanmean(a)
    out[3] = np.nanvar(a)
    out[4] = np.nanstd(a)
    out[5] = np.nanmax(a)
    out[6] = np.nanmin(a)
    out[7] = np.count_nonzero(a)


@pytest.mark.sample(1)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of the last array
@pytest.mark.parametrize(
    "values",
    [
        [np.nan, 2.0, np.nan, 0.0, -3.5, 1.25], [1.0, 2.0, np.nan], [[0.5, np.nan], [np.nan, 0.0]], [np.nan, np.inf],
        [3, 0, -7, 0, 2], [np.nan, np.nan],
    ],
)  # fmt: skip
def test_reductions_that_leave_out_nan(values):
    a, wanted = np.array(values), np.zeros(8)
    reduce_without_nan(a, wanted)
    np.testing.assert_allclose(run(reduce_without_nan, a, np.zeros(8)), wanted, rtol=1e-12)


def test_reductions_that_leave_out_nan_of_complex_numbers_and_of_nothing():
    def total(a, out):
        out[0], out[1], out[2], out[3] = np.nansum(a), np.nanprod(a), np.nanmean(a), np.count_nonzero(a)

    z = np.array([1 + 2j, complex(np.nan, 1), 3 - 1j, 0j])
    expected = [np.nansum(z), np.nanprod(z), np.nanmean(z), 3]
    np.testing.assert_allclose(run(total, z, np.zeros(4, complex)), expected)

    def extremes(a, out):
        out[0] = np.nanmax(a)

    with pytest.raises(ValueError, match="nanmax of an array that has no elements"):
        run(extremes, np.zeros(0), np.zeros(1), exceptions=True)

    def count(a, out):
        out[0] = np.count_nonzero(a)

    assert run(count, np.array([True, False, True]), np.zeros(1))[0] == 2


def test_reductions_of_a_nan_and_of_complex_numbers():
    def extremes(a, out):
        out[0], out[1], out[2], out[3] = a.max(), a.min(), a.argmax(), a.argmin()

    a = np.array([1.0, np.nan, 3.0, np.nan])
    np.testing.assert_array_equal(run(extremes, a, np.zeros(4)), [np.nan, np.nan, 1, 1])

    def total(a, out):
        out[0], out[1], out[2] = a.sum(), np.prod(a), a.mean()

    z = np.array([1 + 2j, 3 - 1j, 0.5j])
    np.testing.assert_allclose(run(total, z, np.zeros(3, complex)), [z.sum(), z.prod(), z.mean()])


def look_up(a, m, x, out):
    out[0] = np.searchsorted(a, x)
    out[1] = np.digitize(x, a)
    out[2] = x in a
    out[3] = a[1] in a
    out[4] = np.isclose(x, a[2])
    out[5] = np.ptp(m)
    out[6] = np.average(a)
    out[7] = np.argmax(a)
    out[8] = np.nan_to_num(x / 0.0)
    out[9] = np.sinc(x)
    out[10] = np.angle(complex(x, 1))
    out[11] = np.trace(m)
    out[12] = np.trace(m, -1)
    out[13] = np.trace(m, 2)
    out[14] = np.trace(m, 9)


def traced(m, out):
    out[0] = np.trace(m, 2)


@pytest.mark.skipif(not hasattr(arraymath, "np_nanargmax"), reason="Numba has no np.nanargmax yet")
def test_the_place_of_an_extreme_that_is_a_number():
    def places(a, out):
        out[0], out[1] = np.nanargmax(a), np.nanargmin(a)

    assert run(places, np.array([np.nan, 1, 4, np.nan, 0.5]), np.zeros(2)).tolist() == [2, 4]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of the division
def test_functions_of_arrays_that_need_no_memory():
    a, m = np.array([1.0, 2, 4, 8]), np.array([[1, 2, 3], [4, 5, 6]], np.int16)
    wanted = np.zeros(15)
    look_up(a, m, np.float64(3), wanted)
    np.testing.assert_allclose(run(look_up, a, m, 3.0, np.zeros(15)), wanted, rtol=1e-14)
    assert run(traced, m.T, np.zeros(1))[0] == 0


KNOWN_NAMES = """
import sys
import numba
import numpy as np
from numba import hip

if "njit" in sys.argv:
    numba.njit(lambda: 1)()

@hip.jit
def kernel(a):
    a[0] = np.searchsorted(a, 2.0)

kernel[1, 1](np.arange(4.0))
from numba_hip.compilation.target_registry import known_targets

[context] = [target.typing_context for target in known_targets()]
names = sorted(str(name) for name in context._globals)
templates = [f"{key}: {len(found)}" for key, found in (*context._functions.items(), *context._attributes.items())]
print("\\n".join(sorted([*names, *templates])))
"""


@pytest.mark.long
def test_what_a_kernel_may_use_does_not_depend_on_njit():
    """Numba declares what njit has for all targets, as soon as njit compiles anything: some types that kernels do not
    take, and a helper of these, remain."""

    def known(*arguments):
        command = [sys.executable, "-c", KNOWN_NAMES, *arguments]
        shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
        return re.sub(r"0x[0-9a-f]+", "", shown.stdout).splitlines()

    alone = known()
    assert len(alone) > 300
    only_on_host = re.compile("polynomial|RandomGenerator|binomial_btpe", re.IGNORECASE)
    assert [name for name in sorted(set(known("njit")) ^ set(alone)) if not only_on_host.search(name)] == []


def test_the_largest_of_nothing():
    def largest(a, out):
        out[0] = a.max()

    with pytest.raises(ValueError, match="max of an array that has no elements"):
        run(largest, np.zeros(0), np.zeros(1), exceptions=True)


def test_rows_are_assigned_and_added_to():
    @hip.jit
    def kernel(a, out):
        i = hip.grid(1)
        out[i] = a[i, ::-1]
        out[i, 1:] += a[0, 1:]
        out[i, :1] = 7

    a = np.arange(20.0).reshape(4, 5)
    out = np.zeros((4, 5), np.float32)
    kernel[1, 4](a, out)
    wanted = a[:, ::-1].copy()
    wanted[:, 1:] += a[0, 1:]
    wanted[:, 0] = 7
    np.testing.assert_array_equal(out, wanted)


def test_arrays_are_broadcast_when_assigned():
    def assign(row, column, out):
        out[0] = row
        out[1] = column
        out[2, 1:] = row[:1]

    row, column, out = np.arange(4.0), np.arange(3.0).reshape(3, 1), np.zeros((3, 3, 4))
    wanted = out.copy()
    assign(row, column, wanted)
    np.testing.assert_array_equal(run(assign, row, column, out), wanted)


@pytest.mark.parametrize(("left", "right"), [("1:", ":-1"), (":-1", "1:"), ("::-1", "::-1"), ("5:1:-1", "4:0:-1")])
@pytest.mark.sample(2)
def test_a_part_of_an_array_assigned_to_one_that_overlaps_it(left, right):
    namespace = {}
    exec(f"def move(a):\n    a[{left}] = a[{right}]", namespace)
    wanted = np.arange(8.0)
    namespace["move"](wanted)
    np.testing.assert_array_equal(run(namespace["move"], np.arange(8.0)), wanted)


def test_what_cannot_be_assigned():
    def reverse(a):
        a[:] = a[::-1]

    a = np.arange(5.0)
    with pytest.raises(ValueError, match="overlaps it; kernels have no memory for a copy"):
        run(reverse, a, exceptions=True)
    np.testing.assert_array_equal(a, np.arange(5.0))

    def assign(a, b):
        b[:] = a

    with pytest.raises(ValueError, match="different shape"):
        run(assign, np.zeros(3), np.zeros(4), exceptions=True)
    with pytest.raises(NumbaError, match="array of 2 dimensions cannot be assigned to 1"):
        run(assign, np.zeros((1, 4)), np.zeros(4))

    def through(a, places, b):
        b[places] = a

    with pytest.raises(NumbaError, match="through an index that is an array itself: assign in a loop"):
        run(through, np.zeros(2), np.array([1, 2]), np.zeros(4))


def numbers(x, out):
    out[0], out[1] = divmod(7.5, 2)
    out[2], out[3] = divmod(-7, 2)
    out[4] = round(x[0])
    out[5] = round(x[1], 2)
    out[6] = abs(-x[1])
    out[7] = bool(x[0])
    out[8] = int(-x[0])
    out[9] = float(3) / 2
    out[10] = np.float32(1.1)
    out[11] = np.int8(x[0] * 100)
    out[12] = np.uint16(7) + np.bool_(x[0])
    out[13] = np.round(x[0])
    out[14] = np.around(x[1], 1)
    out[15] = np.clip(x[1], 0, 2)
    out[16] = np.where(x[0] > 2, x[1], 5)
    out[17] = np.pi * math.e
    for value in literal_unroll((1, 2.5, True)):
        out[18] += value


def test_numbers_of_python_and_numpy():
    x = np.array([2.5, 2.678])
    wanted = np.zeros(19)
    with np.errstate(all="ignore"):
        numbers(np.array([1.25, 2.678]), wanted)
    np.testing.assert_allclose(run(numbers, np.array([1.25, 2.678]), np.zeros(19)), wanted)
    assert run(numbers, x, np.zeros(19))[4] == 2, "halves are rounded to even"


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64, np.bool_])
def test_an_integer_is_rounded_to_itself(dtype):
    def round_all(a, out):
        for i in range(a.size):
            out[i] = round(a[i])

    least, most = (0, 1) if dtype is np.bool_ else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    values = np.array([least, most, most - most // 3, 1, 0], dtype)
    wanted = values.astype(np.uint64 if dtype is np.uint64 else np.int64)
    np.testing.assert_array_equal(run(round_all, values, np.zeros_like(wanted)), wanted)


@pytest.mark.sample(2)
@pytest.mark.parametrize("digits", [0, 1, 2, 3, 9, 22, 300, -1, -2, -20, -25, -309])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding_to_digits_is_that_of_python(dtype, digits):
    def round_all(a, digits, out):
        for i in range(a.size):
            out[i] = round(a[i], digits)

    def by_python(value):
        return round(float(value), digits) if np.isfinite(value) else value

    rng = np.random.default_rng(9)
    halves = (np.arange(300) + 0.5) / 10.0 ** min(max(digits, -20), 20)
    anything = rng.uniform(-1, 1, 300) * 10.0 ** rng.integers(-10, 25, 300)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 2.675, 0.3425, 1.005, 2.0**53 + 2])
    values = np.concatenate([halves, -halves, anything, special]).astype(dtype)
    wanted = np.array([by_python(value) for value in values], dtype)
    rounded = run(round_all, values, digits, np.zeros_like(values))
    np.testing.assert_array_equal(rounded, wanted)
    np.testing.assert_array_equal(np.signbit(rounded[wanted == 0]), np.signbit(wanted[wanted == 0]))


@pytest.mark.sample(2)
@pytest.mark.parametrize("decimals", [0, 1, 3, -2])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding_to_decimals_is_that_of_numpy(dtype, decimals):
    def round_all(a, decimals, out):
        for i in range(a.size):
            out[i] = np.round(a[i], decimals)

    values = np.append(np.random.default_rng(4).uniform(-1e4, 1e4, 200), [0.5425, 0.3425, 2.5, 1250]).astype(dtype)
    np.testing.assert_array_equal(run(round_all, values, decimals, np.zeros_like(values)), np.round(values, decimals))


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS)
def test_for_amd_gpus(target):
    def assign(a, out):
        out[0] = a
        out[1, 1:] += a[1:]

    for function, signature in (
        (reduce_numbers, "(float32[:,::1], float64[::1])"),
        (reduce_numbers, "(int32[:], float64[::1])"),
        (reduce_without_nan, "(float32[:,::1], float64[::1])"),
        (numbers, "(float64[::1], float64[::1])"),
        (assign, "(float32[:], float64[:,:])"),
    ):
        assert hip.compile(function, signature, target=target, output="object")[0][:4] == b"\x7fELF"


@pytest.mark.skipif(sys.version_info < (3, 13), reason="math.fma came with Python 3.13")
def test_fused_multiplication_and_addition_by_its_name_in_python():
    def kernel(x, out):
        out[0] = math.fma(x[0], x[1], -1.0)

    x = np.array([1 + 2.0**-30, 1 - 2.0**-30])
    assert run(kernel, x, np.zeros(1))[0] == -(2.0**-60)


@pytest.mark.long
def test_methods_of_arrays_after_numba_has_compiled_them_for_the_host():
    def total(a, out):
        out[0] = a.sum() + a.mean() + a.max() + a.argmin()

    a = np.arange(4, dtype=np.int16)
    host, out = np.zeros(1), np.zeros(1)
    run(total, a.astype(np.float32), np.zeros(1))
    njit(total)(a, host)
    assert run(total, a, out)[0] == host[0] == 6 + 1.5 + 3 + 0


def test_a_reduction_along_an_axis():
    def rows(a, out):
        out[:] = a.sum(1)

    with pytest.raises(NumbaError, match=r"array.sum takes no arguments in a kernel: it reduces the whole array"):
        run(rows, np.zeros((2, 2)), np.zeros(2))
