"""How often loops around barriers run, and which are unrolled."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest
from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.cfg import order_function
from hip_runtime.drivers.cpu.analyses.trip_counts import count_iterations, expect_iterations
from hip_runtime.drivers.cpu.ir.model import Function
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.object_code.host_machine import target_machine
from hip_runtime.drivers.cpu.passes.inline import unroll_marked
from hip_runtime.drivers.cpu.passes.unroll_steps import find_nests, find_shared_walks, find_steps, mark_unrolled

LOOP = """
declare void @spmd.barrier(ptr)
define void @k(ptr %item, i32 %m, ptr %p) {{
entry:
  br label %loop
loop:
  %v = phi {kind} [ {first}, %entry ], [ %next, %loop ]
  {call}
  %more = icmp {relation}
  %next = {step}
  br i1 %more, label %{goes}, label %{ends}
done:
  ret void
}}
"""
COUNTS = {
    "doubles": ("i32", "1", "shl i32 %v, 1", "slt i32 %v, 128", 8),
    "halves": ("i64", "256", "sdiv i64 %v, 2", "sgt i64 %v, 3", 8),
    "halves below zero": ("i64", "-256", "sdiv i64 %v, 2", "slt i64 %v, -1", 9),
    "shifts": ("i32", "-1", "lshr i32 %v, 3", "ne i32 %v, 0", 12),
    "shifts with a sign": ("i32", "-4096", "ashr i32 %v, 2", "ne i32 %v, -1", 7),
    "remainders": ("i32", "100", "srem i32 %v, 7", "sgt i32 %v, 6", 2),
    "wraps around": ("i8", "100", "add i8 %v, 50", "sgt i8 %v, 0", 2),
    "compares without sign": ("i8", "100", "add i8 %v, 50", "ult i8 %v, 200", 3),
    "counts": ("i32", "0", "add i32 %v, 3", "ult i32 %v, 10", 5),
    "runs once": ("i32", "5", "add i32 %v, 3", "eq i32 %v, 4", 1),
    "divides by zero": ("i32", "5", "sdiv i32 %v, 0", "ne i32 %v, 1", None),
    "shifts too far": ("i32", "5", "shl i32 %v, 32", "ne i32 %v, 1", None),
    "depends on an argument": ("i32", "0", "add i32 %v, 1", "slt i32 %v, %m", None),
    "starts at an argument": ("i32", "%m", "add i32 %v, 1", "slt i32 %v, 9", None),
    "runs too often": ("i32", "0", "add i32 %v, 1", "slt i32 %v, 16", None),
    "never ends": ("i32", "1", "mul i32 %v, -1", "ne i32 %v, 0", None),
}
BARRIER = "call void @spmd.barrier(ptr %item)"


def _module(name: str, call: str = "", goes: str = "loop", ends: str = "done") -> llvm.ModuleRef:
    kind, first, step, relation, _ = COUNTS[name]
    text = LOOP.format(kind=kind, first=first, step=step, relation=relation, call=call, goes=goes, ends=ends)
    return llvm.parse_assembly(text, llvm.create_context())


def _read(module: llvm.ModuleRef) -> Function:
    return read_function(PrintedModule(module), "k", ir.Context())


@pytest.mark.parametrize("name", COUNTS)
def test_iterations_are_counted(name: str) -> None:
    function = _read(_module(name))
    order = order_function(function)
    header = function.blocks[1]
    assert count_iterations(order.loops[header][0], header, 16) == COUNTS[name][-1]


def test_a_branch_the_other_way_round() -> None:
    """The loop goes on while the condition does not hold: at once it does."""
    function = _read(_module("counts", goes="done", ends="loop"))
    order = order_function(function)
    assert count_iterations(order.loops[function.blocks[1]][0], function.blocks[1], 16) == 1


LEFT_EARLY = """
define void @k(ptr %item, i32 %m, ptr %p) {{
entry:
  br label %loop
loop:
  %v = phi i32 [ -1, %entry ], [ %next, %again ]
  %x = load i32, ptr %p
  %found = icmp eq i32 %x, %v
  %next = add nsw i32 %v, 1
  %last = icmp eq i32 %next, {last}
  {check}
again:
  {end}
done:
  ret void
}}
"""


@pytest.mark.parametrize(
    ("last", "check", "end", "expected"),
    [
        ("2", "br i1 %found, label %done, label %again", "br i1 %last, label %done, label %loop", 3),
        ("%m", "br i1 %found, label %done, label %again", "br i1 %last, label %done, label %loop", None),
        ("2", "br i1 %last, label %done, label %again", "br i1 %found, label %done, label %loop", None),
    ],
    ids=["by the end of an iteration", "as an argument says", "by its beginning"],
)
def test_a_loop_that_may_be_left_early(last: str, check: str, end: str, expected: int | None) -> None:
    """The number of iterations is that of one that is not."""
    text = LEFT_EARLY.format(last=last, check=check, end=end)
    function = _read(llvm.parse_assembly(text, llvm.create_context()))
    order = order_function(function)
    header = function.blocks[1]
    assert count_iterations(order.loops[header][0], header, 16) == expected


def test_only_loops_around_barriers_are_unrolled() -> None:
    assert find_steps(_read(_module("doubles", call="store i32 1, ptr %p"))) == []
    assert find_steps(_read(_module("doubles", call=BARRIER))) == ["loop"]
    assert find_steps(_read(_module("runs too often", call=BARRIER))) == []
    assert find_steps(_read(_module("doubles", call=f"{BARRIER}\n" * 5))) == []  # 40 sync points


def test_a_marked_loop_becomes_a_sequence() -> None:
    module = _module("doubles", call=f"{BARRIER}\nstore i32 %v, ptr %p")
    marked = llvm.parse_assembly(mark_unrolled(module, "k", {"loop": None}), llvm.create_context())
    unroll_marked(marked, target_machine())
    function = _read(marked)
    stored = [value.operands[0].number for value in function.instructions() if value.opcode == "store"]  # type: ignore[attr-defined]
    assert stored == [1, 2, 4, 8, 16, 32, 64, 128]
    assert sum(value.callee == "spmd.barrier" for value in function.instructions()) == 8


NEST = """
define void @k(ptr %item, i32 %m, ptr %p) {{
entry:
  %own = alloca [{size} x float]
  br label %rows
rows:
  %row = phi i32 [ 0, %entry ], [ %after, %next ]
  br label %columns
columns:
  %column = phi i32 [ 0, %rows ], [ %right, %columns ]
  %at = getelementptr [{size} x float], ptr %own, i32 0, i32 %column
  store float 1.0, ptr %at
  %right = add i32 %column, 1
  %inside = icmp slt i32 %column, {last}
  br i1 %inside, label %columns, label %next
next:
  %after = add i32 %row, 1
  %more = icmp slt i32 %after, {rows}
  br i1 %more, label %rows, label %done
done:
  ret void
}}
"""


def _nest(last: str, rows: int | str = 5, size: int = 16) -> Function:
    text = NEST.format(last=last, rows=rows, size=size)
    return _read(llvm.parse_assembly(text, llvm.create_context()))


@pytest.mark.parametrize(("last", "rows", "expected"), [
    ("%row", 5, {"rows": 5, "columns": 3}),
    ("%row", 4, {"rows": 4, "columns": 3}),
    ("3", 5, {"rows": 5, "columns": 4}),
    ("%m", 5, {"rows": 5}),
    ("%row", "%m", {}),
    ("2", "%m", {"columns": 3}),
    ("%row", 17, {}),
])  # fmt: skip
def test_loops_run_as_often_as_in_the_middle_of_those_around_them(
    last: str, rows: int | str, expected: dict[str, int]
) -> None:
    function = _nest(last, rows)
    order = order_function(function)
    headers = order.headers()
    assert {headers[loop].name: count for loop, count in expect_iterations(order, 16).items()} == expected


@pytest.mark.parametrize(("last", "rows", "found"), [
    ("%row", 5, ["next"]), ("3", 5, []), ("%m", 5, []), ("%row", "%m", []), ("%row", 12, ["next"]), ("%row", 16, []),
])  # fmt: skip
def test_loops_that_decide_about_those_in_them_are_unrolled(last: str, rows: int | str, found: list[str]) -> None:
    assert find_nests(_nest(last, rows)) == found


WALK = """
declare void @spmd.barrier(ptr)
declare ptr @spmd.shared.tile.1088.4(ptr)
define void @k(ptr %item, i32 %m, ptr %p) {{
entry:
  %tile = call ptr @spmd.shared.tile.1088.4(ptr %item)
  {wait}
  br label %loop
loop:
  %v = phi i32 [ 0, %entry ], [ %next, %loop ]
  %total = phi float [ 0.0, %entry ], [ %sum, %loop ]
  %at = getelementptr float, ptr {memory}, i32 %v
  %x = load float, ptr %at
  {more}
  %sum = fadd float %total, %x
  %next = add i32 %v, 1
  %again = icmp slt i32 %next, {count}
  br i1 %again, label %loop, label %done
done:
  store float %sum, ptr %p
  ret void
}}
"""
WAITS = "call void @spmd.barrier(ptr %item)"


@pytest.mark.parametrize(("memory", "count", "wait", "more", "found"), [
    ("%tile", 16, WAITS, "", ["loop"]), ("%tile", 17, WAITS, "", []), ("%tile", "%m", WAITS, "", []),
    ("%p", 16, WAITS, "", []), ("%tile", 16, "", "", []), ("%tile", 16, WAITS, "store float %x, ptr %p", []),
    ("%tile", 16, WAITS, "%p.bits = ptrtoint ptr %p to i64\n" * 14, []),
])  # fmt: skip
def test_walks_through_tiles_are_unrolled(
    memory: str, count: int | str, wait: str, more: str, found: list[str]
) -> None:
    more = "\n".join(line.replace("%p.bits", f"%p.{number}") for number, line in enumerate(more.split("\n")))
    text = WALK.format(memory=memory, count=count, wait=wait, more=more)
    assert find_shared_walks(_read(llvm.parse_assembly(text, llvm.create_context()))) == found
