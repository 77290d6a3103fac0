"""Values that are computed again, as by the iterations of a loop that was unrolled: what is computed once instead."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest
from llvmlite import ir

from hip_runtime.drivers.cpu.ir.model import Function, Instruction
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.ir.verifier import find_problems
from hip_runtime.drivers.cpu.passes.common_values import merge_common_values

TWICE = """
define void @k(i64 %n, i64 %m, i1 %c, ptr %p, float %x, float %y) {{
entry:
  {one}
  store {kind} %a, ptr %p
  {other}
  store {kind} %b, ptr %p
  br i1 %c, label %less, label %more
less:
  br label %more
more:
  ret void
}}
"""
ALIKE = {
    "a sum": ("i64", "%a = add i64 %n, -1", "%b = add i64 %n, -1"),
    "a sum that does not wrap the second time": ("i64", "%a = add i64 %n, -1", "%b = add nsw i64 %n, -1"),
    "a quotient, which was computed anyway": ("i64", "%a = udiv i64 %n, %m", "%b = udiv i64 %n, %m"),
    "a chain": ("i64", "%s = mul i64 %n, %m\n %a = sub i64 %s, 3", "%t = mul i64 %n, %m\n %b = sub i64 %t, 3"),
    "an address": ("ptr", "%a = getelementptr i32, ptr %p, i64 %n", "%b = getelementptr i32, ptr %p, i64 %n"),
    "a comparison": ("i1", "%a = icmp slt i64 %n, %m", "%b = icmp slt i64 %n, %m"),
    "a product of floats": ("float", "%a = fmul float %x, %y", "%b = fmul float %x, %y"),
}
UNLIKE = {
    "another number": ("i64", "%a = add i64 %n, -1", "%b = add i64 %n, -2"),
    "another order": ("i64", "%a = sub i64 %n, %m", "%b = sub i64 %m, %n"),
    "another operation": ("i64", "%a = add i64 %n, %m", "%b = xor i64 %n, %m"),
    "another predicate": ("i1", "%a = icmp slt i64 %n, %m", "%b = icmp ult i64 %n, %m"),
    "another element": ("ptr", "%a = getelementptr i32, ptr %p, i64 %n", "%b = getelementptr i64, ptr %p, i64 %n"),
    "a load, between stores": ("i64", "%a = load i64, ptr %p", "%b = load i64, ptr %p"),
    "one that is undefined if it wraps": ("i64", "%a = add nsw i64 %n, -1", "%b = add i64 %n, -1"),
    "a number that is chosen anew": ("i64", "%u = add nsw i64 %n, 1\n %a = freeze i64 %u", "%b = freeze i64 %u"),
}


def read(text: str) -> Function:
    return read_function(PrintedModule(llvm.parse_assembly(text, llvm.create_context())), "k", ir.Context())


def stored(function: Function) -> list[Instruction]:
    values = [value.operands[0] for value in function.instructions() if value.opcode == "store"]
    assert all(isinstance(value, Instruction) for value in values)
    return values  # type: ignore[return-value]


@pytest.mark.parametrize("case", ALIKE)
def test_computed_again(case: str) -> None:
    kind, one, other = ALIKE[case]
    function = read(TWICE.format(kind=kind, one=one, other=other))
    assert merge_common_values(function)
    first, second = stored(function)
    assert first is second
    assert [value.opcode for value in function.blocks[0].instructions][-3:] == ["store", "store", "br"]
    assert not list(find_problems(function))


@pytest.mark.parametrize("case", UNLIKE)
def test_something_else(case: str) -> None:
    kind, one, other = UNLIKE[case]
    function = read(TWICE.format(kind=kind, one=one, other=other))
    assert not merge_common_values(function)
    first, second = stored(function)
    assert first is not second


def test_other_types() -> None:
    text = TWICE.format(
        kind="i8", one="%a = trunc i64 %n to i8", other="%w = trunc i64 %n to i32\n%b = trunc i32 %w to i8"
    )
    assert not merge_common_values(read(text))


def test_what_another_block_computes() -> None:
    """What lanes agree on is asked where they branch."""
    text = TWICE.format(kind="i64", one="%a = add i64 %n, 1", other="%b = add i64 %n, 2").replace(
        "less:\n", "less:\n  %d = add i64 %n, 2\n  store i64 %d, ptr %p\n"
    )
    assert not merge_common_values(read(text))


def test_phis_use_what_is_left() -> None:
    text = TWICE.format(kind="i64", one="%a = add i64 %n, 1", other="%b = add i64 %n, 1").replace(
        "more:\n", "more:\n  %d = phi i64 [ %b, %entry ], [ %m, %less ]\n  store i64 %d, ptr %p\n"
    )
    function = read(text)
    assert merge_common_values(function)
    assert not list(find_problems(function))
