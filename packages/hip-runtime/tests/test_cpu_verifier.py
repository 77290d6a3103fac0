"""Graphs that break a rule are told of, each by the rule; what the compiler makes breaks none."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import spmd_programs
from llvmlite import ir
from test_cpu_printer import read

from hip_runtime import config
from hip_runtime.drivers.cpu.finalise import finalise_kernel
from hip_runtime.drivers.cpu.ir import trace
from hip_runtime.drivers.cpu.ir.model import Block, Function, Instruction
from hip_runtime.drivers.cpu.ir.verifier import MalformedGraphError, find_problems, verify
from hip_runtime.drivers.cpu.regions.formation import cut_at_sync_points

LOOP = """
declare void @spmd.barrier(ptr)
declare float @llvm.fabs.f32(float)
define void @k(ptr %item, ptr %x, i32 %n) {
entry:
  %some = icmp sgt i32 %n, 0
  br i1 %some, label %head, label %done
head:
  %i = phi i32 [ 0, %entry ], [ %next, %head ]
  %place = getelementptr float, ptr %x, i32 %i
  %v = load float, ptr %place
  %w = call float @llvm.fabs.f32(float %v)
  store float %w, ptr %place
  call void @spmd.barrier(ptr %item)
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %head, label %done
done:
  ret void
}"""


def named(function: Function, name: str) -> Instruction:
    return next(one for one in function.instructions() if one.name == name)


def block(function: Function, name: str) -> Block:
    return next(one for one in function.blocks if one.name == name)


def replace_operand(name: str, number: int, by: str) -> Callable[[Function], None]:
    def change(function: Function) -> None:
        named(function, name).operands[number] = named(function, by)

    return change


def drop(function: Function) -> None:
    block(function, "head").instructions.remove(named(function, "v"))


def use_behind_the_loop(function: Function) -> None:
    kind = ir.IntType(32)
    block(function, "done").instructions.insert(0, Instruction(kind, "freeze", [named(function, "next")], "q"))


BROKEN: dict[str, tuple[Callable[[Function], object], str]] = {
    "no block": (lambda f: f.blocks.clear(), "there is no block"),
    "twice": (lambda f: f.blocks.append(f.blocks[1]), "a block is there twice"),
    "no end": (lambda f: block(f, "done").instructions.clear(), "'done' does not end with its only terminator"),
    "two ends": (
        lambda f: block(f, "head").instructions.append(Instruction(ir.VoidType(), "ret", [])),
        "'head' does not end with its only terminator",
    ),
    "elsewhere": (
        lambda f: block(f, "entry").terminator.targets.__setitem__(0, Block("other")),
        "'entry' goes to a block that is not there",
    ),
    "to the entry": (
        lambda f: block(f, "head").terminator.targets.__setitem__(0, f.blocks[0]),
        "'head' goes back to the entry",
    ),
    "late phi": (
        lambda f: block(f, "head").instructions.insert(2, block(f, "head").instructions.pop(0)),
        "'head' has a phi behind other instructions",
    ),
    "two places": (
        lambda f: block(f, "entry").instructions.insert(0, named(f, "next")),
        "add 'next' is in two places",
    ),
    "gone": (drop, "call 'w' in 'head' uses a value that is not in the graph"),
    "later": (replace_operand("place", 1, "next"), "'place' in 'head' uses a value before it is defined"),
    "not on every path": (
        use_behind_the_loop,
        "freeze 'q' in 'done' uses a value before it is defined",
    ),
    "phi of others": (
        lambda f: named(f, "i").targets.__setitem__(0, block(f, "done")),
        "phi 'i' in 'head' has values for other blocks than those that lead to it: entry, head",
    ),
    "phi too early": (
        lambda f: named(f, "i").operands.__setitem__(0, named(f, "next")),
        "phi 'i' in 'head' is given a value that is not defined where block 'entry' ends",
    ),
    "phi of two": (
        lambda f: (named(f, "i").targets.append(f.blocks[0]), named(f, "i").operands.append(f.arguments[2])),
        "phi 'i' in 'head' has two values for block 'entry'",
    ),
    "type of a sum": (replace_operand("next", 1, "v"), "add 'next' in 'head': types do not fit: i32, float give i32"),
    "type of a phi": (replace_operand("i", 1, "v"), "phi 'i' in 'head': types do not fit"),
    "type of a comparison": (replace_operand("more", 0, "v"), "icmp 'more' in 'head': types do not fit"),
    "type of a condition": (
        lambda f: block(f, "head").terminator.operands.__setitem__(0, named(f, "next")),
        "br '' in 'head': types do not fit: i32 give void",
    ),
    "type of an address": (replace_operand("v", 0, "i"), "load 'v' in 'head': types do not fit: i32 give float"),
    "type of an argument": (
        replace_operand("w", 0, "i"),
        "call 'w' in 'head': the function takes \\(float\\), and is given \\(i32\\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_rule_that_is_broken(case: str) -> None:
    change, problem = BROKEN[case]
    function = read(LOOP)
    verify(function, "read")
    change(function)
    with pytest.raises(MalformedGraphError, match=rf"after some_pass breaks rules:\n[\s\S]*{problem}") as caught:
        verify(function, "some_pass")
    assert caught.value.problems == list(find_problems(function))


def test_what_a_barrier_gives_is_there_behind_it() -> None:
    function = read("""
declare i32 @spmd.barrier_count(ptr, i1)
define void @k(ptr %item, i1 %vote) {
entry:
  %total = call i32 @spmd.barrier_count(ptr %item, i1 %vote)
  %twice = mul i32 %total, 2
  ret void
}""")
    regions = cut_at_sync_points(function)
    verify(function, "cut_at_sync_points")
    (point,) = regions.points
    function.blocks[0].instructions.insert(0, Instruction(ir.IntType(32), "freeze", [point.call], "early"))
    with pytest.raises(MalformedGraphError, match="freeze 'early' in 'entry' uses a value before it is defined"):
        verify(function, "cut_at_sync_points")


@pytest.mark.parametrize("form", ["auto", "vectors", "regions"])
@pytest.mark.sample(1)
def test_no_pass_breaks_a_rule(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stages: list[str] = []
    with config.verify_passes.scope(True), config.cpu_form.scope(form):
        for seed in range(3):
            program = spmd_programs.Generator(seed, bounds=True).program()
            code = spmd_programs.write_kernel(program, 48, 32)
            with trace.listening(lambda stage, function, note: stages.append(stage.partition(" ")[0])):
                finalise_kernel(code, code.kernels[0], (48, 1, 1))
    assert {"read", "freeze_loads", "insert_yields", "cut_at_sync_points"} <= set(stages)
    assert form == "regions" or {"outline", "vector_shapes"} <= set(stages)


def test_a_pass_that_breaks_a_rule_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    from hip_runtime.drivers.cpu.strategies import kernel_graph

    def drop_a_block(function: Function) -> bool:
        function.blocks.pop()
        return False

    monkeypatch.setattr(kernel_graph, "freeze_loads", drop_a_block)
    monkeypatch.setattr(kernel_graph, "LOADS_ARE_LATE", True)
    code = spmd_programs.write_kernel(spmd_programs.Generator(1).program(), 64, 64)
    with config.verify_passes.scope(True), pytest.raises(MalformedGraphError, match="after freeze_loads"):
        finalise_kernel(code, code.kernels[0], (64, 1, 1))
