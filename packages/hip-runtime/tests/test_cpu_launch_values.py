"""What a launch decides is taken out of a kernel's graph, and nothing else."""

from __future__ import annotations

import pytest
from llvmlite import ir
from spmd_kernels import DECLARATIONS

from hip_runtime.drivers.cpu.analyses.launch_values import find_launch_values
from hip_runtime.drivers.cpu.ir.model import Function, Instruction
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.ir.verifier import find_problems
from hip_runtime.drivers.cpu.llvm_context import LlvmContext
from hip_runtime.drivers.cpu.passes.launch_prologue import take_out_launch_values

KERNEL = """
@__hip_cpu_two_over_pi = internal constant [8 x double] zeroinitializer

define void @k(ptr noalias %item, ptr noalias %out, i64 %n, double %a, double %b) {{
entry:
  %t = call i32 @spmd.thread_idx.x(ptr %item)
  %i = zext i32 %t to i64
  %q = getelementptr double, ptr %out, i64 %i
  %in = icmp slt i64 %i, %n
  br i1 %in, label %start, label %exit
start:
{body}
exit:
  ret void
}}
"""

LONG = "\n".join(f"  %x{n} = fmul double %x{n - 1}, %b" for n in range(1, 20))
"""More than it takes to be worth it."""

TAKEN = {
    "one path or the other": """
  %more = fcmp ogt double %a, 1.0e+00
  br i1 %more, label %left, label %right
left:
  %x0 = fadd double %a, %b
  {long}
  br label %join
right:
  %y = fsub double %a, %b
  br label %join
join:
  %v = phi double [ %x19, %left ], [ %y, %right ]
  store double %v, ptr %q
  br label %exit
""",
    "one within the other": """
  %more = fcmp ogt double %a, 1.0e+00
  br i1 %more, label %left, label %join
left:
  %x0 = fadd double %a, %b
  {long}
  %most = fcmp ogt double %x19, 1.0e+02
  br i1 %most, label %far, label %near
far:
  %f = fsub double %x19, %b
  br label %near
near:
  %w = phi double [ %x19, %left ], [ %f, %far ]
  br label %join
join:
  %v = phi double [ %a, %start ], [ %w, %near ]
  store double %v, ptr %q
  br label %exit
""",
    "two, of which a thread computes one": """
  %odd = trunc i32 %t to i1
  br i1 %odd, label %first, label %second
first:
  %more = fcmp ogt double %a, 1.0e+00
  br i1 %more, label %left, label %join
left:
  %x0 = fadd double %a, %b
  {long}
  br label %join
join:
  %v = phi double [ %a, %first ], [ %x19, %left ]
  store double %v, ptr %q
  br label %exit
second:
  %less = fcmp olt double %b, 1.0e+00
  br i1 %less, label %other, label %end
other:
  %z = fmul double %a, %a
  br label %end
end:
  %w = phi double [ %a, %second ], [ %z, %other ]
  store double %w, ptr %q
  br label %exit
""",
    "a choice among three, whose number has no sign that wraps": """
  %m = add nsw i64 %n, 1
  switch i64 %m, label %join [ i64 1, label %left
                               i64 2, label %right ]
left:
  %x0 = fadd double %a, %b
  {long}
  br label %join
right:
  %y = fsub double %a, %b
  br label %join
join:
  %v = phi double [ %a, %start ], [ %x19, %left ], [ %y, %right ]
  store double %v, ptr %q
  br label %exit
""",
}
LEFT = {
    "a thread decides": """
  %more = trunc i32 %t to i1
  br i1 %more, label %left, label %join
left:
  %x0 = fadd double %a, %b
  {long}
  br label %join
join:
  %v = phi double [ %a, %start ], [ %x19, %left ]
  store double %v, ptr %q
  br label %exit
""",
    "a path leaves": """
  %more = fcmp ogt double %a, 1.0e+00
  br i1 %more, label %left, label %join
left:
  %x0 = fadd double %a, %b
  {long}
  %most = fcmp ogt double %x19, 1.0e+02
  br i1 %most, label %exit, label %join
join:
  %v = phi double [ %a, %start ], [ %x19, %left ]
  store double %v, ptr %q
  br label %exit
""",
    "a loop": """
  br label %loop
loop:
  %x0 = phi double [ %a, %start ], [ %x19, %loop ]
  {long}
  %more = fcmp ogt double %x19, 1.0e+00
  br i1 %more, label %loop, label %join
join:
  %v = phi double [ %x19, %loop ]
  store double %v, ptr %q
  br label %exit
""",
    "an integer that is an index": """
  %more = fcmp ogt double %a, 1.0e+00
  br i1 %more, label %left, label %join
left:
  %x0 = fadd double %a, %b
  {long}
  %k = fptosi double %x19 to i64
  br label %join
join:
  %v = phi i64 [ 3, %start ], [ %k, %left ]
  %p = getelementptr double, ptr %out, i64 %v
  store double %a, ptr %p
  br label %exit
""",
    "a quotient that may be one by 0": """
  %k = sdiv i64 100, %n
  %d = sitofp i64 %k to double
  %more = fcmp ogt double %d, 1.0e+00
  br i1 %more, label %left, label %join
left:
  %x0 = fadd double %d, %b
  {long}
  br label %join
join:
  %v = phi double [ %d, %start ], [ %x19, %left ]
  store double %v, ptr %q
  br label %exit
""",
    "what is in memory": """
  %x0 = load double, ptr %out
  {long}
  %more = fcmp ogt double %x19, 1.0e+00
  br i1 %more, label %left, label %join
left:
  br label %join
join:
  %v = phi double [ %a, %start ], [ %x19, %left ]
  store double %v, ptr %q
  br label %exit
""",
    "little": """
  %more = fcmp ogt double %a, 1.0e+00
  br i1 %more, label %left, label %join
left:
  %y = fadd double %a, %b
  br label %join
join:
  %v = phi double [ %a, %start ], [ %y, %left ]
  store double %v, ptr %q
  br label %exit
""",
}


