"""LLVM IR that several tests compile."""

from __future__ import annotations

import subprocess
import sys

from hip_devicelib.compilers import Compiler, Hiprtc

ATTRIBUTES = '"amdgpu-flat-work-group-size"="1,256" "uniform-work-group-size"="true"'

SAXPY = f"""
declare i32 @llvm.amdgcn.workitem.id.x()
@tile = internal addrspace(3) global [64 x float] poison
define internal float @twice(float %x) {{
  %y = fmul float %x, 2.0
  ret float %y
}}
define i32 @nobody_calls_this(i32 %x) {{
  ret i32 %x
}}
define amdgpu_kernel void @saxpy(ptr addrspace(1) %out, i8 %flag, i64 %n, half %h, double %a) {{
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %i = zext i32 %t to i64
  %inside = icmp ult i64 %i, %n
  br i1 %inside, label %body, label %done
body:
  %slot = getelementptr float, ptr addrspace(3) @tile, i64 %i
  store volatile float 1.0, ptr addrspace(3) %slot
  %v = load volatile float, ptr addrspace(3) %slot
  %w = call float @twice(float %v)
  %g = getelementptr float, ptr addrspace(1) %out, i64 %i
  store float %w, ptr addrspace(1) %g
  br label %done
done:
  ret void
}}
define amdgpu_kernel void @small(ptr addrspace(1) %out) #0 {{
  store i32 7, ptr addrspace(1) %out
  ret void
}}
attributes #0 = {{ {ATTRIBUTES} }}
"""
"""Two kernels: one with 256 bytes of shared memory and five parameters, one with a launch bound of 256 threads."""


def kernel_around(body: str, *, before: str = "", parameters: str = "ptr addrspace(1) %p, double %d, i32 %i") -> str:
    """IR of a kernel ``k`` that runs *body*; *before* holds declarations and globals."""
    return f"{before}\ndefine amdgpu_kernel void @k({parameters}) {{\n{body}\n  ret void\n}}\n"


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run *code* in a Python of its own, so that its death is a result and not the end of the tests."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=300, check=False
    )


def has_math(compiler: Compiler) -> bool:
    """Whether what *compiler* makes has OCML in it: HIPRTC brings it, a clang takes it from ROCm's device libraries."""
    return isinstance(compiler, Hiprtc) or compiler.device_libraries is not None
