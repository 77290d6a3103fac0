"""Kernels for processors without a fused multiply-add: math does without, what asks for one gets it."""

import math

import pytest
from numba import hip

from hip_devicelib import cpu


def circle(out, x):
    i = hip.grid(1)
    if i < x.size:
        out[i] = math.sin(x[i]) + math.pow(x[i], x[i])


def wrapped(out, x):
    i = hip.grid(1)
    if i < x.size:
        out[i] = hip.normcdf(x[i])


def fused(out, x):
    i = hip.grid(1)
    if i < x.size:
        out[i] = hip.fma(x[i], x[i], x[i])


def listed(function):
    return hip.compile(function, "(float64[::1], float64[::1])", target="cpu", output="llvm")[0]


@pytest.mark.parametrize("has_fma", [True, False])
@pytest.mark.parametrize("function", [circle, wrapped])
def test_math_is_made_for_the_processor(monkeypatch, function, has_fma):
    monkeypatch.setattr(cpu, "has_fma", lambda: has_fma)
    assert ("@llvm.fma.f64(" in listed(function)) == has_fma


@pytest.mark.parametrize("has_fma", [True, False])
def test_what_asks_for_a_fused_multiply_add_has_one(monkeypatch, has_fma):
    monkeypatch.setattr(cpu, "has_fma", lambda: has_fma)
    assert "@llvm.fma.f64(" in listed(fused)
