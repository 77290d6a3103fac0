"""HIP's special functions in kernels: inverses undo what they are the inverses of."""

from __future__ import annotations

import numpy as np

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
