"""Numbers of 8 bits, bit by bit against ml_dtypes."""

from __future__ import annotations

import numpy as np
import pytest
from numba.core import types
from numba.core.errors import TypingError

import numba_hip as hip
from numba_hip import fp8
from numba_hip.errors import KernelArgumentError
from numba_hip.float8 import FLOAT8, bits_of

ml_dtypes = pytest.importorskip("ml_dtypes", reason="needs ml_dtypes, for small floats in NumPy")

NAMES = pytest.mark.parametrize("name", FLOAT8)
pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")


def middles(kind):
    """All numbers of *kind* as float64, what lies in the middle of two, and what lies beside that."""
    finite = np.arange(256, dtype=np.uint8).view(kind).astype(np.float64)
    finite = np.sort(finite[np.isfinite(finite)])
    between = (finite[:-1] + finite[1:]) / 2
    beside = [np.nextafter(between, way) for way in (-np.inf, np.inf)]
    single = [np.nextafter(between.astype(np.float32), np.float32(way)).astype(float) for way in (-np.inf, np.inf)]
    return np.concatenate([finite, between, *beside, *single, [0.0, -0.0, 1e-30, -1e-30, 1e-45, np.nan]])


def saturated(values, kind):
    """As ml_dtypes converts them, but for what is larger than its largest number, or infinite."""
    limit = float(ml_dtypes.finfo(kind).max)
    return np.where(np.isnan(values), values, np.clip(values, -limit, limit)).astype(kind)


def nearest(values, kind):
    """Of float64, rounded once; ml_dtypes rounds them to float32 first."""
    codes = np.arange(128, dtype=np.uint8)
    numbers = codes.view(kind).astype(np.float64)
    numbers = numbers[np.isfinite(numbers)]  # ascending
    between, size = (numbers[:-1] + numbers[1:]) / 2, abs(values)
    low, high = np.searchsorted(between, size, "left"), np.searchsorted(between, size, "right")
    found = np.where(low % 2, high, low)  # which differ for what is in the middle, where one of them is even
    return np.where(np.isnan(values), values, np.copysign(numbers[found], values)).astype(kind)


def assert_same(found, wanted):
    nan = np.isnan(wanted.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(found.astype(np.float32)), nan)
    np.testing.assert_array_equal(found.view(np.uint8)[~nan], wanted.view(np.uint8)[~nan])


@NAMES
@pytest.mark.sample(1)
def test_conversions(name):
    kind, make = getattr(ml_dtypes, name), getattr(hip, name)
    plain, as_bits, of_bits = (
        getattr(fp8, text) for text in (f"float32_to_{name}_nosat", f"{name}_as_uint8", f"uint8_as_{name}")
    )

    @hip.jit
    def kernel(values, out, bits, wide):
        i = hip.grid(1)
        if i < values.size:
            out[0, i], out[1, i] = values[i], make(np.float32(values[i]))
            out[2, i] = plain(values[i])
            bits[0, i], bits[1, i] = as_bits(out[0, i]), as_bits(of_bits(np.uint8(i)))
            wide[0, i], wide[1, i] = of_bits(np.uint8(i)), 1.0 if of_bits(np.uint8(i)) else 0.0

    values = np.concatenate([middles(kind), [1e6, -1e6, 460.0, 470.0, 250.0, -61440.0, 61441.0, np.inf, -np.inf]])
    out = np.zeros((3, values.size), kind)
    bits, wide = np.zeros((2, values.size), np.uint8), np.zeros((2, values.size))
    kernel.forall(values.size)(values, out, bits, wide)
    single = values.astype(np.float32)
    assert_same(out[0], nearest(values, kind))
    assert_same(out[1], saturated(single, kind))
    assert_same(out[2], single.astype(kind))
    numbers = np.arange(values.size).astype(np.uint8)
    np.testing.assert_array_equal(bits[0], out[0].view(np.uint8))
    np.testing.assert_array_equal(bits[1], numbers)
    exact = numbers.view(kind).astype(np.float64)
    np.testing.assert_array_equal(wide[0], exact)
    np.testing.assert_array_equal(np.signbit(wide[0])[exact == 0], np.signbit(exact)[exact == 0])
    np.testing.assert_array_equal(wide[1], exact != 0)
    on_host = np.array([bits_of(value, FLOAT8[name]) for value in values], np.uint8).view(kind)
    assert_same(on_host, nearest(values, kind))
    assert FLOAT8[name](1.3) == kind(1.3)


