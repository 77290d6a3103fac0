"""Stages of compiling that a long compilation tells of."""

import numpy as np
import pytest

import numba_hip as hip
from hip_runtime import compile_notice


@pytest.mark.parametrize(("target", "stages"), [
    pytest.param(
        "cpu", ["type inference", "lowering inner to LLVM IR", "lowering kernel to LLVM IR", "linking and optimising"],
        marks=pytest.mark.cpu_device("its code is made for a launch there"),
    ),
    ("gfx942", ["type inference", "lowering inner to LLVM IR", "lowering kernel to LLVM IR", "linking and optimising"]),
])  # fmt: skip
def test_stages_of_a_compilation(target, stages, monkeypatch):
    seen = []

    class Compilation(compile_notice._Compilation):
        def __setattr__(self, name, value):
            if name == "stage" and value not in seen:
                seen.append(value)
            super().__setattr__(name, value)

    monkeypatch.setattr(compile_notice, "_Compilation", Compilation)
    monkeypatch.setattr(compile_notice, "_is_watched", lambda: True)

    @hip.jit(device=True)
    def inner(x):
        return x + 1

    def kernel(a):
        a[hip.grid(1)] = inner(a[hip.grid(1)])

    hip.compile(kernel, "void(float64[::1])", target=target)
    assert seen == stages
    if target == "cpu":
        hip.jit(kernel)[1, 4](np.zeros(4))
        assert "machine code for blocks of (4, 1, 1)" in seen
