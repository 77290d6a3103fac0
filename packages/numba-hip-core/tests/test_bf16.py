"""Numbers of type bfloat16, bit by bit against ml_dtypes, and against exact fractions where that rounds otherwise."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numba.core.errors import NumbaError, TypingError

import numba_hip as hip
from numba_hip import bf16
from numba_hip.bfloat import bits_of
from numba_hip.errors import KernelArgumentError
from numba_hip.language.bf16.conversions import WORDS

ml_dtypes = pytest.importorskip("ml_dtypes", reason="needs ml_dtypes, for small floats in NumPy")
BF16 = ml_dtypes.bfloat16

SPECIAL = np.array(
    [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 3.38e38, -9.2e-41, 1.2e-38, 0.1, 257, 1e-3, 3.14159, -0.5, 65536], BF16
)
A, B = (array.ravel() for array in np.meshgrid(SPECIAL, SPECIAL))
ANY = np.random.default_rng(2).integers(0, 2**16, 4096, np.uint16).view(BF16)
SIGNATURE = (bf16.bfloat16[::1], bf16.bfloat16[::1], bf16.bfloat16[:, ::1])

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")


def assert_same(found, wanted):
    """Equal in every bit, but for which NaN it is."""
    nan = np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(found), nan)
    np.testing.assert_array_equal(found.view(np.uint16)[~nan], wanted.view(np.uint16)[~nan])


def arithmetic(a, b, out):
    i = hip.grid(1)
    if i < a.size:
        x, y = a[i], b[i]
        out[0, i] = x + y
        out[1, i] = x - y
        out[2, i] = x * y
        out[3, i] = x / y
        out[4, i] = -x
        out[5, i] = abs(x)
        x += y
        x *= y
        out[6, i] = +x


@pytest.mark.parametrize(("a", "b"), [(A, B), (ANY, ANY[::-1].copy())], ids=["special", "any"])
def test_arithmetic_rounds_once(a, b):
    out = np.zeros((7, a.size), BF16)
    hip.jit(arithmetic).forall(a.size)(a, b, out)
    for found, wanted in zip(out, [a + b, a - b, a * b, a / b, -a, abs(a), (a + b) * b], strict=True):
        assert_same(found, wanted)


def test_comparisons():
    names = ["heq", "hne", "hlt", "hle", "hgt", "hge"]
    ordered, unordered = ([getattr(bf16, name + end) for name in names] for end in ("", "u"))
    heq, hne, hlt, hle, hgt, hge = ordered
    hequ, hneu, hltu, hleu, hgtu, hgeu = unordered

    @hip.jit
    def kernel(a, b, out):
        i = hip.grid(1)
        x, y = a[i], b[i]
        out[0, i], out[1, i], out[2, i] = x == y, x != y, x < y
        out[3, i], out[4, i], out[5, i] = x <= y, x > y, x >= y
        out[6, i], out[7, i], out[8, i], out[9, i] = heq(x, y), hne(x, y), hlt(x, y), hle(x, y)
        out[10, i], out[11, i], out[12, i], out[13, i] = hgt(x, y), hge(x, y), hequ(x, y), hneu(x, y)
        out[14, i], out[15, i], out[16, i], out[17, i] = hltu(x, y), hleu(x, y), hgtu(x, y), hgeu(x, y)
        out[18, i], out[19, i] = bf16.hisnan(x), bool(x)

    out = np.zeros((20, A.size), bool)
    kernel[1, A.size](A, B, out)
    a, b = A.astype(np.float32), B.astype(np.float32)
    nan = np.isnan(a) | np.isnan(b)
    wanted = np.array([a == b, a != b, a < b, a <= b, a > b, a >= b])
    np.testing.assert_array_equal(out, [*wanted, *(wanted & ~nan), *(wanted | nan), np.isnan(a), a != 0])


def exactly(value, direction="rn"):
    """The bits of the bfloat16 that a `Fraction` is rounded to."""
    if value == 0:
        return 0
    size, sign = abs(value), 0x8000 if value < 0 else 0
    exponent = max(size.numerator.bit_length() - size.denominator.bit_length(), -126)
    exponent -= size < Fraction(2) ** exponent and exponent > -126
    scaled = size / Fraction(2) ** (exponent - 7)
    whole, rest = divmod(scaled.numerator, scaled.denominator)
    half = Fraction(rest, scaled.denominator)
    away = {"rn": half > 0.5 or (half == 0.5 and whole % 2), "rz": False}
    away |= {"rd": half > 0 and sign, "ru": half > 0 and not sign}
    whole += bool(away[direction])
    bits = (exponent + 126 << 7) + whole
    return sign | min(bits, 0x7F80)


def whole_numbers(dtype):
    info = np.iinfo(dtype)
    near = [2**n + d for n in range(7, info.bits) for d in (-1, 0, 1, 2 ** max(n - 8, 0), 2 ** max(n - 8, 0) + 1)]
    values = {0, 1, 789, info.max, info.min, *near, *(-value for value in near)}
    return np.array([value for value in values if info.min <= value <= info.max], dtype)


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_from_integers_in_every_direction(dtype):
    name = np.dtype(dtype).name
    nearest, to_zero, down, up = (getattr(bf16, f"{name}_to_bfloat16_{direction}") for direction in WORDS)

    @hip.jit
    def kernel(values, out):
        i = hip.grid(1)
        if i < values.size:
            out[0, i], out[1, i] = nearest(values[i]), to_zero(values[i])
            out[2, i], out[3, i] = down(values[i]), up(values[i])
            out[4, i], out[5, i] = values[i], bf16.bfloat16(values[i])

    values = whole_numbers(dtype)
    out = np.zeros((6, values.size), BF16)
    kernel.forall(values.size)(values, out)
    for found, direction in zip(out, [*WORDS, "rn", "rn"], strict=True):
        wanted = [exactly(Fraction(int(value)), direction) for value in values]
        np.testing.assert_array_equal(found.view(np.uint16), wanted, err_msg=direction)


@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.sample(2)
def test_to_integers_in_every_direction(dtype):
    name, info = np.dtype(dtype).name, np.iinfo(dtype)
    nearest, to_zero, down, up = (getattr(bf16, f"bfloat16_to_{name}_{direction}") for direction in WORDS)

    @hip.jit
    def kernel(values, out):
        i = hip.grid(1)
        if i < values.size:
            out[0, i], out[1, i] = nearest(values[i]), to_zero(values[i])
            out[2, i], out[3, i] = down(values[i]), up(values[i])

    values = np.concatenate([SPECIAL, np.array([1.5, 2.5, -1.5, 0.25, -0.75, 100.5], BF16), ANY[:500]])
    out = np.zeros((4, values.size), dtype)
    kernel.forall(values.size)(values, out)
    wide = values.astype(np.float64)
    for found, rounding in zip(out, (np.rint, np.trunc, np.floor, np.ceil), strict=True):
        wanted = [
            0 if math.isnan(value) else info.max if value >= info.max else info.min if value <= info.min else int(value)
            for value in rounding(wide)
        ]
        np.testing.assert_array_equal(found, np.array(wanted, dtype))


def test_to_bytes_and_bits():
    @hip.jit
    def kernel(values, signed, unsigned, bits, back):
        i = hip.grid(1)
        signed[i] = bf16.bfloat16_to_int8_rz(values[i])
        unsigned[i] = bf16.bfloat16_to_uint8_rz(values[i])
        bits[0, i] = bf16.bfloat16_as_int16(values[i])
        bits[1, i] = np.int16(bf16.bfloat16_as_uint16(values[i]))
        back[0, i] = bf16.int16_as_bfloat16(bits[0, i])
        back[1, i] = bf16.uint16_as_bfloat16(np.uint16(bits[1, i]))

    values = np.array([1.75, -1.75, 300, -300, np.nan, np.inf, 0.5, -0.0], BF16)
    signed, unsigned = np.zeros(8, np.int8), np.zeros(8, np.uint8)
    bits, back = np.zeros((2, 8), np.int16), np.zeros((2, 8), BF16)
    kernel[1, 8](values, signed, unsigned, bits, back)
    assert signed.tolist() == [1, -1, 127, -128, 0, 127, 0, 0]
    assert unsigned.tolist() == [1, 0, 255, 0, 0, 255, 0, 0]
    np.testing.assert_array_equal(bits, [values.view(np.int16)] * 2)
    np.testing.assert_array_equal(back.view(np.int16), bits)


def floats(dtype):
    """Numbers at, and right beside, the middle between two bfloat16, and others."""
    middles = (ANY[:300].astype(np.float32).view(np.uint32) | 0x8000).view(np.float32).astype(dtype)
    beside = np.concatenate([np.nextafter(middles, np.inf, dtype=dtype), np.nextafter(middles, 0, dtype=dtype)])
    edges = [0, -0.0, np.inf, -np.inf, np.nan, np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal, 1 / 3, 1e-40]
    return np.concatenate([middles, beside, np.array(edges, dtype), -np.array(edges, dtype)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_from_floats(dtype):
    convert = bf16.float32_to_bfloat16 if dtype is np.float32 else bf16.float64_to_bfloat16

    @hip.jit
    def kernel(values, out):
        i = hip.grid(1)
        if i < values.size:
            out[0, i], out[1, i], out[2, i] = values[i], bf16.bfloat16(values[i]), convert(values[i])

    values = floats(dtype)
    out = np.zeros((3, values.size), BF16)
    kernel.forall(values.size)(values, out)
    finite = np.isfinite(values)
    wanted = np.array([exactly(Fraction(float(value))) for value in values[finite]])
    for found in out:
        found_bits = found.view(np.uint16)[finite]
        np.testing.assert_array_equal(found_bits & 0x7FFF, wanted & 0x7FFF)
        np.testing.assert_array_equal(np.signbit(found)[finite], np.signbit(values)[finite])
        np.testing.assert_array_equal(found[~finite].astype(dtype), values[~finite])
    assert [bits_of(value) & 0x7FFF for value in values[finite]] == (wanted & 0x7FFF).tolist()
    assert [bits_of(value) for value in (np.inf, -np.inf, BF16(1.5))] == [0x7F80, 0xFF80, 0x3FC0]
    assert bits_of(np.nan) & 0x7FFF > 0x7F80


def test_from_float32_in_every_direction():
    nearest, to_zero, down, up = (getattr(bf16, f"float32_to_bfloat16_{direction}") for direction in WORDS)

    @hip.jit
    def kernel(values, out, back):
        i = hip.grid(1)
        if i < values.size:
            out[0, i], out[1, i] = nearest(values[i]), to_zero(values[i])
            out[2, i], out[3, i] = down(values[i]), up(values[i])
            back[i] = bf16.bfloat16_to_float32(out[0, i])

    values = floats(np.float32)
    values = values[~np.isnan(values)]
    out, back = np.zeros((4, values.size), BF16), np.zeros_like(values)
    kernel.forall(values.size)(values, out, back)
    finite = np.isfinite(values) & (values != 0)
    for found, direction in zip(out, WORDS, strict=True):
        wanted = [exactly(Fraction(float(value)), direction) for value in values[finite]]
        np.testing.assert_array_equal(found.view(np.uint16)[finite], wanted, err_msg=direction)
        np.testing.assert_array_equal(found[~finite].astype(np.float32), values[~finite])
    np.testing.assert_array_equal(back, out[0].astype(np.float32))


def test_with_other_types():
    @hip.jit
    def kernel(values, wide, whole, flags, z):
        i = hip.grid(1)
        x = values[i]
        wide[0, i], wide[1, i], wide[2, i] = x + np.float32(0.1), x * 0.1, x + i
        wide[3, i], wide[4, i] = float(x), math.sqrt(abs(x))
        wide[5, i] = x if i % 2 else 0.1
        whole[0, i], whole[1, i] = int(x), x
        flags[i] = 1 if x else 0
        z[i] = x * 1j
        values[i] = x**2 if i % 2 else x ** bf16.bfloat16(0.5)

    values = np.array([2, 2.5, 0, 100], BF16)
    x = values.astype(np.float64)
    wide, whole = np.zeros((6, 4)), np.zeros((2, 4), np.int32)
    flags, z = np.zeros(4, np.int8), np.zeros(4, complex)
    kernel[1, 4](values, wide, whole, flags, z)
    single = x.astype(np.float32)
    expected = [single + np.float32(0.1), x * 0.1, x + np.arange(4), x, np.sqrt(single), np.where([0, 1, 0, 1], x, 0.1)]
    np.testing.assert_array_equal(wide, expected)
    assert whole.tolist() == [[2, 2, 0, 100]] * 2
    assert flags.tolist() == [1, 1, 0, 1]
    np.testing.assert_array_equal(z, x * 1j)
    np.testing.assert_array_equal(values, np.array([2**0.5, 6.25, 0, 10000], BF16))


def test_arguments_memory_and_printing(capsys):
    constant = np.array([1, 2, 3, 4], BF16)

    @hip.jit
    def kernel(x, pair, out):
        shared = hip.shared.array(4, hip.bfloat16)
        private = hip.local.array(2, hip.bf16.bfloat16)
        i = hip.threadIdx.x
        shared[i] = x * constant[i]
        private[1] = pair[1]
        hip.syncthreads()
        out[i] = shared[3 - i] + private[1]
        if i == 0:
            print(out[i], (x, 1))

    out = hip.device_array(4, BF16)
    kernel[1, 4](BF16(1.5), (1, BF16(0.25)), out)
    np.testing.assert_array_equal(out.copy_to_host(), np.array([6.25, 4.75, 3.25, 1.75], BF16))
    assert capsys.readouterr().out == "6.25 (1.5, 1)\n"


def test_signatures():
    @hip.jit((bf16.bfloat16, bf16.bfloat16[::1]))
    def kernel(x, out):
        out[0] = x

    out = np.zeros(2, BF16)
    for value, wanted in ((1.0 + 2**-8, 1), (1.0 + 3 * 2**-8, 1 + 2**-6), (7, 7), (np.float32(np.inf), np.inf)):
        kernel[1, 1](value, out)
        assert out[0] == BF16(wanted)


UNARY = {
    "hsin": np.sin, "hcos": np.cos, "hlog": np.log, "hlog2": np.log2, "hlog10": np.log10, "hexp": np.exp,
    "hexp2": np.exp2, "hfloor": np.floor, "hceil": np.ceil, "htrunc": np.trunc, "hrint": np.rint, "hsqrt": np.sqrt,
    "hneg": np.negative, "habs": np.abs, "hexp10": lambda x: np.float64(10) ** x, "hrcp": lambda x: 1 / x,
    "hrsqrt": lambda x: 1 / np.sqrt(x), "htanh": np.tanh, "htanh_approx": np.tanh,
}  # fmt: skip


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(name):
    function = getattr(bf16, name)

    @hip.jit
    def kernel(a, out):
        i = hip.grid(1)
        if i < a.size:
            out[i] = function(a[i])

    a = np.concatenate([SPECIAL, np.linspace(-9, 9, 100).astype(BF16)])
    out = np.zeros_like(a)
    kernel.forall(a.size)(a, out)
    wanted = UNARY[name](a.astype(np.float64)).astype(BF16)
    np.testing.assert_allclose(out.astype(np.float64), wanted.astype(np.float64), rtol=2**-7)


def test_functions_of_several_numbers():
    @hip.jit
    def kernel(a, b, out, infinite):
        i = hip.grid(1)
        if i < a.size:
            x, y = a[i], b[i]
            out[0, i], out[1, i], out[2, i] = bf16.hadd(x, y), bf16.hsub_rn(x, y), bf16.hmul(x, y)
            out[3, i], out[4, i], out[5, i] = bf16.hdiv(x, y), bf16.hmax(x, y), bf16.hmin(x, y)
            out[6, i], out[7, i], out[8, i] = bf16.hmax_nan(x, y), bf16.hmin_nan(x, y), bf16.hadd_sat(x, y)
            out[9, i], out[10, i] = bf16.hmul_sat(x, y), bf16.hsub_sat(x, y)
            infinite[i] = bf16.hisinf(x)

    out, infinite = np.zeros((11, A.size), BF16), np.zeros(A.size, np.int32)
    kernel.forall(A.size)(A, B, out, infinite)

    def limited(values):
        values = values.astype(np.float32)
        return np.where(values > 0, np.minimum(values, np.float32(1)), np.float32(0)).astype(BF16)

    sums = [A + B, A - B, A * B, A / B, np.fmax(A, B), np.fmin(A, B), np.maximum(A, B), np.minimum(A, B)]
    for found, wanted in zip(out, [*sums, limited(A + B), limited(A * B), limited(A - B)], strict=True):
        np.testing.assert_array_equal(found.astype(np.float32), wanted.astype(np.float32))
    np.testing.assert_array_equal(infinite, np.where(np.isinf(A), np.where(np.signbit(A), -1, 1), 0))


def test_fused_products_are_rounded_once():
    @hip.jit
    def kernel(a, b, c, out):
        i = hip.grid(1)
        if i < a.size:
            out[0, i] = bf16.hfma(a[i], b[i], c[i])
            out[1, i] = bf16.hfma_sat(a[i], b[i], c[i])
            out[2, i] = bf16.hfma_relu(a[i], b[i], c[i])

    rng = np.random.default_rng(8)
    a, b = (rng.integers(0x3F00, 0x4080, 2000, np.uint16).view(BF16) for _ in range(2))
    tiny = (rng.choice([1, -1], 2000) * 2.0 ** rng.integers(-120, 8, 2000)).astype(BF16)
    out = np.zeros((3, a.size), BF16)
    kernel.forall(a.size)(a, b, tiny, out)
    exact = [Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)) for x, y, z in zip(a, b, tiny, strict=True)]
    wanted = np.array([exactly(value) for value in exact], np.uint16)
    np.testing.assert_array_equal(out[0].view(np.uint16), wanted)
    numbers = wanted.view(BF16).astype(np.float32)
    np.testing.assert_array_equal(out[1].astype(np.float32), np.clip(numbers, 0, 1))
    np.testing.assert_array_equal(out[2].astype(np.float32), np.maximum(numbers, 0))
    nan = np.full(1, np.nan, BF16)
    kernel[1, 1](nan, a, b, out)
    assert [bool(np.isnan(value)) for value in out[:, 0]] == [True, False, True]


@pytest.mark.parametrize("target", ["gfx942", "gfx1201"])
@pytest.mark.sample(1)
def test_for_amd_gpus(target):
    def functions(a, b, out):
        out[0, 0] = bf16.hexp10(a[0]) + bf16.hsin(b[0]) * bf16.hfma(a[0], b[0], a[1]) + a[0] ** b[0]
        out[0, 1] = bf16.int64_to_bfloat16_ru(bf16.bfloat16_to_int64_rn(a[1])) + bf16.float64_to_bfloat16(0.1)

    for kernel in (arithmetic, functions):
        assert hip.compile(kernel, SIGNATURE, target=target, output="object")[0][:4] == b"\x7fELF"


def test_what_is_no_bfloat16():
    with pytest.raises(TypingError, match=r"hip.bf16.hsin takes numbers of type bfloat16, not a complex128"):
        hip.compile(lambda out: bf16.hsin(1j), (bf16.bfloat16[::1],), target="cpu", output="llvm")
    with pytest.raises(TypingError, match=r"hip.bf16.int16_to_bfloat16_rn takes a int16, not a complex128"):
        hip.compile(lambda out: bf16.int16_to_bfloat16_rn(1j), (bf16.bfloat16[::1],), target="cpu", output="llvm")
    with pytest.raises(AttributeError, match="'hip.bf16' has no attribute 'hsinh'"):
        _ = bf16.hsinh
    with pytest.raises(NumbaError):
        hip.compile(lambda x, out: np.sqrt(x, out), (bf16.bfloat16[::1],) * 2, target="cpu", output="llvm")


def test_other_small_floats_are_refused_with_the_remedy():
    @hip.jit
    def copy(bits, out):
        out[0] = bits[0]

    values, out = np.ones(1, ml_dtypes.float8_e4m3b11fnuz), np.zeros(1, np.uint8)
    for array in (values, hip.to_device(values)):
        with pytest.raises(
            KernelArgumentError, match=r"type float8_e4m3b11fnuz; pass array.view\(np.uint8\) for their bits"
        ):
            copy[1, 1](array, out)
    copy[1, 1](hip.to_device(values).view(np.uint8), out)
    assert out == values.view(np.uint8)


def test_conversions_by_the_names_of_c():
    assert bf16.float2bfloat16 is bf16.float32_to_bfloat16
    assert bf16.double2bfloat16 is bf16.float64_to_bfloat16
    assert bf16.bfloat162float is bf16.bfloat16_to_float32
    assert bf16.ull2bfloat16_rd is bf16.uint64_to_bfloat16_rd
    assert bf16.bfloat162char_rz is bf16.bfloat16_to_int8_rz
    assert bf16.bfloat16_as_ushort is bf16.bfloat16_as_uint16
    assert bf16.short_as_bfloat16 is bf16.int16_as_bfloat16
    assert {"bfloat162ll_ru", "short2bfloat16_rn"} <= set(dir(bf16))


def test_numbers_of_the_host():
    for value in (3, 1.1, 257, np.float32(-0.1), BF16(0.5), np.inf, 1e39):
        made = hip.bfloat16(value)
        assert made.dtype == BF16
        assert made == BF16(value)
