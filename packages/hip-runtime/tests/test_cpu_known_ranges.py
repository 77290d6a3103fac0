"""What follows from the ranges that some values are known to have."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest
from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.known_ranges import KnownRanges
from hip_runtime.drivers.cpu.ir.model import Function
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.passes.known_values import replace_known

LOOP = """
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)

define void @k(ptr %item, i64 %n, i64 %w, ptr %p) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ {first}, %entry ], [ %next, %loop ]
  %next = {step}
  {body}
  store i64 %x, ptr %p
  %more = icmp slt i64 %next, 100
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""
STEP = "add nsw i64 %i, %n"
CASES = {
    "a counter that grows": ("0", STEP, "%c = icmp slt i64 %i, 0\n  %x = select i1 %c, i64 7, i64 %i", "i"),
    "one that starts below": ("-1", STEP, "%c = icmp slt i64 %i, 0\n  %x = select i1 %c, i64 7, i64 %i", "x"),
    "one that may overflow": (
        "0", "add i64 %i, %n", "%c = icmp slt i64 %i, 0\n  %x = select i1 %c, i64 7, i64 %i", "x",
    ),
    "one that shrinks": (
        "0", "add nsw i64 %i, -1", "%c = icmp slt i64 %i, 0\n  %x = select i1 %c, i64 7, i64 %i", "x",
    ),
    "a quotient": (
        "0", STEP, "%q = sdiv i64 %i, %n\n  %c = icmp slt i64 %q, 0\n  %x = select i1 %c, i64 7, i64 %q", "q",
    ),
    "a quotient by anything": (
        "0", STEP, "%q = sdiv i64 %i, %w\n  %c = icmp slt i64 %q, 0\n  %x = select i1 %c, i64 7, i64 %q", "x",
    ),
    "a remainder": (
        "0", STEP, "%r = srem i64 %i, %n\n  %c = icmp ugt i64 %r, 8\n  %x = select i1 %c, i64 7, i64 %r", "r",
    ),
    "a remainder by one more": (
        "0", STEP, "%r = srem i64 %i, %n\n  %c = icmp ugt i64 %r, 7\n  %x = select i1 %c, i64 7, i64 %r", "x",
    ),
    "a remainder, which is below the divisor": (
        "0", STEP, "%r = srem i64 %i, %n\n  %c = icmp sge i64 %r, %n\n  %x = select i1 %c, i64 7, i64 %r", "r",
    ),
    "a remainder, which may be above another number": (
        "0", STEP, "%r = srem i64 %i, %n\n  %c = icmp sge i64 %r, %w\n  %x = select i1 %c, i64 7, i64 %r", "x",
    ),
    "the remainder of what may be negative": (
        "0", STEP, "%r = urem i64 %w, %n\n  %c = icmp sge i64 %r, %n\n  %x = select i1 %c, i64 7, i64 %r", "x",
    ),
    "the larger of two numbers": ("0", STEP, "%x = call i64 @llvm.umax.i64(i64 %n, i64 1)", "n"),
    "the smaller of two numbers": ("0", STEP, "%x = call i64 @llvm.smin.i64(i64 %n, i64 9)", "n"),
    "one of two numbers": ("0", STEP, "%x = call i64 @llvm.umax.i64(i64 %n, i64 2)", "x"),
    "a product that does not overflow": (
        "0", STEP, "%p1 = mul nsw i64 %i, %n\n  %c = icmp slt i64 %p1, 0\n  %x = select i1 %c, i64 7, i64 %p1", "p1",
    ),
    "one that may": (
        "0", STEP, "%p1 = mul i64 %i, %n\n  %c = icmp slt i64 %p1, 0\n  %x = select i1 %c, i64 7, i64 %p1", "x",
    ),
    "what is not equal": ("5", STEP, "%c = icmp eq i64 %i, 4\n  %x = select i1 %c, i64 7, i64 %i", "i"),
    "what may be equal": ("5", STEP, "%c = icmp eq i64 %i, 6\n  %x = select i1 %c, i64 7, i64 %i", "x"),
    "without a sign, what may be negative": (
        "5", STEP, "%c = icmp ult i64 %w, 4\n  %x = select i1 %c, i64 7, i64 %i", "x",
    ),
}  # fmt: skip

LEARNED = """
define void @k(ptr %item, i64 %n, i64 %w, ptr %p) {
entry:
  %product = mul nsw i64 %n, %n
  %next = add i64 %product, 1
  %c = icmp slt i64 %next, 0
  %x = select i1 %c, i64 7, i64 %next
  store i64 %x, ptr %p
  ret void
}
"""


def test_what_is_learned_is_not_forgotten() -> None:
    """A sum of what is anything that does not overflow may, but not if that is known to be less."""
    for most, expected in (((1 << 63) - 9, "next"), ((1 << 63) - 1, "x")):
        module = llvm.parse_assembly(LEARNED, llvm.create_context())
        function = read_function(PrintedModule(module), "k", ir.Context())
        ranges = KnownRanges()
        ranges.learn(function.arguments[1], (1, 1 << 40))
        ranges.learn(next(function.instructions()), (1, most))
        replace_known(function, ranges)
        (store,) = (value for value in function.instructions() if value.opcode == "store")
        assert store.operands[0].name == expected  # type: ignore[attr-defined]


def read(first: str, step: str, body: str) -> Function:
    text = LOOP.format(first=first, step=step, body=body)
    module = llvm.parse_assembly(text, llvm.create_context())
    return read_function(PrintedModule(module), "k", ir.Context())


@pytest.mark.parametrize("case", CASES)
def test_what_is_stored(case: str) -> None:
    """*n* is known to be 1 to 9, and *w* to be anything."""
    first, step, body, expected = CASES[case]
    function = read(first, step, body)
    ranges = KnownRanges()
    ranges.learn(function.arguments[1], (1, 9))
    replace_known(function, ranges)
    (store,) = (value for value in function.instructions() if value.opcode == "store")
    assert store.operands[0].name == expected  # type: ignore[attr-defined]