@NAMES
@pytest.mark.sample(1)
def test_arithmetic_is_that_of_float32(name):
    kind, make = getattr(ml_dtypes, name), getattr(hip, name)

    @hip.jit
    def kernel(a, b, wide, out, whole, other):
        shared = hip.shared.array(64, make)
        i = hip.grid(1)
        x, y = a[i], b[i]
        shared[i] = y
        hip.syncthreads()
        wide[0, i], wide[1, i], wide[2, i] = x + y, x * y - x, -x / 3
        wide[3, i], wide[4, i], wide[5, i] = x + 0.1, abs(shared[i]) ** 0.5, x if i % 2 else 0.3
        whole[0, i], whole[1, i], whole[2, i] = x < y, x == y, int(x)
        out[i] = x
        out[i] += 1
        other[i] = x

    random = np.random.default_rng(7)
    a, b = (random.normal(size=64).astype(kind) for _ in range(2))
    b[:8] = a[:8]
    wide, out, whole = np.zeros((6, 64)), np.zeros(64, kind), np.zeros((3, 64), np.int64)
    other = np.zeros(64, ml_dtypes.float8_e5m2)
    kernel[1, 64](a, b, wide, out, whole, other)
    x, y = a.astype(np.float32), b.astype(np.float32)
    np.testing.assert_array_equal(wide[:3], [x + y, x * y - x, -x.astype(float) / 3])
    np.testing.assert_array_equal(wide[3], x.astype(float) + 0.1)
    np.testing.assert_allclose(wide[4], np.abs(y.astype(float)) ** 0.5, rtol=1e-15)
    np.testing.assert_array_equal(wide[5], np.where(np.arange(64) % 2, x.astype(float), 0.3))
    np.testing.assert_array_equal(whole, [x < y, x == y, x.astype(int)])
    assert_same(out, (x + 1).astype(kind))
    assert_same(other, x.astype(other.dtype))


def test_arguments_signatures_and_printing(capsys):
    constant = np.array([1, 2, 3], ml_dtypes.float8_e5m2)

    @hip.jit((hip.float8_e4m3fn, hip.float8_e4m3fn[::1]))
    def kernel(x, out):
        out[0] = x
        out[1] = x * constant[2]
        print(x, f"{x:.2f}", constant[1])

    out = hip.device_array(2, ml_dtypes.float8_e4m3fn)
    kernel[1, 1](1.0625, out)  # the middle of two, of which the first is even
    assert out.copy_to_host().tolist() == [1.0, 3.0]
    assert capsys.readouterr().out == "1.0 1.00 2.0\n"
    kernel[1, 1](ml_dtypes.float8_e4m3fn(1.5), out)
    assert out.copy_to_host().tolist() == [1.5, 4.5]
    kernel[1, 1](464, out)
    assert out.copy_to_host()[0] == 448
    with pytest.raises(KernelArgumentError, match=r"argument 'x' is 500 .*numbers from -448 to 448"):
        kernel[1, 1](500, out)


@pytest.mark.parametrize("target", ["gfx942", "gfx1201"])
def test_for_amd_gpus(target):
    def kernel(a, b, out):
        out[0] = a[0] * b[0] + a[1]

    kinds = (hip.float8_e4m3fnuz[::1], hip.float8_e5m2[::1], hip.float8_e5m2fnuz[::1])
    assert hip.compile(kernel, kinds, target=target, output="object")[0][:4] == b"\x7fELF"


@pytest.mark.parametrize(
    ("target", "having"),
    [
        ("gfx942", ("float8_e4m3fnuz", "float8_e5m2fnuz")),
        ("gfx950", ("float8_e4m3fn", "float8_e5m2")),
        ("gfx1100", ()),
        ("gfx1201", ("float8_e4m3fn", "float8_e5m2")),
    ],
)
@pytest.mark.sample(1)
def test_gpus_convert_their_formats_by_an_instruction(target, having):
    def kernel(values, out, wide):
        i = hip.grid(1)
        out[i] = values[i]
        wide[i] = out[i + 1]

    for name, kind in FLOAT8.items():
        code, _ = hip.compile(kernel, (types.float32[::1], kind[::1], types.float64[::1]), target=target, output="asm")
        short = "fp8" if "e4m3" in name else "bf8"
        for instruction in (f"v_cvt_pk_{short}_f32", f"v_cvt_f32_{short}"):
            assert (instruction in code) == (name in having), (name, instruction)


def test_what_is_no_number_of_8_bits():
    with pytest.raises(TypingError, match="hip.fp8.float32_to_float8_e5m2_nosat takes a float32, not a complex128"):
        hip.compile(lambda out: fp8.float32_to_float8_e5m2_nosat(1j), (hip.float8_e5m2[::1],), target="cpu")
    with pytest.raises(AttributeError, match="'hip.fp8' has no attribute 'e3m4'"):
        _ = fp8.e3m4
