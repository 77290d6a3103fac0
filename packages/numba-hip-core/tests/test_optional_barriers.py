"""Kernels with many barriers that branches decide on."""

import numpy as np
import pytest

import numba_hip as hip
from hip_runtime import config

STEPS = 10
THREADS = 70

STEP = """
    if mode[{step}] > {least}:
        shared[t] = x[t] * {step} + total
        hip.syncthreads()
        total += shared[{last} - t]
        hip.syncthreads()
    {between}
"""
BETWEEN = {
    "nothing": "total += 1",
    "a branch that threads take apart": "total = total * 2 - t if t % 3 == 0 else total + 1",
    "a loop that threads leave apart": "for _ in range(t % 4):\n        total = total * 2 % 1001",
}


def optional(between, early, in_loop):
    """A kernel with an optional exchange in each step, and *between* two of them something else."""
    steps = "".join(
        STEP.format(step=step, last=THREADS - 1, least="turn" if in_loop else 0, between=BETWEEN[between])
        for step in range(STEPS)
    )
    if in_loop:
        steps = "    for turn in range(3):" + steps.replace("\n", "\n    ") + "\n"
    start = "    if t >= x.size:\n        return\n" if early else ""
    code = f"def kernel(mode, x):\n    shared = hip.shared.array({THREADS}, np.int64)\n    t = hip.threadIdx.x\n{start}"
    names = {"hip": hip, "np": np}
    exec(f"{code}    total = 0\n{steps}    x[t] = total\n", names)
    return hip.jit(names["kernel"])


def expected(mode, x, between, in_loop):
    threads = np.arange(THREADS)
    total = np.zeros(THREADS, np.int64)
    for turn in range(3 if in_loop else 1):
        for step in range(STEPS):
            if mode[step] > turn:
                total = total + (x * step + total)[::-1]
            if between == "nothing":
                total = total + 1
            elif between.startswith("a branch"):
                total = np.where(threads % 3 == 0, total * 2 - threads, total + 1)
            else:
                for again in range(3):
                    total = np.where(threads % 4 > again, total * 2 % 1001, total)
    return total


CASES = [(between, early, False) for between in BETWEEN for early in (False, True)] + [("nothing", False, True)]
"""What stands between, whether some threads may return before, and whether all is in a loop."""


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
@pytest.mark.parametrize("form", ["auto", "regions", "vectors"])
def test_an_exchange_in_some_steps(form, case):
    between, early, in_loop = case
    kernel = optional(between, early, in_loop)
    rng = np.random.default_rng(11)
    for mode in (np.zeros(STEPS, np.int64), np.ones(STEPS, np.int64) * 3, rng.integers(0, 4, STEPS)):
        x = rng.integers(0, 100, THREADS)
        out = x.copy()
        with config.cpu_form.scope(form):
            kernel[1, THREADS](mode, out)
        np.testing.assert_array_equal(out, expected(mode, x, between, in_loop))
