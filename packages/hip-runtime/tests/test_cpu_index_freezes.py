"""Which ``freeze`` instructions are of what cannot be poison."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest
from llvmlite import ir

from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.passes.index_freezes import drop_index_freezes

KERNEL = """
declare i32 @spmd.thread_idx.x(ptr)
declare i32 @spmd.block_idx.x(ptr)

define void @k(ptr %item, i64 %n, ptr %out) {{
entry:
  %t = call i32 @spmd.thread_idx.x(ptr %item), !range !0
  %b = call i32 @spmd.block_idx.x(ptr %item), !range !1
  %t64 = zext i32 %t to i64
  %b64 = zext i32 %b to i64
  {sum}
  %f = freeze {kind} %x
  store {kind} %f, ptr %out
  ret void
}}

!0 = !{{i32 0, i32 1024}}
!1 = !{{i32 0, i32 2147483647}}
"""
CASES = {
    "the index of a thread": ("i64", "%x = add nuw nsw i64 %t64, 7", True),
    "that in the grid": ("i64", "%m = mul nuw nsw i64 %b64, 256\n  %x = add nuw nsw i64 %m, %t64", True),
    "of 32 bits": ("i32", "%x = add nuw nsw i32 %t, 7", True),
    "a number plus an argument": ("i64", "%x = add nsw i64 %t64, %n", False),
    "a product that may wrap": ("i64", "%x = mul nsw i64 %b64, 8589934592", False),
    "a sum of 32 bits that may wrap": ("i32", "%x = add nsw i32 %b, 7", False),
    "what is made of one": ("i64", "%s = shl nsw i32 %b, 3\n  %x = zext i32 %s to i64", False),
    "and what is less": ("i64", "%m = mul nsw i64 %b64, 8589934592\n  %x = sub nsw i64 %m, 8", False),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_dropped(case: str) -> None:
    kind, lines, is_dropped = CASES[case]
    module = llvm.parse_assembly(KERNEL.format(kind=kind, sum=lines), llvm.create_context())
    function = read_function(PrintedModule(module), "k", ir.Context())
    assert drop_index_freezes(function) == is_dropped
    (store,) = (value for value in function.instructions() if value.opcode == "store")
    assert store.operands[0].name == ("x" if is_dropped else "f")  # type: ignore[attr-defined]
    assert any(value.opcode == "freeze" for value in function.instructions()) != is_dropped
