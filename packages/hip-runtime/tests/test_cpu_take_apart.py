"""Values that are put together and taken apart again: what stands for them, and that memory accesses stay."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest
from llvmlite import ir

from hip_runtime.drivers.cpu.ir.model import Constant, Function, Value
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.passes.take_apart import take_apart

KERNEL = """
declare [2 x i64] @pair(i64)
define void @k(i64 %n, i64 %m, ptr %p, i1 %c, [2 x i64] %given) {{
entry:
  {code}
  store i64 %part, ptr %p
  ret void
}}
"""

FOUND = {
    "a member": ("n", """
        %a = insertvalue [2 x i64] undef, i64 %n, 0
        %b = insertvalue [2 x i64] %a, i64 %m, 1
        %part = extractvalue [2 x i64] %b, 0"""),
    "the last of several": ("m", """
        %a = insertvalue [2 x i64] zeroinitializer, i64 %n, 1
        %b = insertvalue [2 x i64] %a, i64 %m, 1
        %part = extractvalue [2 x i64] %b, 1"""),
    "a member of a member": ("m", """
        %a = insertvalue [2 x i64] undef, i64 %m, 1
        %b = insertvalue { i64, [2 x i64] } undef, [2 x i64] %a, 1
        %part = extractvalue { i64, [2 x i64] } %b, 1, 1"""),
    "one that was put into the member": ("m", """
        %a = insertvalue { i64, [2 x i64] } undef, i64 %m, 1, 0
        %b = insertvalue { i64, [2 x i64] } %a, i64 %n, 1, 1
        %c1 = extractvalue { i64, [2 x i64] } %b, 1
        %part = extractvalue [2 x i64] %c1, 0"""),
    "one that moves": ("n", """
        %a = insertvalue [2 x i64] undef, i64 %n, 0
        %b = extractvalue [2 x i64] %a, 0
        %c1 = insertvalue { i64, i64 } undef, i64 %b, 1
        %part = extractvalue { i64, i64 } %c1, 1"""),
    "one that is not defined": ("undef", """
        %a = insertvalue [2 x i64] undef, i64 %n, 0
        %part = extractvalue [2 x i64] %a, 1"""),
}  # fmt: skip

KEPT = {
    "of memory": """
        %a = load [2 x i64], ptr %p
        %b = insertvalue [2 x i64] %a, i64 %n, 0
        %part = extractvalue [2 x i64] %b, 1""",
    "of a parameter": "%part = extractvalue [2 x i64] %given, 1",
    "of a call": """
        %a = call [2 x i64] @pair(i64 %n)
        %part = extractvalue [2 x i64] %a, 1""",
    "a whole of which a part was put in": """
        %a = insertvalue { i64, [2 x i64] } zeroinitializer, i64 %n, 1, 0
        %b = extractvalue { i64, [2 x i64] } %a, 1
        store [2 x i64] %b, ptr %p
        %part = add i64 %n, 1""",
}


def read(code: str) -> Function:
    module = llvm.parse_assembly(KERNEL.format(code=code), llvm.create_context())
    return read_function(PrintedModule(module), "k", ir.Context())


def opcodes(function: Function) -> list[str]:
    return [value.opcode for value in function.instructions()]


def shown(value: Value) -> str:
    return value.text if isinstance(value, Constant) else getattr(value, "name", "")


@pytest.mark.parametrize("case", FOUND)
def test_parts_that_were_put_in(case: str) -> None:
    name, code = FOUND[case]
    function = read(code)
    assert take_apart(function)
    assert opcodes(function) == ["store", "ret"]
    (block,) = function.blocks
    assert shown(block.instructions[0].operands[0]) == name


@pytest.mark.parametrize("case", KEPT)
def test_parts_that_are_not_known(case: str) -> None:
    function = read(KEPT[case])
    before = opcodes(function)
    assert not take_apart(function)
    assert opcodes(function) == before


def test_memory_accesses_stay_as_they_are() -> None:
    function = read("""
        %v = load i64, ptr %p
        %a = insertvalue [2 x i64] undef, i64 %v, 0
        store i64 %n, ptr %p
        %w = load i64, ptr %p
        %b = insertvalue [2 x i64] %a, i64 %w, 1
        store i64 %w, ptr %p
        %unused = load i64, ptr %p
        %part = extractvalue [2 x i64] %b, 0""")
    assert take_apart(function)
    assert opcodes(function) == ["load", "store", "load", "store", "load", "store", "ret"]
    (block,) = function.blocks
    assert block.instructions[-2].operands[0] is block.instructions[0]
