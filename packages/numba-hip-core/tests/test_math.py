"""Python's math in kernels, against Python's own results over ordinary and special values."""

import math

import numpy as np
import pytest

import numba_hip as hip
from hip_runtime import config
from numba_hip.language.math import BINARY, UNARY
from numba_hip.targets.cpu.codegen import MOST_INLINED

OCML_NEAR_ZERO = (math.expm1, math.log1p)
"""Of these, ROCm's device library gives +0.0 for -0.0 and for the smallest double."""

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, math.inf, -math.inf, math.nan, 5e-324, -5e-324, 2.2e-308, 1e308, 1e-30]
ORDINARY = np.random.default_rng(7).uniform(-20, 20, 60).tolist() + np.linspace(-1, 1, 21).tolist()


def by_python(function, *arguments):
    """What Python says; where it raises, what C's library returns."""
    try:
        return function(*arguments)
    except (ValueError, OverflowError):
        return None


def cast(values, dtype):
    with np.errstate(over="ignore"):
        return np.array(values, np.float64).astype(dtype)


def kernel_of(function, arguments):
    if arguments == 1:

        @hip.jit
        def kernel(x, out):
            i = hip.grid(1)
            if i < out.size:
                out[i] = function(x[i])
    else:

        @hip.jit
        def kernel(x, y, out):
            i = hip.grid(1)
            if i < out.size:
                out[i] = function(x[i], y[i])

    return kernel


@pytest.mark.cpu_device("the device libraries of AMD GPUs say themselves what is inlined")
@pytest.mark.parametrize(
    ("more", "waits", "lockstep"), [(0, False, False), (1, False, False), (1, True, False), (1, True, True)]
)
@pytest.mark.sample(2)
def test_what_is_called_often_stays_a_function(more, waits, lockstep):
    count = MOST_INLINED + more
    lines = "".join(f"        a = math.sin(a + {number})\n" for number in range(count))
    wait = "    hip.syncthreads()\n" if waits else ""
    body = f"    i = hip.grid(1)\n{wait}    if i < x.size:\n        a = x[i]\n{lines}        out[i] = a\n"
    names = {"hip": hip, "math": math}
    exec(f"def kernel(x, out):\n{body}", names)
    kernel = hip.jit("void(float64[:], float64[:])")(names["kernel"])
    x = np.linspace(-9, 9, 100)
    out = np.zeros(100)
    with config.cpu_lockstep.scope(lockstep):
        kernel[2, 64](x, out)
    for number in range(count):
        x = np.sin(x + number)
    np.testing.assert_allclose(out, x, rtol=1e-12)
    (code,) = kernel.overloads.values()
    assert code.llvm().count("@__hip_cpu_sin_f64(") == (count + 1 if more else 0)  # one defines it


