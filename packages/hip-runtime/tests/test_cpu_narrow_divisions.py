"""Quotients and remainders that LLVM computes with fewer bits."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest
from llvmlite import ir

from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.printer import print_function
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.passes.narrow_divisions import widen_divisions

KERNEL = """
define void @k(ptr %item, i64 %i, i64 %n, i32 %m, ptr %out) {{
entry:
{lines}
  store i64 %x, ptr %out
  ret void
}}
"""
CASES = {
    "one of 32 bits": (
        ["%t = trunc nuw nsw i64 %i to i32", "%q = udiv i32 %t, 90", "%x = zext nneg i32 %q to i64"],
        ["%q.wide = udiv i64 %i, 90"],
    ),
    "a remainder of 16 bits of one of 32": (
        [
            "%t = trunc nuw i64 %i to i32", "%q = udiv i32 %t, 90", "%s = trunc nuw i32 %q to i16",
            "%r = urem i16 %s, -6", "%x = zext i16 %r to i64",
        ],
        ["%q.wide = udiv i64 %i, 90", "%r.wide = urem i64 %q.wide, 65530"],
    ),
    "by an argument": (
        [
            "%t = trunc nuw i64 %i to i32", "%u = trunc nuw i64 %n to i32", "%q = udiv i32 %t, %u",
            "%x = zext i32 %q to i64",
        ],
        ["%q.wide = udiv i64 %i, %n"],
    ),
    "one that may be cut off": (
        ["%t = trunc nsw i64 %i to i32", "%q = udiv i32 %t, 90", "%x = zext i32 %q to i64"], [],
    ),
    "one with a sign": (["%t = trunc nuw i64 %i to i32", "%q = sdiv i32 %t, 90", "%x = zext i32 %q to i64"], []),
    "what is extended with its sign": (
        ["%t = trunc nuw i64 %i to i32", "%q = udiv i32 %t, 90", "%x = sext i32 %q to i64"], [],
    ),
    "by a number of 32 bits": (
        ["%t = trunc nuw i64 %i to i32", "%q = udiv i32 %t, %m", "%x = zext i32 %q to i64"], [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_is_written_with_64_bits(case: str) -> None:
    lines, wide = CASES[case]
    module = llvm.parse_assembly(KERNEL.format(lines="\n".join(lines)), llvm.create_context())
    function = read_function(PrintedModule(module), "k", ir.Context())
    before = print_function(function)
    widen_divisions(function)
    after = print_function(function)
    assert [line.strip() for line in after.splitlines() if ".wide = " in line] == wide
    if wide:
        assert "trunc" not in after
        assert "zext" not in after
    else:
        assert after == before
