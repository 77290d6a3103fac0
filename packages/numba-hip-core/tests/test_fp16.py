"""Numbers of type float16, bit by bit against NumPy."""

import math

import numpy as np
import pytest
from numba.core.errors import NumbaError, TypingError

import numba_hip as hip
from numba_hip import fp16

SPECIAL = np.array(
    [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 65504, 6e-8, -6.1e-5, 0.1, 2049, 1e-3, 3.14159], np.float16
)
A, B = (array.ravel() for array in np.meshgrid(SPECIAL, SPECIAL))
SIGNATURE = "(float16[::1], float16[::1], float16[:,::1])"

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")


def arithmetic(a, b, out):
    i = hip.grid(1)
    x, y = a[i], b[i]
    out[0, i] = x + y
    out[1, i] = x - y
    out[2, i] = x * y
    out[3, i] = x / y
    out[4, i] = -x
    out[5, i] = abs(x)
    x += y
    x *= y
    out[6, i] = x


def test_arithmetic_rounds_once():
    out = np.zeros((7, A.size), np.float16)
    hip.jit(arithmetic)[A.size // 14, 14](A, B, out)
    wanted = [A + B, A - B, A * B, A / B, -A, abs(A), (A + B) * B]
    np.testing.assert_array_equal(out, np.array(wanted))
    assert (np.signbit(out[4][~np.isnan(A)]) != np.signbit(A[~np.isnan(A)])).all()


def test_comparisons():
    @hip.jit
    def kernel(a, b, out):
        i = hip.grid(1)
        x, y = a[i], b[i]
        out[0, i], out[1, i], out[2, i] = x == y, x != y, x < y
        out[3, i], out[4, i], out[5, i] = x <= y, x > y, x >= y
        out[6, i], out[7, i], out[8, i] = fp16.heq(x, y), fp16.hne(x, y), fp16.hlt(x, y)
        out[9, i], out[10, i], out[11, i] = fp16.hle(x, y), fp16.hgt(x, y), fp16.hge(x, y)

    out = np.zeros((12, A.size), bool)
    kernel[1, A.size](A, B, out)
    wanted = [A == B, A != B, A < B, A <= B, A > B, A >= B]
    ordered = ~(np.isnan(A) | np.isnan(B))  # as CUDA documents for them, also for hne
    np.testing.assert_array_equal(out, np.array(wanted + [one & ordered for one in wanted]))


def test_conversions():
    @hip.jit
    def kernel(f16, f64, i64, out, whole, wide):
        i = hip.grid(1)
        out[0, i] = f64[i]
        out[1, i] = i64[i]
        out[2, i] = np.float16(f64[i]) + np.float16(i64[i])
        whole[i] = int(f16[i])
        wide[0, i] = f16[i]
        wide[1, i] = f16[i] + np.float32(0.1)
        wide[2, i] = f16[i] * 0.1
        wide[3, i] = float(f16[i])

    f16 = np.array([0.1, -3.7, 100, 65504, 1e-7], np.float16)
    f64 = np.array([0.1, 1e5, 1 / 3, 2049.0, -1e-9])
    i64 = np.array([1, 2049, -70000, 7, 12345])
    out, whole, wide = np.zeros((3, 5), np.float16), np.zeros(5, np.int64), np.zeros((4, 5))
    kernel[1, 5](f16, f64, i64, out, whole, wide)
    np.testing.assert_array_equal(out[0], f64.astype(np.float16))
    np.testing.assert_array_equal(out[1], i64.astype(np.float16))
    np.testing.assert_array_equal(out[2], f64.astype(np.float16) + i64.astype(np.float16))
    np.testing.assert_array_equal(whole, f16.astype(np.int64))
    np.testing.assert_array_equal(wide, [f16, f16 + np.full(5, 0.1, np.float32), f16.astype(float) * 0.1, f16])


def test_arguments_and_arrays_of_a_kernel():
    @hip.jit
    def kernel(x, out):
        shared = hip.shared.array(4, np.float16)
        private = hip.local.array(2, np.float16)
        i = hip.threadIdx.x
        shared[i] = x * np.float16(i)
        private[1] = x
        hip.syncthreads()
        out[i] = shared[3 - i] + private[1]

    out = np.zeros(4, np.float16)
    kernel[1, 4](np.float16(1.5), out)
    np.testing.assert_array_equal(out, np.float16([6, 4.5, 3, 1.5]))
    device = hip.to_device(out)
    hip.jit(arithmetic)[1, 4](device, device, hip.device_array((7, 4), np.float16))
    np.testing.assert_array_equal(device.copy_to_host(), out)


UNARY = {
    "hsin": np.sin, "hcos": np.cos, "hlog": np.log, "hlog2": np.log2, "hlog10": np.log10, "hexp": np.exp,
    "hexp2": np.exp2, "hfloor": np.floor, "hceil": np.ceil, "htrunc": np.trunc, "hrint": np.rint, "hsqrt": np.sqrt,
    "hneg": np.negative, "habs": np.abs, "hexp10": lambda x: np.float64(10) ** x, "hrcp": lambda x: 1 / x,
    "hrsqrt": lambda x: 1 / np.sqrt(x),
}  # fmt: skip


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(name):
    function = getattr(fp16, name)

    @hip.jit
    def kernel(a, out):
        i = hip.grid(1)
        out[i] = function(a[i])

    a = np.concatenate([SPECIAL, np.linspace(-9, 9, 50, dtype=np.float16)])
    out = np.zeros_like(a)
    kernel[1, a.size](a, out)
    np.testing.assert_allclose(out, UNARY[name](a.astype(np.float64)).astype(np.float16), rtol=2**-10)


def test_functions_of_several_numbers():
    @hip.jit
    def kernel(a, b, out):
        i = hip.grid(1)
        out[0, i] = fp16.hadd(a[i], b[i])
        out[1, i] = fp16.hsub(a[i], b[i])
        out[2, i] = fp16.hmul(a[i], b[i])
        out[3, i] = fp16.hdiv(a[i], b[i])
        out[4, i] = fp16.hfma(a[i], b[i], a[i])
        out[5, i] = fp16.hmax(a[i], b[i])
        out[6, i] = fp16.hmin(a[i], b[i])
        out[7, i] = math.sqrt(abs(a[i]))
        out[8, i] = np.sqrt(abs(a[i]))
        out[9, i] = abs(a[i]) ** 2
        out[10, i] = abs(a[i]) ** abs(b[i])

    out = np.zeros((11, A.size), np.float16)
    kernel[1, A.size](A, B, out)
    a, b = A.astype(np.float64), B.astype(np.float64)
    wanted = [
        A + B,
        A - B,
        A * B,
        A / B,
        (a * b + a),
        np.fmax(A, B),
        np.fmin(A, B),
        np.sqrt(abs(a)),
        np.sqrt(abs(a)),
        a * a,
    ]
    np.testing.assert_array_equal(out[:10], np.array(wanted).astype(np.float16))
    np.testing.assert_allclose(out[10], (abs(a) ** abs(b)).astype(np.float16), rtol=2**-10)


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100", "gfx1201"])
@pytest.mark.sample(1)
def test_for_amd_gpus(target):
    def functions(a, b, out):
        out[0, 0] = fp16.hexp10(a[0]) + fp16.hsin(b[0]) * fp16.hfma(a[0], b[0], a[1]) + a[0] ** b[0]

    for kernel in (arithmetic, functions):
        assert hip.compile(kernel, SIGNATURE, target=target, output="object")[0][:4] == b"\x7fELF"
    text, _ = hip.compile(arithmetic, SIGNATURE, target=target, output="llvm")
    for instruction in ("fadd half", "fsub half", "fmul half", "fneg half"):
        assert instruction in text


def test_what_is_no_half():
    with pytest.raises(TypingError, match=r"hip.fp16.hsin takes numbers of type float16, not a complex128"):
        hip.compile(lambda out: fp16.hsin(1j), "(float16[::1],)", target="cpu", output="llvm")

    def halves(x, out):
        np.sqrt(x, out)

    with pytest.raises(NumbaError, match="ufuncs do not take arrays of float16"):
        hip.compile(halves, "(float16[::1], float32[::1])", target="cpu", output="llvm")
