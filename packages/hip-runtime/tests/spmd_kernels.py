"""Kernels as SPMD bitcode, written as LLVM IR, and the code objects of them."""

from __future__ import annotations

import struct
from typing import Any

import llvmlite.binding as llvm

from hip_devicelib.codeobject import CodeObject, Kernel, lay_out

INDICES = [f"{what}.{axis}" for what in ("thread_idx", "block_idx", "block_dim", "grid_dim") for axis in "xyz"]

DECLARATIONS = (
    "\n" + "".join(f"declare i32 @spmd.{name}(ptr)\n" for name in INDICES) + "declare void @spmd.fault(ptr, i32)\n"
)

GLOBAL_X = """
  %t32 = call i32 @spmd.thread_idx.x(ptr %item)
  %b32 = call i32 @spmd.block_idx.x(ptr %item)
  %d32 = call i32 @spmd.block_dim.x(ptr %item)
  %t = zext i32 %t32 to i64
  %b = zext i32 %b32 to i64
  %d = zext i32 %d32 to i64
  %start = mul i64 %b, %d
  %i = add i64 %start, %t
"""
"""Leaves the global index of the thread along x in %i."""

SAXPY = f"""
define void @saxpy(ptr noalias %item, ptr %y, ptr %x, float %a, i64 %n) {{
{GLOBAL_X}
  %in = icmp ult i64 %i, %n
  br i1 %in, label %do, label %out
do:
  %px = getelementptr float, ptr %x, i64 %i
  %py = getelementptr float, ptr %y, i64 %i
  %vx = load float, ptr %px
  %vy = load float, ptr %py
  %ax = fmul float %vx, %a
  %sum = fadd float %ax, %vy
  store float %sum, ptr %py
  br label %out
out:
  ret void
}}
"""
"""y[i] += a * x[i] for the first n threads."""

COUNT = """
define void @count(ptr noalias %item, ptr %counter) {
  %old = atomicrmw add ptr %counter, i64 1 monotonic
  ret void
}
"""
"""Adds 1 to *counter* for every thread there is."""

FAULT = f"""
define void @fault(ptr noalias %item, ptr %seen, i64 %where, i32 %code) {{
{GLOBAL_X}
  %hit = icmp eq i64 %i, %where
  br i1 %hit, label %stop, label %go
stop:
  call void @spmd.fault(ptr %item, i32 %code)
  ret void
go:
  %place = getelementptr i8, ptr %seen, i64 %i
  store i8 1, ptr %place
  ret void
}}
"""
"""Thread *where* stops with an error; the others note that they ran."""

SPIN = """
define void @spin(ptr noalias %item, ptr %place, i64 %turns) {
entry:
  br label %head
head:
  %turn = phi i64 [ 0, %entry ], [ %next, %head ]
  %old = load volatile i64, ptr %place
  %next = add i64 %turn, 1
  %new = add i64 %old, 1
  store volatile i64 %new, ptr %place
  %more = icmp ult i64 %next, %turns
  br i1 %more, label %head, label %done
done:
  ret void
}
"""
"""Counts *place* up, one by one."""


def _write_indices() -> str:
    lines = [f"  %v{number} = call i32 @spmd.{name}(ptr %item)" for number, name in enumerate(INDICES)]
    # Number of the thread in the grid: blocks x first, in each block threads x first. So from outside to inside:
    # block z; block y of grid y; block x of grid x; thread z of block z; thread y of block y; thread x of block x.
    number = "v5"
    for step, (index, extent) in enumerate(((4, 10), (3, 9), (2, 8), (1, 7), (0, 6))):
        lines.append(f"  %m{step} = mul i32 %{number}, %v{extent}")
        lines.append(f"  %n{step} = add i32 %m{step}, %v{index}")
        number = f"n{step}"
    lines.append(f"  %base = mul i32 %{number}, {len(INDICES)}")
    for column in range(len(INDICES)):
        lines.append(f"  %o{column} = add i32 %base, {column}")
        lines.append(f"  %p{column} = getelementptr i32, ptr %out, i32 %o{column}")
        lines.append(f"  store i32 %v{column}, ptr %p{column}")
    return "\n".join(lines)


WHERE = f"""
define void @where(ptr noalias %item, ptr %out) {{
{_write_indices()}
  ret void
}}
"""
"""Every thread writes its twelve indices and extents to the row of *out* that its number in the grid gives."""

KERNELS: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "saxpy": (SAXPY, [("y", "ptr"), ("x", "ptr"), ("a", "float"), ("n", "i64")]),
    "count": (COUNT, [("counter", "ptr")]),
    "fault": (FAULT, [("seen", "ptr"), ("where", "i64"), ("code", "i32")]),
    "spin": (SPIN, [("place", "ptr"), ("turns", "i64")]),
    "where": (WHERE, [("out", "ptr")]),
}


def code(text: str, name: str, parameters: list[tuple[str, str]], **properties: Any) -> CodeObject:
    """The code object of one kernel, written as IR."""
    module = llvm.parse_assembly(text + DECLARATIONS, llvm.create_context())
    laid_out, nbytes = lay_out(parameters)
    return CodeObject("cpu", module.as_bitcode(), (Kernel(name, laid_out, nbytes, **properties),))


def sample(name: str, **properties: Any) -> CodeObject:
    """The code object of one of the kernels above."""
    text, parameters = KERNELS[name]
    return code(text, name, parameters, **properties)


_FORMATS = {
    "i1": "?",
    "i8": "b",
    "i16": "h",
    "i32": "i",
    "i64": "q",
    "half": "e",
    "float": "f",
    "double": "d",
    "ptr": "Q",
}


def pack(kernel: Kernel, *values: Any) -> bytes:
    """The packed arguments of a kernel."""
    assert len(values) == len(kernel.parameters)
    buffer = bytearray(kernel.argument_bytes)
    for parameter, value in zip(kernel.parameters, values, strict=True):
        struct.pack_into("<" + _FORMATS[parameter.type], buffer, parameter.offset, value)
    return bytes(buffer)
