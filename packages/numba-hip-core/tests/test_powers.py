"""Powers with integer exponents, negative ones of zeros among them."""

import math

import numpy as np
import pytest

import numba_hip as hip

MINIMUM = -(2**31)
EXPONENTS = np.array([-1, -2, -3, MINIMUM, 2**31 - 1, -70000, 0, 5], np.int32)


def by_ieee(x, n):
    """What C's pow gives."""
    if math.isnan(x):
        return math.nan if n else 1.0
    with np.errstate(all="ignore"):
        return float(np.power(np.float64(x), np.float64(n)))


def powers(x, exponents, out):
    i = hip.grid(1)
    a = x[i]
    out[i, 0], out[i, 1], out[i, 2] = a**-1, a**-2, a**-3
    out[i, 3], out[i, 4], out[i, 5] = a**-2147483648, a**2147483647, a**-70000
    out[i, 6], out[i, 7] = a**0, pow(a, 5)
    for k in range(8):
        out[i, 8 + k] = a ** exponents[k]
        out[i, 16 + k] = pow(a, exponents[k])
        a **= exponents[k]
        out[i, 24 + k] = a
        a = x[i]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.sample(1)
def test_of_floats(dtype):
    x = np.array([0.0, -0.0, 2.0, -3.0, 1.0, -1.0, 1e-30, -1e-30, math.inf, -math.inf, math.nan], dtype)
    out = np.zeros((x.size, 32), dtype)
    hip.jit(powers)[1, x.size](x, EXPONENTS, out)
    with np.errstate(over="ignore", under="ignore"):
        wanted = np.array([[by_ieee(one, n) for n in EXPONENTS.tolist() * 4] for one in x.tolist()]).astype(dtype)
    np.testing.assert_allclose(out, wanted, rtol=1e-6 if dtype == np.float32 else 1e-15)
    np.testing.assert_array_equal(np.signbit(out[:10]), np.signbit(wanted[:10]))


def test_of_integers():
    @hip.jit
    def kernel(a, n, out):
        i = hip.grid(1)
        for k in range(n.size):
            out[i, k] = a[i] ** n[k]

    a, n = np.array([0, 1, -1, 2, -3]), np.array([-1, -2, -(2**63), 0, 5])
    out = np.zeros((5, 5), np.int64)
    kernel[1, 5](a, n, out)
    lowest = -(2**63)
    assert out.tolist() == [
        [lowest, lowest, lowest, 1, 0], [1, 1, 1, 1, 1], [-1, 1, 1, 1, -1], [0, 0, 0, 1, 32], [0, 0, 0, 1, -243],
    ]  # fmt: skip


KINDS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32, np.uint64)


def of_two(n, out):
    i = hip.grid(1)
    out[0, i], out[1, i], out[2, i] = 2 ** n[i], 8 ** n[i], pow(4, n[i])
    x = 2
    x **= n[i]
    out[3, i] = x


@pytest.mark.parametrize("kind", KINDS)
def test_of_two(kind):
    """They wrap around as products do; of negative exponents they are less than 1."""
    exponents = [0, 1, 2, 5, 6, 7, 8, 15, 16, 20, 21, 22, 30, 31, 32, 33, 62, 63, 64, 65, 100, 127]
    exponents += [] if kind in (np.uint8, np.uint32, np.uint64) else [-1, -2, -63, -64, -128]
    out = np.full((4, len(exponents)), -7, np.int64)
    hip.jit(of_two)[1, len(exponents)](np.array(exponents, kind), out)
    wanted = np.array([[base**n % 2**64 if n >= 0 else 0 for n in exponents] for base in (2, 8, 4, 2)], np.uint64)
    np.testing.assert_array_equal(out.view(np.uint64), wanted)


def steps(x, out):
    """Sums by a block, as courses on GPUs teach them."""
    part = hip.shared.array(256, np.float64)
    thread = hip.threadIdx.x
    part[thread] = x[hip.grid(1)]
    hip.syncthreads()
    step = 0
    while 2**step < 256:
        apart = 2**step
        if thread % (2 * apart) == 0:
            part[thread] += part[thread + apart]
        hip.syncthreads()
        step += 1
    if thread == 0:
        out[hip.blockIdx.x] = part[0]


@pytest.mark.cpu_device("its optimised code")
def test_steps_of_a_tree_are_known():
    """Each is a region of its own, without a division."""
    kernel = hip.jit(steps)
    x, out = np.random.default_rng(1).random(1024), np.zeros(4)
    kernel[4, 256](x, out)
    np.testing.assert_allclose(out, x.reshape(4, 256).sum(axis=1))
    (code,) = kernel.inspect_llvm().values()
    assert "srem" not in code
    assert "fdiv" not in code


def by_literal(x, n, out):
    out[0] = x[0] ** -1


def by_variable(x, n, out):
    out[0] = x[0] ** n[0]


@pytest.mark.parametrize("function", [by_literal, by_variable])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.sample(1)
def test_zero_raises_where_a_division_by_it_does(function, dtype):
    x, n, out = np.zeros(1, dtype), np.array([-1]), np.zeros(1)
    hip.jit(function)[1, 1](x, n, out)
    assert out[0] == (math.inf if dtype == np.float32 else -(2.0**63))
    for options in ({"error_model": "python"}, {"debug": True, "opt": False}):
        kernel = hip.jit(function, **options)
        with pytest.raises(ZeroDivisionError, match="cannot be raised to a negative power"):
            kernel[1, 1](x, n, out)
        kernel[1, 1](x + 2, n, out)
        assert out[0] == (0.5 if dtype == np.float32 else 0)


@pytest.mark.sample(1)
@pytest.mark.parametrize("target", ["gfx90a", "gfx1100"])
def test_for_amd_gpus(target):
    from numba import types

    kinds = (types.float32[::1], types.int32[::1], types.float32[:, ::1])
    assembly, _ = hip.compile(powers, kinds, target=target, output="asm")
    assert "v_rcp" in assembly
