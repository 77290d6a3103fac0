"""Loops over the bits of numbers: which are unrolled, and what LLVM makes of one."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest
from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.bit_loops import find_bit_loops
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.object_code.host_machine import target_machine
from hip_runtime.drivers.cpu.passes.inline import unroll_marked
from hip_runtime.drivers.cpu.passes.unroll_steps import mark_unrolled

REVERSED = """
declare i32 @llvm.smax.i32(i32, i32)
define void @k(ptr %item, i32 %x, i32 %m, ptr %p) {{
entry:
  br label %loop
loop:
  %place = phi i32 [ 0, %entry ], [ %next, %loop ]
  %result = phi i32 [ 0, %entry ], [ %more, %loop ]
  %moved = lshr i32 %x, {amount}
  %bit = and i32 %moved, 1
  %twice = shl i32 %result, 1
  %more = or disjoint i32 %twice, %bit
  {also}
  %next = add nuw nsw i32 %place, 1
  %ends = icmp eq i32 %next, {count}
  br i1 %ends, label %done, label %loop
done:
  store i32 %more, ptr %p
  ret void
}}
"""


def _module(amount: str = "%place", also: str = "", count: str = "32") -> llvm.ModuleRef:
    return llvm.parse_assembly(REVERSED.format(amount=amount, also=also, count=count), llvm.create_context())


def _find(module: llvm.ModuleRef) -> list[str]:
    return find_bit_loops(read_function(PrintedModule(module), "k", ir.Context()))


@pytest.mark.parametrize(("change", "expected"), [
    ({}, ["loop"]),
    ({"also": "%most = call i32 @llvm.smax.i32(i32 %result, i32 %bit)"}, ["loop"]),
    ({"count": "64"}, ["loop"]),
    ({"count": "65"}, []),
    ({"count": "%m"}, []),
    ({"count": "64", "also": "\n".join(f"%a{n} = add i32 %bit, {n}" for n in range(3))}, []),
    ({"amount": "3"}, []),
    ({"also": "%f = sitofp i32 %bit to float"}, []),
    ({"also": "%f = load i32, ptr %p"}, []),
    ({"also": "store i32 %bit, ptr %p"}, []),
], ids=[
    "reverses", "with a maximum", "of 64 steps", "of 65 steps", "of any number", "large", "by a constant",
    "with a float", "that loads", "that stores",
])  # fmt: skip
def test_which_loops_are_of_bits(change: dict[str, str], expected: list[str]) -> None:
    assert _find(_module(**change)) == expected


def test_reversing_bits_becomes_one_instruction() -> None:
    marked = llvm.parse_assembly(mark_unrolled(_module(), "k", {"loop": None}), llvm.create_context())
    unroll_marked(marked, target_machine())
    assert "llvm.bitreverse.i32" in str(marked)
    assert len(read_function(PrintedModule(marked), "k", ir.Context()).blocks) == 1
