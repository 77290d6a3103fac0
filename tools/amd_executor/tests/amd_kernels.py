"""Kernels in LLVM IR for the executor's tests: one instruction or a few on each element of arrays."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from hip_devicelib import link, object_code, optimise
from tools.amd_executor.initial_state import Launch
from tools.amd_executor.machine import Machine

TARGETS = ("gfx942", "gfx1100", "gfx1201")

_PARTS = """
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
{declarations}
define amdgpu_kernel void @kernel({parameters}) #0 {{
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %first = mul i32 %group, {block}
  %index = add i32 %first, %lane
  %i = zext i32 %index to i64
{body}
  ret void
}}
attributes #0 = {{ "amdgpu-flat-work-group-size"="1,1024" {attributes} }}
"""


@cache
def machine(
    target: str, parameters: str, body: str, declarations: str = "", block: int = 64, attributes: str = ""
) -> Machine:
    """A kernel whose threads know their number as ``%i``. *attributes* are the kernel's, besides its size."""
    text = _PARTS.format(
        parameters=parameters, body=body, declarations=declarations, block=block, attributes=attributes
    )
    return Machine(link([object_code(optimise(text, target), target)]).image)


def run(
    kernel: Machine,
    arrays: Sequence[np.ndarray],
    blocks: int = 1,
    block: int = 64,
    shared: int = 0,
    *,
    cooperative: bool = False,
) -> None:
    """Run a kernel whose parameters are pointers to *arrays*."""
    arguments = struct.pack(f"<{len(arrays)}Q", *(array.ctypes.data for array in arrays))
    launch = Launch((blocks, 1, 1), (block, 1, 1), shared, arguments, cooperative)
    kernel.execute("kernel", launch, [(array.ctypes.data, array.nbytes) for array in arrays])


def elementwise(
    target: str, kind: str, result: str, operations: Mapping[str, str], left: np.ndarray, right: np.ndarray
) -> dict[str, np.ndarray]:
    """Each operation on each pair of elements: LLVM IR from %x and %y to %r, by name. The types are LLVM's."""
    count = left.size
    body, declarations = [], set()
    for name, array in (("x", "a"), ("y", "b")):
        body.append(f"  %p{name} = getelementptr {kind}, ptr addrspace(1) %{array}, i64 %i")
        body.append(f"  %{name} = load {kind}, ptr addrspace(1) %p{name}")
    for number, text in enumerate(operations.values()):
        lines = [line.strip() for line in text.strip().splitlines()]
        declarations |= {line for line in lines if line.startswith("declare")}
        code = "\n  ".join(line for line in lines if not line.startswith("declare"))
        code = re.sub(r"%([rs])\b", rf"%\g<1>{number}", code)
        place = f"getelementptr {result}, ptr addrspace(1) %o, i64 %k{number}"
        body.append(f"  {code}\n  %k{number} = add i64 %i, {number * count}\n  %q{number} = {place}")
        body.append(f"  store {result} %r{number}, ptr addrspace(1) %q{number}")
    pointers = ", ".join(f"ptr addrspace(1) %{name}" for name in "abo")
    kernel = machine(target, pointers, "\n".join(body), "\n".join(sorted(declarations)))
    dtypes = {
        "i16": np.int16,
        "i32": np.int32,
        "i64": np.int64,
        "half": np.float16,
        "float": np.float32,
        "double": np.float64,
    }
    out = np.zeros((len(operations), count), dtypes[result])
    run(kernel, [left, right, out], -(-count // 64))
    return dict(zip(operations, out, strict=True))
