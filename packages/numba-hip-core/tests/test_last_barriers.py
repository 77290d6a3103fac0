"""Barriers at the end of a kernel: nobody waits there, unless some threads do not get that far."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import hip, int64

from hip_runtime import config as runtime_config
from hip_runtime.errors import BarrierDivergenceError

on_the_cpu = pytest.mark.cpu_device("it knows which threads wait at a barrier")


@hip.jit
def double(x, out):
    i = hip.grid(1)
    if i < out.size:
        out[i] = 2 * x[i]
    hip.syncthreads()


@hip.jit
def double_some(x, out):
    """Both ways lead to the barrier."""
    i = hip.grid(1)
    if i < out.size and x[i] > 50:
        out[i] = 2 * x[i]
    else:
        for k in range(3):
            if i < out.size:
                out[i] += k
    hip.syncthreads()


@hip.jit
def reverse(x, out):
    """The first barrier matters."""
    tile = hip.shared.array(64, int64)
    i, t = hip.grid(1), hip.threadIdx.x
    tile[t] = x[i] if i < x.size else 0
    hip.syncthreads()
    if i < out.size:
        out[i] = tile[63 - t]
    hip.syncthreads()


@hip.jit
def first_of_pairs(x, out):
    """What follows the barrier is done."""
    i = hip.grid(1)
    if i < out.size:
        out[i] = 2 * x[i]
    hip.syncthreads()
    if i < out.size and i % 2 == 1:
        out[i] = out[i - 1]


X = np.random.default_rng(9).integers(0, 100, 320)
EXPECTED = {
    double: 2 * X,
    double_some: np.where(X > 50, 2 * X, 3),
    reverse: X.reshape(5, 64)[:, ::-1].ravel(),
    first_of_pairs: np.repeat(2 * X[::2], 2),
}


@pytest.mark.parametrize("form", ["auto", "regions", "vectors"])
@pytest.mark.parametrize("kernel", EXPECTED, ids=lambda kernel: kernel.__name__)
def test_kernels_that_end_with_a_barrier(kernel: Any, form: str) -> None:
    out = np.zeros_like(X)
    with runtime_config.cpu_form.scope(form):
        kernel[5, 64](X, out)
    np.testing.assert_array_equal(out, EXPECTED[kernel])


@pytest.mark.parametrize("kernel", [double, double_some], ids=lambda kernel: kernel.__name__)
def test_their_threads_may_run_one_after_another(kernel: Any) -> None:
    out = np.zeros_like(X)
    with runtime_config.cpu_form.scope("loop"):
        kernel[320, 1](X, out)
        out[:] = 0
        kernel[5, 64](X, out)
    np.testing.assert_array_equal(out, EXPECTED[kernel])


@on_the_cpu
@pytest.mark.parametrize("kernel", EXPECTED, ids=lambda kernel: kernel.__name__)
def test_no_thread_waits_at_the_end(kernel: Any) -> None:
    told = kernel.explain(X, X, block=64)
    assert (told.form == "regions") == (kernel in (reverse, first_of_pairs)), told


@hip.jit
def leave_early(x, out):
    i = hip.grid(1)
    if i >= out.size:
        return
    out[i] = 2 * x[i]
    hip.syncthreads()


@hip.jit
def wait_in_part(x, out):
    i = hip.grid(1)
    if i < out.size:
        out[i] = 2 * x[i]
        hip.syncthreads()


@hip.jit
def wait_apart(x, out):
    i = hip.grid(1)
    if x[i % 320] > 50:
        out[i % 320] = 1
        hip.syncthreads()
    else:
        out[i % 320] = 2
        hip.syncthreads()


@on_the_cpu
@pytest.mark.parametrize("kernel", [leave_early, wait_in_part], ids=lambda kernel: kernel.__name__)
def test_what_some_threads_do_not_reach_is_still_a_barrier(kernel: Any) -> None:
    assert kernel.explain(X, X, block=64).form == "regions"


@on_the_cpu
def test_different_barriers_are_still_an_error() -> None:
    with pytest.raises(BarrierDivergenceError):
        wait_apart[5, 64](X, np.zeros_like(X))