def read(body: str) -> Function:
    module = LlvmContext().read_text(KERNEL.format(body=body.format(long=LONG.strip())) + DECLARATIONS)
    return read_function(PrintedModule(module), "k", ir.Context())


def names(function: Function) -> set[str]:
    return {value.name for value in function.instructions()}


@pytest.mark.parametrize("case", TAKEN)
def test_what_is_taken_out(case: str) -> None:
    kernel = read(TAKEN[case])
    prologue = take_out_launch_values(kernel)
    assert prologue.function is not None
    assert len(kernel.arguments) == 5 + len(prologue.types)
    assert len(prologue.function.arguments) == 5 + len(prologue.types)
    for function in (kernel, prologue.function):
        assert not list(find_problems(function))
    assert "x19" in names(prologue.function)
    assert not {"x19", "more", "v", "w"} & names(kernel)
    assert not {"t", "in", "odd"} & names(prologue.function)


def test_conditions_are_settled_and_sums_may_wrap() -> None:
    """No check comes before them: what was never computed may be any number."""
    prologue = take_out_launch_values(read(TAKEN["a choice among three, whose number has no sign that wraps"]))
    assert prologue.function is not None
    (choice,) = (value for value in prologue.function.instructions() if value.opcode == "switch")
    settled = choice.operands[0]
    assert isinstance(settled, Instruction)
    assert settled.opcode == "freeze"
    (total,) = (value for value in prologue.function.instructions() if value.name == "m")
    assert total.flags == ()


@pytest.mark.parametrize("case", LEFT)
def test_what_is_left(case: str) -> None:
    kernel = read(LEFT[case])
    before = names(kernel)
    assert find_launch_values(kernel) is None
    assert take_out_launch_values(kernel).function is None
    assert names(kernel) == before


TABLE = """
  %more = fcmp ogt double %a, 1.0e+00
  br i1 %more, label %left, label %join
left:
  %k = fptosi double %b to i64
  %m = and i64 %k, 7
  %p = getelementptr inbounds double, ptr {table}, i64 %m
  %x0 = load double, ptr %p
  {long}
  br label %join
join:
  %v = phi double [ %a, %start ], [ %x19, %left ]
  store double %v, ptr %q
  br label %exit
"""


@pytest.mark.parametrize(("table", "is_taken"), [("@__hip_cpu_two_over_pi", True), ("%out", False)])
def test_only_the_table_of_the_math_library_is_read_ahead(table: str, is_taken: bool) -> None:
    kernel = read(TABLE.format(table=table, long="{long}"))
    assert (find_launch_values(kernel) is not None) == is_taken
