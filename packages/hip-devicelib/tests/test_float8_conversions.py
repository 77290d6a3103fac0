"""Conversions of floats of 8 bits: the instructions of each GPU."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from hip_devicelib import TARGETS, optimise
from hip_devicelib.amdgpu import assembly
from hip_devicelib.backend_limits import check_module
from hip_devicelib.float8_conversions import float8_names, narrowing_intrinsic, widening_intrinsic
from hip_devicelib.target import parse_target

HAVING = {name: float8_names(target) for name, target in TARGETS.items() if float8_names(target)}


def module_of(short: str) -> str:
    """A kernel that widens a byte, doubles it, and makes it narrow again."""
    widen, narrow = widening_intrinsic(short), narrowing_intrinsic(short)
    return f"""
declare float @{widen}(i32, i32)
declare i32 @{narrow}(float, float, i32, i1)
define amdgpu_kernel void @kernel(ptr addrspace(1) %p) {{
  %byte = load volatile i8, ptr addrspace(1) %p
  %word = zext i8 %byte to i32
  %wide = call float @{widen}(i32 %word, i32 0)
  %twice = fadd float %wide, %wide
  %both = call i32 @{narrow}(float %twice, float %twice, i32 poison, i1 false)
  %one = trunc i32 %both to i8
  store i8 %one, ptr addrspace(1) %p
  ret void
}}
"""


def test_the_gpus_that_have_them() -> None:
    assert set(HAVING) == {"gfx942", "gfx950", "gfx1200", "gfx1201", "gfx12-generic"}
    assert list(HAVING["gfx942"]) == ["float8_e4m3fnuz", "float8_e5m2fnuz"]
    assert list(HAVING["gfx1201"]) == ["float8_e4m3fn", "float8_e5m2"]


@pytest.mark.parametrize("target", HAVING)
def test_they_are_instructions(target: str) -> None:
    for short in HAVING[target].values():
        code = optimise(module_of(short), target)
        assert not check_module(llvm.parse_bitcode(code), parse_target(target))
        text = assembly(code, target)
        assert f"v_cvt_f32_{short}" in text
        assert f"v_cvt_pk_{short}_f32" in text


def test_a_gpu_without_them_is_doubted() -> None:
    code = optimise(module_of("fp8"), "gfx942")
    reasons = check_module(llvm.parse_bitcode(code), parse_target("gfx90a"))
    assert any(widening_intrinsic("fp8") in reason for reason in reasons)
    assert any(narrowing_intrinsic("fp8") in reason for reason in reasons)
