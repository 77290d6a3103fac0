"""What ``fastmath`` allows reaches the code, on every target, and only where it was asked for."""

import numpy as np
import pytest

import numba_hip as hip


def total(values, out):
    i = hip.grid(1)
    result = np.float32(0)
    for k in range(values.shape[1]):
        result += values[i, k] * values[i, k]
    out[i] = result


SIGNATURE = "(float32[:, ::1], float32[::1])"


@pytest.mark.parametrize("target", ["cpu", "gfx942", "gfx1100"])
def test_flags_of_operations(target):
    plain = hip.compile(total, SIGNATURE, target=target, output="llvm")[0]
    fast = hip.compile(total, SIGNATURE, target=target, output="llvm", fastmath=True)[0]
    chosen = hip.compile(total, SIGNATURE, target=target, output="llvm", fastmath={"contract"})[0]
    assert "fadd fast" not in plain
    assert "fadd fast" in fast
    assert "fadd contract" in chosen


def test_results_stay_close():
    values = np.random.default_rng(2).random((64, 500), np.float32)
    out = np.zeros(64, np.float32)
    hip.jit(fastmath=True)(total)[1, 64](values, out)
    np.testing.assert_allclose(out, (values.astype(np.float64) ** 2).sum(axis=1), rtol=1e-5)


@pytest.mark.parametrize(
    ("fastmath", "raises"), [(False, True), ({"contract"}, True), ({"ninf"}, False), (True, False)]
)
def test_divisions_that_raise_nothing(fastmath, raises):
    @hip.jit(fastmath=fastmath, debug=True, opt=False)
    def divide(out, by):
        out[0] = out[0] / by
        out[1] /= by

    out = np.full(2, 6, np.float32)
    divide[1, 1](out, np.float32(4))
    assert out.tolist() == [1.5, 1.5]
    if raises:
        with pytest.raises(ZeroDivisionError):
            divide[1, 1](out, np.float32(0))
    else:
        divide[1, 1](out, np.float32(0))
    with pytest.raises(ZeroDivisionError):  # of float64, where speed is not that of a GPU's own instruction
        divide[1, 1](out.astype(np.float64), 0.0)
