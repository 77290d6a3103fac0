"""Quotients and remainders of the indices of threads that LLVM writes with fewer bits, or not as such."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest
from llvmlite import ir

from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.printer import print_function
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.passes.index_divisions import write_index_divisions

KERNEL = """
declare i32 @spmd.thread_idx.x(ptr)
declare i32 @spmd.block_idx.x(ptr)

define void @k(ptr %item, i64 %n, ptr %out) {{
entry:
  %t32 = call i32 @spmd.thread_idx.x(ptr %item), !range !0
  %b32 = call i32 @spmd.block_idx.x(ptr %item), !range !1
  %t = zext i32 %t32 to i64
  %b = zext i32 %b32 to i64
  %start = mul nuw nsw i64 %b, 256
  %i = add nuw nsw i64 %start, %t
{lines}
  store i64 %x, ptr %out
  ret void
}}

!0 = !{{i32 0, i32 1024}}
!1 = !{{i32 0, i32 2147483647}}
"""
CASES = {
    "one of 32 bits": (
        ["%s = trunc nuw i64 %i to i32", "%q = udiv i32 %s, 90", "%x = zext nneg i32 %q to i64"],
        ["%q.wide = udiv i64 %i, 90"],
    ),
    "a remainder of 16 bits of one of 32": (
        [
            "%s = trunc nuw i64 %i to i32", "%q = udiv i32 %s, 90", "%s16 = trunc nuw i32 %q to i16",
            "%r = urem i16 %s16, -6", "%x = zext i16 %r to i64",
        ],
        ["%q.wide = udiv i64 %i, 90", "%r.wide = urem i64 %q.wide, 65530"],
    ),
    "one with a sign, of what is small": (
        ["%s = trunc nsw i64 %t to i16", "%q = sdiv i16 %s, 90", "%x = sext i16 %q to i64"],
        ["%q.wide = udiv i64 %t, 90"],
    ),
    "one with a sign, of what may be large": (
        ["%s = trunc nuw nsw i64 %i to i32", "%q = sdiv i32 %s, 90", "%x = sext i32 %q to i64"],
        ["%q = sdiv i32 %s, 90"],
    ),
    "one of what may be cut off": (
        ["%s = trunc nsw i64 %i to i32", "%q = udiv i32 %s, 90", "%x = zext i32 %q to i64"], ["%q = udiv i32 %s, 90"],
    ),
    "one of an argument": (
        ["%s = trunc nuw i64 %n to i32", "%q = udiv i32 %s, 90", "%x = zext i32 %q to i64"], ["%q = udiv i32 %s, 90"],
    ),
    "one of 128 bits": (
        [
            "%s = add i64 %i, %n", "%w = zext i64 %s to i128", "%q = udiv i128 %w, 18446744073709551706",
            "%y = trunc nuw i128 %q to i32", "%x = zext i32 %y to i64",
        ],
        ["%q = udiv i128 %w, 18446744073709551706"],
    ),
    "by an argument": (["%x = udiv i64 %i, %n"], ["%x = udiv i64 %i, %n"]),
    "with a sign": (["%x = sdiv i64 %i, 90"], ["%x = udiv i64 %i, 90"]),
    "by what is negative": (["%x = sdiv i64 %i, -90"], ["%x = sdiv i64 %i, -90"]),
    "a remainder that is added": (
        ["%q = udiv i64 %i, 90", "%m = mul i64 %q, -90", "%x = add i64 %m, %i"], ["%x = urem i64 %i, 90"],
    ),
    "a remainder that is subtracted": (
        ["%q = udiv i64 %i, 90", "%m = mul i64 %q, 90", "%x = sub i64 %i, %m"], ["%x = urem i64 %i, 90"],
    ),
    "that of an argument": (
        ["%q = sdiv i64 %n, 90", "%m = mul i64 %q, 90", "%x = sub i64 %n, %m"], ["%x = srem i64 %n, 90"],
    ),
    "less by another number": (
        ["%q = udiv i64 %i, 90", "%m = mul i64 %q, 91", "%x = sub i64 %i, %m"], ["%q = udiv i64 %i, 90"],
    ),
    "of another number": (
        ["%q = udiv i64 %t, 90", "%m = mul i64 %q, 90", "%x = sub i64 %i, %m"], ["%q = udiv i64 %t, 90"],
    ),
    "the quotient less the number": (
        ["%q = udiv i64 %i, 90", "%m = mul i64 %q, 90", "%x = sub i64 %m, %i"], ["%q = udiv i64 %i, 90"],
    ),
    "what Python corrects": (
        [
            "%q = udiv i64 %i, 90", "%m = mul nsw i64 %q, -90", "%r = add nsw i64 %m, %i", "%c = icmp slt i64 %r, 0",
            "%d = select i1 %c, i64 90, i64 0", "%x = add i64 %r, %d",
        ],
        ["%r = urem i64 %i, 90"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_divisions_that_are_left(case: str) -> None:
    lines, expected = CASES[case]
    module = llvm.parse_assembly(KERNEL.format(lines="\n".join(lines)), llvm.create_context())
    function = read_function(PrintedModule(module), "k", ir.Context())
    changed = write_index_divisions(function)
    after = [line.strip() for line in print_function(function).splitlines()]
    assert [line for line in after if "div " in line or "rem " in line] == expected
    assert changed == (case != "by an argument")
    if case == "what Python corrects":
        assert not any("select" in line for line in after)
        assert "store i64 %r, ptr %out" in " ".join(after)
