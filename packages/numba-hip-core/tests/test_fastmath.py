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
