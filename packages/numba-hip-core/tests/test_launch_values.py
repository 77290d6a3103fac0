"""Numbers that the arguments of a launch decide: computed once, with the same results, whatever the arguments are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import float64, hip

from hip_runtime import config as runtime_config

FORMS = ["auto", "loop", "regions", "vectors"]
AHEAD = "once, before all blocks"


@hip.jit
def turn(x, y, angle, out):
    i = hip.grid(1)
    if i < x.size:
        out[i] = math.cos(angle) * x[i] - math.sin(angle) * y[i]


@hip.jit
def only_store(angle, shift, out):
    """What is stored is a real number whose sign is set in its bits."""
    i = hip.grid(1)
    if i < out.size:
        out[i] = math.tan(2 * angle + shift) if i % 3 else math.cos(angle)


@hip.jit
def sum_in_loop(angle, count, out):
    i = hip.grid(1)
    if i < out.size:
        total = 0.0
        for k in range(count):
            if k != i:
                total += math.sin(angle) * k
        out[i] = total


@hip.jit(device=True)
def ramp(t):
    if t < -1.0:
        return math.sin(t) * 0.5
    if t > 1.0:
        if t > 5.0:
            return math.cos(t) - t
        return math.exp(-t) * math.sin(2.0 * t)
    return t * t * t - math.tan(t)


@hip.jit
def by_ramp(x, t, out):
    i = hip.grid(1)
    if i < out.size:
        out[i] = ramp(t) * x[i] + ramp(0.5 * t)


@hip.jit
def through_shared(x, angle, out):
    tile = hip.shared.array(64, float64)
    i, t = hip.grid(1), hip.threadIdx.x
    tile[t] = x[i] * math.cos(angle) if i < x.size else 0.0
    hip.syncthreads()
    if i < x.size:
        out[i] = tile[63 - t] + math.sin(angle)


def launch(kernel: Any, form: str, threads: int, *args: Any) -> Any:
    out = np.full(200, -5.0)
    with runtime_config.cpu_form.scope(form):
        kernel[-(-200 // threads), threads](*args, out)
    return out


def close(out: Any, expected: Any) -> None:
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-13)


X, Y = np.random.default_rng(6).random((2, 200)) - 0.5
ANGLES = [0.0, -0.0, 0.7, -3.0, 1e5, 2.0**40, 1.5e40, -1e300, math.inf, math.nan]


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("angle", ANGLES)
def test_angles_of_all_sizes(form: str, angle: float) -> None:
    with np.errstate(invalid="ignore"):
        c, s, t = np.cos(angle), np.sin(angle), np.tan(2 * angle + 0.1)
    close(launch(turn, form, 64, X, Y, angle), c * X - s * Y)
    stored = launch(only_store, form, 64, angle, 0.1)
    close(stored, np.where(np.arange(200) % 3, t, c))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("count", [0, 1, 7])
def test_a_loop_over_what_does_not_change(form: str, count: int) -> None:
    out = launch(sum_in_loop, form, 50, 0.4, count)
    skipped = np.where(np.arange(200) < count, np.arange(200), 0)
    close(out, np.sin(0.4) * (count * (count - 1) // 2 - skipped))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("t", [-7.5, -1.0, 0.25, 1.0, 3.0, 5.0, 9.0, 1e20])
def test_choices_within_choices(form: str, t: float) -> None:
    host: Callable[[float], float] = ramp.py_func
    close(launch(by_ramp, form, 32, X, t), host(t) * X + host(0.5 * t))


@pytest.mark.parametrize("form", ["auto", "regions"])
def test_it_is_computed_before_threads_wait(form: str) -> None:
    out = launch(through_shared, form, 64, X, 0.9)
    padded = np.zeros(256)
    padded[:200] = X * np.cos(0.9)
    close(out, padded.reshape(4, 64)[:, ::-1].ravel()[:200] + np.sin(0.9))


TABLE = np.arange(5, dtype=np.float64) ** 2


@hip.jit
def checked(x, k, divisor, angle, out):
    """Nothing that the checks forbid is computed ahead of them."""
    i = hip.grid(1)
    if i < out.size:
        out[i] = 0.0
        if divisor != 0:
            out[i] = math.sin(float64(100 // divisor)) * x[i]
        if 0 <= k < 5:
            table = hip.const.array_like(TABLE)
            out[i] += math.cos(table[k] * angle)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("k", "divisor"), [(2, 7), (1 << 60, 3), (-(1 << 60), 1), (4, 0), (5, 0)])
def test_what_a_check_forbids_is_not_computed(form: str, k: int, divisor: int) -> None:
    expected = np.sin(100.0 // divisor) * X if divisor else np.zeros(200)
    expected = expected + (np.cos(TABLE[k] * 0.3) if 0 <= k < 5 else 0.0)
    close(launch(checked, form, 64, X, k, divisor, 0.3), expected)


@hip.jit
def many(a, out):
    i = hip.grid(1)
    if i < out.size:
        total = 0.0
        for k in range(3):
            total += math.sin(a[k]) * i
        out[i] = total


@hip.jit
def of_many_arguments(a, b, c, d, e, f, out):
    i = hip.grid(1)
    if i < out.size:
        first = math.sin(a) * i + math.cos(b) + math.tan(c) * i
        second = math.sin(d) * i - math.cos(e) - math.tan(f) * i
        third = math.cos(a) * i * math.cos(c) * i * math.sin(e) * i
        out[i] = first / (1 + i) + second / (2 + i) + third


@pytest.mark.parametrize("form", FORMS)
def test_many_numbers(form: str) -> None:
    i = np.arange(200)
    numbers = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    a, b, c, d, e, f = numbers
    first = np.sin(a) * i + np.cos(b) + np.tan(c) * i
    second = np.sin(d) * i - np.cos(e) - np.tan(f) * i
    third = np.cos(a) * np.cos(c) * np.sin(e) * i.astype(float) ** 3
    close(launch(of_many_arguments, form, 64, *numbers), first / (1 + i) + second / (2 + i) + third)


@pytest.mark.parametrize("form", FORMS)
def test_what_is_loaded_is_not_decided_by_the_launch(form: str) -> None:
    a = np.array([0.1, 1e13, -2.0])
    close(launch(many, form, 64, a), np.sin(a).sum() * np.arange(200))


@hip.jit
def on_lines(x, angle, out):
    i = hip.grid(1)
    if i < x.size:
        c = math.cos(angle)
        out[i] = c * x[i]


@pytest.mark.cpu_device("it explains what is computed once for a launch")
@pytest.mark.parametrize("form", ["loop", "regions", "vectors"])
def test_the_report_tells_so(form: str) -> None:
    with runtime_config.cpu_form.scope(form):
        told = on_lines.explain("(float64[::1], float64, float64[::1])", block=64)
    notes = {line.source.strip(): line.notes for line in told.lines}
    assert AHEAD in notes["c = math.cos(angle)"]
    assert all(AHEAD not in note for line in told.lines if "cos" not in line.source for note in line.notes)
