"""Graphs as text: LLVM reads it, and it is the same graph again."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import pytest
import spmd_programs
from llvmlite import ir
from test_cpu_reader import GLOBALS, INSTRUCTIONS, PARAMETERS

from hip_runtime.drivers.cpu.ir.clone import copy_blocks
from hip_runtime.drivers.cpu.ir.model import Function
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.printer import print_function
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.object_code.host_machine import target_machine
from hip_runtime.drivers.cpu.regions.formation import cut_at_sync_points


def read(text: str, name: str = "k") -> Function:
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()
    return read_function(PrintedModule(module), name, ir.Context())


def around(function: Function, text: str) -> str:
    """*text* without its functions that are defined, and *function*."""
    kept: list[str] = []
    inside = False
    for line in text.split("\n"):
        inside = inside or line.startswith("define ")
        if not inside:
            kept.append(line)
        inside = inside and line != "}"
    return "\n".join([*kept, print_function(function)])


def body(*lines: str) -> str:
    return f"{GLOBALS}\ndefine void @k({PARAMETERS}) {{\nentry:\n" + "\n".join(lines) + "\n}"


def test_every_instruction_is_what_llvm_reads() -> None:
    lines = []
    for number, text in enumerate(INSTRUCTIONS):
        void = text.startswith(("store", "fence", "call void", "call fastcc void"))
        lines.append(f"  {text}" if void else f"  %r{number} = {text}")
    text = body(*lines, "  %room = alloca [4 x i32], i32 3, align 16", "  ret void")
    function = read(text)
    printed = around(function, text)
    assert print_function(read(printed)) == print_function(function)
    original, again = (llvm.parse_assembly(one, llvm.create_context()) for one in (text, printed))
    for left, right in zip(
        *(next(iter(one.get_function("k").blocks)).instructions for one in (original, again)), strict=True
    ):
        assert str(left) == str(right)


@pytest.mark.parametrize("seed", range(12))
def test_kernels_of_many_blocks(seed: int) -> None:
    program = spmd_programs.Generator(seed, bounds=True).program()
    code = spmd_programs.write_kernel(program, 64, 64)
    module = llvm.parse_bitcode(code.image, llvm.create_context())
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_namer_pass()
    passes.run(module, llvm.create_pass_builder(target_machine(), llvm.create_pipeline_tuning_options()))
    text, name = str(module), code.kernels[0].name
    function = read(text, name)
    again = read(around(function, text), name)
    assert print_function(again) == print_function(function)


def test_names_that_are_there_twice_and_names_of_any_kind() -> None:
    text = body(
        '  br i1 %c, label %"a b", label %"7\\0A"', '"a b":', '  %"x\\22y" = add i32 %a, 1', '  br label %"7\\0A"',
        '"7\\0A":', '  %z = phi i32 [ %"x\\22y", %"a b" ], [ 0, %entry ]', "  ret void",
    )  # fmt: skip
    function = read(text)
    copies = copy_blocks(function.blocks[1:2])
    function.blocks += copies.blocks.values()
    function.blocks[-1].name = "a b"
    printed = print_function(function)
    assert '"a b":\n  %"x\\22y" = add i32 %a, 1\n' in printed
    assert '"a b.1":\n  %"x\\22y.1" = add i32 %a, 1\n' in printed
    assert '"7\\0A":' in printed
    llvm.parse_assembly(around(function, text), llvm.create_context())


def test_notes_places_and_what_llvm_does_not_have() -> None:
    text = """
declare i32 @spmd.barrier_count(ptr, i1)
define void @k(ptr %item, i1 %vote) {
entry:
  %total = call i32 @spmd.barrier_count(ptr %item, i1 %vote)
  %twice = mul i32 %total, 2
  ret void
}"""
    function = read(text)
    function.blocks[0].instructions[1].location = "kernel.py:7"
    cut_at_sync_points(function)

    def note(instruction: Any) -> str:
        return "uniform" if instruction.opcode == "mul" else ""

    lines = print_function(function, note).split("\n")
    assert "  synchronise %total = call i32 @spmd.barrier_count(ptr %item, i1 %vote) then label %entry.0" in lines
    assert "  %twice = mul i32 %total, 2  ; uniform; kernel.py:7" in lines
