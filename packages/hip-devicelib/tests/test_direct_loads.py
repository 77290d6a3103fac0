"""Loads into shared memory without registers: the instruction of each GPU, and that barriers wait for it."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import pytest

from hip_devicelib import TARGETS, optimise
from hip_devicelib.amdgpu import assembly
from hip_devicelib.backend_limits import check_module
from hip_devicelib.direct_loads import INTRINSIC, direct_load_widths, wait_operand
from hip_devicelib.target import parse_target

HAVING = [name for name, target in TARGETS.items() if direct_load_widths(target)]


def module_of(width: int) -> str:
    """A kernel that loads *width* bytes for each lane, beside a load to a register, and meets a barrier."""
    operand = wait_operand()
    wait = "" if operand is None else f"  call void @llvm.amdgcn.s.waitcnt(i32 {operand})\n"
    return f"""
@shared = internal addrspace(3) global [4096 x i32] poison, align 16
declare i32 @llvm.amdgcn.workitem.id.x()
declare void @llvm.amdgcn.s.barrier()
declare void @llvm.amdgcn.s.waitcnt(i32)
declare void @{INTRINSIC}(ptr addrspace(1), ptr addrspace(3), i32, i32, i32)
define amdgpu_kernel void @kernel(ptr addrspace(1) %p, ptr addrspace(1) %o) {{
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %own = getelementptr <{width // 4} x i32>, ptr addrspace(1) %p, i32 %lane
  call void @{INTRINSIC}(ptr addrspace(1) %own, ptr addrspace(3) @shared, i32 {width}, i32 0, i32 0)
{wait}  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  store i32 %lane, ptr addrspace(1) %o
  ret void
}}
"""


def test_the_gpus_that_have_them() -> None:
    assert set(HAVING) == {"gfx90a", "gfx942", "gfx950"}


@pytest.mark.parametrize("target", HAVING)
def test_the_next_barrier_waits(target: str) -> None:
    for width in direct_load_widths(parse_target(target)):
        code = optimise(module_of(width), target)
        assert not check_module(llvm.parse_bitcode(code), parse_target(target))
        name = "global_load_dword" if target == "gfx90a" else "global_load_lds_dword"
        wide = "x4" if width == 16 else ""
        found = re.search(rf"\t{name}{wide} [^\n]*\n(.*)\ts_barrier", assembly(code, target), re.DOTALL)
        assert found
        assert re.search(r"\ts_waitcnt [^\n]*vmcnt\(0\)", found[1])


def test_a_gpu_without_them_is_doubted() -> None:
    code = optimise(module_of(4), "gfx942")
    assert any(INTRINSIC in reason for reason in check_module(llvm.parse_bitcode(code), parse_target("gfx1100")))
