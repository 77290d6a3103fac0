"""A quotient and its remainder in an address are what is divided."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest
from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.address_terms import take_apart
from hip_runtime.drivers.cpu.ir.model import Function, Instruction
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.passes.joined_quotients import join_quotients

KERNEL = """
define void @k(ptr %item, ptr %p, i64 %q, i64 %r, i64 %w) {{
entry:
  %row = {quotient}
  %column = {remainder}
  %line = {line}
  %ps = getelementptr i32, ptr %p, i64 %column
  %pr = getelementptr i8, ptr %ps, i64 %line
  %pt = getelementptr i8, ptr %pr, i64 12
  {access}
  ret void
}}
"""
BY_18 = {
    "quotient": "udiv i64 %q, 18", "remainder": "urem i64 %q, 18", "line": "mul i64 %row, 72",
    "access": "store i32 7, ptr %pt",
}  # fmt: skip


def read(**parts: str) -> Function:
    module = llvm.parse_assembly(KERNEL.format(**{**BY_18, **parts}), llvm.create_context())
    return read_function(PrintedModule(module), "k", ir.Context())


def size_of(kind: ir.Type) -> int:
    return 4 if kind == ir.IntType(32) else 1


def address(function: Function) -> tuple[dict[str, int], int]:
    """The terms of the address that *function* accesses, by name, and its offset."""
    (access,) = (value for value in function.instructions() if value.opcode in ("load", "store", "atomicrmw"))
    apart = take_apart(access.operands[1 if access.opcode == "store" else 0], size_of)
    return {getattr(value, "name", ""): scale for value, scale in apart.terms}, apart.offset


@pytest.mark.parametrize(("parts", "divided"), [
    ({}, "q"),
    ({"access": "%v = load i32, ptr %pt"}, "q"),
    ({"access": "%v = atomicrmw add ptr %pt, i32 1 monotonic"}, "q"),
    ({"quotient": "sdiv i64 %q, 18", "remainder": "srem i64 %q, 18"}, "q"),
    ({"quotient": "lshr i64 %q, 4", "remainder": "and i64 %q, 15", "line": "shl i64 %row, 6"}, "q"),
])  # fmt: skip
def test_joined(parts: dict[str, str], divided: str) -> None:
    function = read(**parts)
    assert join_quotients(function, size_of)
    assert address(function) == ({"p": 1, divided: 4}, 12)
    assert not join_quotients(function, size_of)


@pytest.mark.parametrize("parts", [
    {"line": "mul i64 %row, 76"},
    {"remainder": "urem i64 %r, 18"},
    {"remainder": "srem i64 %q, 18"},
    {"remainder": "urem i64 %q, 9"},
    {"quotient": "udiv i64 %q, %w", "remainder": "urem i64 %q, %w"},
])  # fmt: skip
def test_others_stay(parts: dict[str, str]) -> None:
    function = read(**parts)
    before = address(function)
    assert not join_quotients(function, size_of)
    assert address(function) == before


def test_rows_in_planes() -> None:
    """Both quotients are joined: ``[q // 6, q // 2 % 3, q % 2]``."""
    text = """
define void @k(ptr %item, ptr %p, i64 %q) {
entry:
  %plane = udiv i64 %q, 6
  %half = lshr i64 %q, 1
  %row = urem i64 %half, 3
  %column = and i64 %q, 1
  %far = mul i64 %plane, 24
  %line = mul i64 %row, 8
  %a = getelementptr i32, ptr %p, i64 %column
  %b = getelementptr i8, ptr %a, i64 %line
  %c = getelementptr i8, ptr %b, i64 %far
  store i32 7, ptr %c
  ret void
}
"""
    function = read_function(PrintedModule(llvm.parse_assembly(text, llvm.create_context())), "k", ir.Context())
    assert join_quotients(function, size_of)
    assert address(function) == ({"p": 1, "q": 4}, 0)


def test_what_is_computed_is_there_before_it_is_used() -> None:
    function = read()
    join_quotients(function, size_of)
    for block in function.blocks:
        known = set(block.instructions)
        for place, value in enumerate(block.instructions):
            operands = [operand for operand in value.operands if isinstance(operand, Instruction) and operand in known]
            assert all(block.instructions.index(operand) < place for operand in operands)
