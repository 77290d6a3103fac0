"""Loads by all threads of a block from one place: whether all find the same there."""

from __future__ import annotations

import pytest
from llvmlite import ir
from spmd_kernels import DECLARATIONS

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.llvm_context import LlvmContext
from hip_runtime.drivers.cpu.regions.formation import RegionGraph, cut_at_sync_points

MORE = """
declare void @spmd.barrier(ptr)
declare ptr @spmd.shared.tile.256.4(ptr)
"""
KERNEL = """
define void @k(ptr noalias %item, ptr noalias %starts, ptr noalias %out, i64 %n) {{
entry:
  %t = call i32 @spmd.thread_idx.x(ptr %item)
  %b = call i32 @spmd.block_idx.x(ptr %item)
  %tile = call ptr @spmd.shared.tile.256.4(ptr %item)
  %own = getelementptr i32, ptr %out, i32 %t
  %cell = getelementptr i32, ptr %tile, i32 %t
  %place = getelementptr i32, ptr %starts, i32 %b
  {before}
  %row = load {how} i32, ptr {place}
  {behind}
  call void @spmd.barrier(ptr %item)
  {after}
  store i32 %row, ptr %own
  ret void
}}
"""
SAME = {
    "nothing is written": {},
    "it is written behind the barrier": {"after": "store i32 1, ptr %place"},
    "what is shared is written": {"behind": "store i32 1, ptr %cell"},
    "shared memory, and that of the arguments is written": {"place": "%tile", "before": "store i32 1, ptr %own"},
}
APART = {
    "each has a place of its own": {"place": "%own"},
    "a thread writes there before": {"before": "store i32 1, ptr %place"},
    "a thread writes there behind it": {"behind": "store i32 1, ptr %own"},
    "an atomic operation": {"behind": "%x = atomicrmw add ptr %own, i32 1 monotonic"},
    "shared memory that is written": {"place": "%tile", "before": "store i32 1, ptr %cell"},
    "volatile": {"how": "volatile"},
    "a fence": {"before": "fence seq_cst"},
}


def cut(parts: dict[str, str]) -> RegionGraph:
    words = {"before": "", "behind": "", "after": "", "place": "%place", "how": "", **parts}
    return cut_text(KERNEL.format(**words))


def cut_text(kernel: str) -> RegionGraph:
    module = LlvmContext().read_text(kernel + DECLARATIONS + MORE)
    return cut_at_sync_points(read_function(PrintedModule(module), "k", ir.Context()), spmd.SYNCHRONISING)


def row_varies(graph: RegionGraph) -> bool:
    (row,) = (value for value in graph.function.instructions() if value.name == "row")
    return graph.uniformity.varies(row, graph.homes[row])


@pytest.mark.parametrize("case", SAME)
def test_all_find_the_same(case: str) -> None:
    assert not row_varies(cut(SAME[case]))


@pytest.mark.parametrize("case", APART)
def test_threads_may_find_something_else(case: str) -> None:
    assert row_varies(cut(APART[case]))


LOOP = """
define void @k(ptr noalias %item, ptr noalias %starts, ptr noalias %out, i32 %n) {{
entry:
  %t = call i32 @spmd.thread_idx.x(ptr %item)
  %own = getelementptr i32, ptr %out, i32 %t
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %row = load i32, ptr %out
  {middle}
  store i32 %row, ptr %own
  {end}
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""
WAIT = "call void @spmd.barrier(ptr %item)"


@pytest.mark.parametrize(("middle", "end", "expected"), [(WAIT, WAIT, False), (WAIT, "", True), ("", WAIT, True)])
def test_iterations_of_a_loop(middle: str, end: str, expected: bool) -> None:
    """Without both barriers, a thread reads what another has written in the same iteration, or the one before."""
    assert row_varies(cut_text(LOOP.format(middle=middle, end=end))) is expected
