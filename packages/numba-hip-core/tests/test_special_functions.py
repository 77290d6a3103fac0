"""HIP's special functions in kernels: inverses undo what they are the inverses of."""

from __future__ import annotations

import numpy as np
import pytest

import numba_hip as hip


def test_inverses_in_a_kernel():
    @hip.jit
    def kernel(x, out):
        i = hip.grid(1)
        if i < x.size:
            out[0, i] = hip.erff(hip.erfinvf(np.float32(x[i])))
            out[1, i] = hip.erf(hip.erfinv(x[i]))
            out[2, i] = 1 - hip.erfc(hip.libdevice.erfcinv(1 - x[i]))
            out[3, i] = 2 * hip.normcdf(hip.normcdfinv((1 + x[i]) / 2)) - 1
            y = 3 * x[i]
            out[4, i] = 1 - hip.erfcx(y) / np.exp(y * y)
            out[5, i] = hip.cyl_bessel_i1(y)
            out[6, i] = (hip.cyl_bessel_i0(y + 1e-5) - hip.cyl_bessel_i0(y - 1e-5)) / 2e-5

    x = np.linspace(-0.99, 0.99, 100)
    out = np.zeros((7, x.size))
    kernel[4, 32](x, out)
    np.testing.assert_allclose(out[0], x, atol=3e-7)
    for row in out[1:4]:
        np.testing.assert_allclose(row, x, atol=1e-14)
    error = np.zeros_like(x)
    erf_of[4, 32](3 * x, error)
    np.testing.assert_allclose(out[4], error, atol=1e-14)
    np.testing.assert_allclose(out[6], out[5], rtol=1e-7, atol=1e-9)  # i1 is the derivative of i0


@hip.jit
def erf_of(x, out):
    i = hip.grid(1)
    if i < x.size:
        out[i] = hip.erf(x[i])


@pytest.mark.cpu_device("an AMD GPU runs HIP's own")
@pytest.mark.parametrize("values", [[], [-5.0], [1, 2, 2], [3e20, 4e20], [0, 0], [np.inf, np.nan], range(1000)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.sample(6)
def test_lengths_of_arrays(values, dtype):
    norm, rnorm = (hip.normf, hip.rnormf) if dtype == np.float32 else (hip.norm, hip.rnorm)

    @hip.jit
    def measure(a, out):
        out[0] = norm(a.size, a)
        out[1] = rnorm(a.size, a)

    a, out = np.array(values, dtype), np.zeros(2, dtype)
    measure[1, 1](a, out)
    length = np.inf if np.isinf(a).any() else np.sqrt((a.astype(np.float64) ** 2).sum())
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(out, [length, 1 / length], rtol=4 * np.finfo(dtype).eps)
