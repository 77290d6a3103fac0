"""Kernels for blocks of any shape, written by hand: what stands in front of their bodies, and how they are launched."""

from __future__ import annotations

from typing import Any

from spmd_kernels import code, pack
from spmd_programs import OPERATIONS

from hip_devicelib.codeobject import CodeObject
from hip_runtime import Device

INDEX = """
  %tx = call i32 @spmd.thread_idx.x(ptr %item)
  %ty = call i32 @spmd.thread_idx.y(ptr %item)
  %tz = call i32 @spmd.thread_idx.z(ptr %item)
  %dx = call i32 @spmd.block_dim.x(ptr %item)
  %dy = call i32 @spmd.block_dim.y(ptr %item)
  %dz = call i32 @spmd.block_dim.z(ptr %item)
  %zy = mul i32 %tz, %dy
  %zyy = add i32 %zy, %ty
  %row = mul i32 %zyy, %dx
  %t = add i32 %row, %tx
  %area = mul i32 %dx, %dy
  %threads = mul i32 %area, %dz
  %b = call i32 @spmd.block_idx.x(ptr %item)
  %first = mul i32 %b, %threads
  %i = add i32 %first, %t
"""
"""Leaves the number of the thread in its block in %t, the threads of a block in %threads, and the number of the thread
in a one-dimensional grid in %i."""


def kernel(body: str, parameters: list[tuple[str, str]], functions: str = "", **properties: Any) -> CodeObject:
    signature = ", ".join(["ptr noalias %item", *(f"{kind} %{name}" for name, kind in parameters)])
    text = f"{OPERATIONS}{functions}define void @k({signature}) {{\nentry:\n{INDEX}{body}}}\n"
    return code(text, "k", parameters, **properties)


def launch(device: Device, code_object: CodeObject, grid: Any, block: Any, *values: Any, **options: Any) -> Any:
    function = device.load(code_object).function("k")
    function.launch(grid, block, pack(function.kernel, *values), **options)
    return function