@pytest.mark.cpu_device("the device libraries of AMD GPUs say themselves what is inlined")
def test_what_hips_functions_call_often_stays_a_function():
    count = MOST_INLINED // 2
    lines = "".join(f"    a = hip.sin(a + {number}) + math.sin(a)\n" for number in range(count))
    names = {"hip": hip, "math": math}
    exec(f"def kernel(x, out):\n    i = hip.grid(1)\n    a = x[i]\n{lines}    out[i] = a + hip.sinpi(x[i])\n", names)
    kernel = hip.jit("void(float64[:], float64[:])")(names["kernel"])
    x, out = np.linspace(-9, 9, 64), np.zeros(64)
    kernel[1, 64](x, out)
    expected = x
    for number in range(count):
        expected = np.sin(expected + number) + np.sin(expected)
    np.testing.assert_allclose(out, expected + np.sin(np.pi * x), rtol=1e-11, atol=1e-14)
    (code,) = kernel.overloads.values()
    assert code.llvm().count("@__hip_cpu_sin_f64(") == 2 * count + 2  # one defines it
    assert "@__hip_cpu_cos_f64(" not in code.llvm()


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("function", UNARY, ids=lambda f: f.__name__)
def test_functions_of_one_float(function, dtype):
    x = cast(SPECIAL + ORDINARY, dtype)
    out = np.zeros_like(x)
    kernel_of(function, 1)[2, 64](x, out)
    expected = [by_python(function, float(value)) for value in x]
    known = np.array([value is not None for value in expected])
    wanted = cast([math.nan if value is None else value for value in expected], dtype)
    is_rough = function in OCML_NEAR_ZERO and not hip.get_current_device().is_cpu
    rtol, atol = 2e-6 if dtype is np.float32 else 1e-14, 5e-324 if is_rough else 0
    np.testing.assert_allclose(out[known], wanted[known], rtol, atol)
    zero = known & (wanted == 0) & (not is_rough)
    np.testing.assert_array_equal(np.signbit(out[zero]), np.signbit(wanted[zero]))
    assert not np.isfinite(out[~known]).any(), "where Python raises there is no finite result"


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("function", [*BINARY, math.pow, math.fmod], ids=lambda f: f.__name__)
def test_functions_of_two_floats(function, dtype):
    x, y = (m.ravel() for m in np.meshgrid(*[cast(SPECIAL[:11] + ORDINARY[:12], dtype)] * 2))
    out = np.zeros_like(x)
    kernel_of(function, 2)[-(-x.size // 64), 64](x, y, out)
    if function is math.nextafter:
        expected = list(np.nextafter(x, y))
    else:
        expected = [by_python(function, float(a), float(b)) for a, b in zip(x, y, strict=True)]
    known = np.array([value is not None for value in expected])
    wanted = cast([math.nan if value is None else value for value in expected], dtype)
    np.testing.assert_allclose(out[known], wanted[known], rtol=3e-6 if dtype is np.float32 else 4e-15)


@pytest.mark.parametrize(
    "function", [math.sqrt, math.exp, math.radians, math.degrees, math.sin], ids=lambda f: f.__name__
)
@pytest.mark.sample(3)
def test_functions_of_integers_are_computed_in_double(function):
    x = np.arange(10)
    out = np.zeros(10)
    kernel_of(function, 1)[1, 10](x, out)
    np.testing.assert_allclose(out, [function(int(value)) for value in x], rtol=1e-15)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_remainder_of_integers(dtype):
    x, y = np.array([7, 8, 0, 9], dtype), np.array([4, 3, 0, 2], dtype)
    out = np.zeros(4)
    kernel_of(math.remainder, 2)[1, 4](x, y, out)
    np.testing.assert_array_equal(out, [-1, -1, math.nan, 1])


@pytest.mark.parametrize("function", [math.isnan, math.isinf, math.isfinite], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.sample(4)
def test_predicates(function, dtype):
    values = np.array([0, 1, -5, 7], dtype) if dtype is np.int64 else cast(SPECIAL, dtype)
    out = np.zeros(values.size, np.bool_)
    kernel_of(function, 1)[1, values.size](values, out)
    np.testing.assert_array_equal(out, [function(value) for value in values.tolist()])


@pytest.mark.parametrize("function", [math.floor, math.ceil, math.trunc], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
@pytest.mark.sample(4)
def test_rounding_gives_integers(function, dtype):
    values = np.array([0.0, -0.5, 0.5, 2.999, -2.999, 1e6, -7]).astype(dtype)
    out = np.zeros(values.size, np.int64)
    kernel_of(function, 1)[1, values.size](values, out)
    np.testing.assert_array_equal(out, [function(value) for value in values.tolist()])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_degrees_and_radians(dtype):
    values = np.array([0, 1, -90, 180, 1e5, np.inf], dtype)
    for function in (math.degrees, math.radians):
        out = np.zeros_like(values)
        kernel_of(function, 1)[1, values.size](values, out)
        np.testing.assert_allclose(out, [function(float(value)) for value in values], rtol=3e-7)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_frexp_and_ldexp(dtype):
    @hip.jit
    def split(values, fractions, exponents):
        i = hip.grid(1)
        fractions[i], exponents[i] = math.frexp(values[i])

    @hip.jit
    def scale(values, exponents, out):
        i = hip.grid(1)
        out[i] = math.ldexp(values[i], exponents[i])

    info = np.finfo(dtype)
    values = np.array([*SPECIAL[:9], 3.7, -1e5, info.tiny, info.max, info.smallest_subnormal, info.tiny / 8], dtype)
    fractions, exponents = np.zeros_like(values), np.zeros(values.size, np.int32)
    split[1, values.size](values, fractions, exponents)
    finite = np.isfinite(values)
    wanted = np.frexp(values)
    np.testing.assert_array_equal(fractions, wanted[0])
    np.testing.assert_array_equal(exponents[finite], wanted[1][finite])

    powers = [
        0,
        1,
        -1,
        40,
        -40,
        127,
        -126,
        -149,
        150,
        -970,
        1023,
        -1022,
        -1074,
        -1080,
        2000,
        -2098,
        2**31 - 1,
        -(2**31),
    ]
    x, n = (m.ravel() for m in np.meshgrid(values, np.array(powers, np.int32)))
    out = np.zeros_like(x)
    scale[1, x.size](x, n, out)
    with np.errstate(over="ignore", under="ignore"):
        np.testing.assert_array_equal(out, np.ldexp(x, n))


def test_a_logarithm_to_a_base():
    @hip.jit
    def kernel(x, single, out):
        i = hip.threadIdx.x
        out[i, 0] = math.log(x[i], 2)
        out[i, 1] = math.log(single[i], np.float32(10))
        out[i, 2] = math.log(8, i + 2)

    x = np.linspace(0.5, 9, 8)
    out = np.zeros((8, 3))
    kernel[1, 8](x, x.astype(np.float32), out)
    expected = [[math.log(value, 2), math.log(value, 10), math.log(8, i + 2)] for i, value in enumerate(x)]
    np.testing.assert_allclose(out[:, [0, 2]], np.array(expected)[:, [0, 2]], rtol=1e-15)
    np.testing.assert_allclose(out[:, 1], np.array(expected)[:, 1], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_modf(dtype):
    @hip.jit
    def kernel(values, rest, whole):
        i = hip.grid(1)
        rest[i], whole[i] = math.modf(values[i])

    values = cast(SPECIAL + ORDINARY, dtype)
    rest, whole = np.zeros_like(values), np.zeros_like(values)
    kernel[1, values.size](values, rest, whole)
    wanted = np.modf(values)
    np.testing.assert_array_equal((rest, whole), wanted)
    np.testing.assert_array_equal(np.signbit([rest, whole]), np.signbit(wanted))


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.int32])
@pytest.mark.sample(2)
def test_greatest_common_divisor(dtype):
    a, b = np.array([12, 0, 7, 100, 9], dtype), np.array([18, 5, 0, 75, 28], dtype)
    out = np.zeros_like(a)
    kernel_of(math.gcd, 2)[1, 5](a, b, out)
    np.testing.assert_array_equal(out, np.gcd(a, b))


def test_the_power_operator():
    @hip.jit
    def kernel(x, y, out):
        i = hip.grid(1)
        out[i, 0] = x[i] ** y[i]
        out[i, 1] = x[i] ** 2
        out[i, 2] = x[i] ** 0.5

    x, y = np.linspace(0.1, 5, 20), np.linspace(-3, 3, 20)
    out = np.zeros((20, 3))
    kernel[1, 20](x, y, out)
    np.testing.assert_allclose(out, np.stack([x**y, x**2, x**0.5], axis=1), rtol=1e-14)


@hip.jit
def known_powers(x, out):
    i = hip.grid(1)
    out[i, 0] = x[i] ** 0.5
    out[i, 1] = x[i] ** 2.0
    out[i, 2] = x[i] ** 1.0
    out[i, 3] = x[i] ** -1.0
    out[i, 4] = math.pow(x[i], 2)
    out[i, 5] = math.pow(x[i], 0.5)
    out[i, 6] = x[i] ** 1.5
    out[i, 7] = np.power(x[i], 2)
    out[i, 8] = np.power(x[i], 0.5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_powers_that_are_one_operation(dtype):
    x = cast(SPECIAL + ORDINARY, dtype)
    out = np.zeros((x.size, 9))
    known_powers[1, x.size](x, out)
    exponents = np.array([0.5, 2, 1, -1, 2, 0.5, 1.5, 2, 0.5])  # for a number NumPy takes roots, of -0 and -inf, too
    with np.errstate(all="ignore"):
        wanted = np.power(x.astype(np.float64)[:, None], exponents[None, :])
        wanted[:, 7:] = np.power(x[:, None], exponents[None, 7:].astype(dtype))  # which has the type of its array
    np.testing.assert_allclose(out[:, :7], wanted[:, :7], rtol=1e-15)  # NumPy's are off by a unit here and there
    np.testing.assert_allclose(out[:, 7:], wanted[:, 7:], rtol=2 * np.finfo(dtype).eps)
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(out[numbers]), np.signbit(wanted[numbers]))
    np.testing.assert_array_equal(out[x > 0, 0], np.sqrt(x[x > 0], dtype=np.float64))


@pytest.mark.parametrize("target", ["cpu", "gfx942"])
def test_powers_that_are_one_operation_call_no_function(target):
    def kernel(x, out):
        i = hip.grid(1)
        out[i] = x[i] ** 0.5 + x[i] ** 2.0 + math.pow(x[i], 2) + 1.0 / x[i] ** -1.0 + np.power(x[i], 2)

    text, _ = hip.compile(kernel, "(float64[::1], float64[::1])", target=target, output="llvm")
    assert "sqrt.f64" in text
    assert "pow" not in text
    assert text.count("fma") < 10  # of which the power of any exponent has dozens


def test_complex_numbers():
    import cmath

    @hip.jit
    def kernel(z, out):
        i = hip.grid(1)
        out[i, 0] = z[i] * z[i] + z[i].conjugate()
        out[i, 1] = cmath.exp(z[i])
        out[i, 2] = cmath.sqrt(z[i])
        out[i, 3] = abs(z[i])

    z = np.array([1 + 2j, -0.5 + 0.1j, 3 - 4j, 1j])
    out = np.zeros((4, 4), np.complex128)
    kernel[1, 4](z, out)
    np.testing.assert_allclose(out, np.stack([z * z + z.conj(), np.exp(z), np.sqrt(z), abs(z)], axis=1), rtol=1e-13)


def test_min_and_max_take_any_number_of_arguments():
    @hip.jit
    def kernel(a, b, out):
        i = hip.grid(1)
        out[i, 0] = min(a[i], b[i])
        out[i, 1] = max(a[i], b[i], 0.25)
        out[i, 2] = min(a[i], b[i], 2.0, -1.0)

    a, b = np.linspace(-1, 1, 8), np.linspace(1, -1, 8)
    out = np.zeros((8, 3))
    kernel[1, 8](a, b, out)
    np.testing.assert_array_equal(
        out, np.stack([np.minimum(a, b), np.maximum(np.maximum(a, b), 0.25), np.full(8, -1.0)], axis=1)
    )
