"""Phis of values that are computed alike, as LLVM leaves them: what replaces them, and that results stay the same."""

from __future__ import annotations

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir
from spmd_blocks import kernel
from spmd_kernels import pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.ir.model import Function
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.passes.merge_phis import merge_phis

JOIN = """
define void @k(i64 %n, i64 %m, i1 %c, ptr %p, float %x, float %y) {{
entry:
  %w = load i64, ptr %p
  br i1 %c, label %one, label %other
one:
  {one}
  br label %join
other:
  {other}
  br label %join
join:
  %found = phi {kind} [ %a, %one ], [ %b, %other ]
  store {kind} %found, ptr %p
  ret void
}}
"""
ALIKE = {
    "a sum": ("i64", "%a = add i64 %n, -1", "%b = add i64 %n, -1"),
    "a sum with a loaded value": ("i64", "%a = add i64 %n, %w", "%b = add i64 %n, %w"),
    "a chain": (
        "i64",
        "%s = mul i64 %n, %m\n %t = sub i64 %s, 3\n %a = ashr i64 %t, 1",
        "%u = mul i64 %n, %m\n %v = sub i64 %u, 3\n %b = ashr i64 %v, 1",
    ),
    "an address": ("ptr", "%a = getelementptr i32, ptr %p, i64 %n", "%b = getelementptr i32, ptr %p, i64 %n"),
    "a comparison": ("i1", "%a = icmp slt i64 %n, %m", "%b = icmp slt i64 %n, %m"),
    "a conversion": ("i32", "%a = trunc i64 %n to i32", "%b = trunc i64 %n to i32"),
    "a product of floats": ("float", "%a = fmul float %x, %y", "%b = fmul float %x, %y"),
}
UNLIKE = {
    "another number": ("i64", "%a = add i64 %n, -1", "%b = add i64 %n, -2"),
    "another operand": ("i64", "%a = add i64 %n, 1", "%b = add i64 %m, 1"),
    "another order": ("i64", "%a = sub i64 %n, %m", "%b = sub i64 %m, %n"),
    "another operation": ("i64", "%a = add i64 %n, %m", "%b = sub i64 %n, %m"),
    "another predicate": ("i1", "%a = icmp slt i64 %n, %m", "%b = icmp ult i64 %n, %m"),
    "another element": ("ptr", "%a = getelementptr i32, ptr %p, i64 %n", "%b = getelementptr i64, ptr %p, i64 %n"),
    "another source": ("i8", "%a = trunc i64 %n to i8", "%s = trunc i64 %n to i32\n %b = trunc i32 %s to i8"),
    "a division, which may trap": ("i64", "%a = sdiv i64 %n, %m", "%b = sdiv i64 %n, %m"),
    "a load, between stores": ("i64", "%a = load i64, ptr %p", "store i64 1, ptr %p\n %b = load i64, ptr %p"),
    "more than it is worth": ("i64", *("\n".join(
        f"%{name}{step} = mul i64 %{name if step else 'n'}{step - 1 if step else ''}, %m" for step in range(9)
    ) + f"\n %{name} = add i64 %{name}8, 1" for name in "ab")),
}  # fmt: skip


def read(kind: str, one: str, other: str) -> Function:
    text = JOIN.format(kind=kind, one=one, other=other)
    return read_function(PrintedModule(llvm.parse_assembly(text, llvm.create_context())), "k", ir.Context())


def opcodes(function: Function) -> list[str]:
    return [value.opcode for value in function.instructions()]


@pytest.mark.parametrize("case", ALIKE)
def test_values_that_are_computed_alike(case: str) -> None:
    function = read(*ALIKE[case])
    assert merge_phis(function)
    assert "phi" not in opcodes(function)
    _, one, other, join = function.blocks
    assert [len(block.instructions) for block in (one, other)] == [1, 1], "nothing uses what the paths computed"
    store = join.instructions[-2]
    assert store.operands[0] is join.instructions[-3]


@pytest.mark.parametrize("case", UNLIKE)
def test_values_that_are_not(case: str) -> None:
    function = read(*UNLIKE[case])
    before = opcodes(function)
    assert not merge_phis(function)
    assert opcodes(function) == before


def test_only_flags_of_all_are_kept() -> None:
    function = read("i64", "%a = add nuw nsw i64 %n, 1", "%b = add nsw i64 %n, 1")
    merge_phis(function)
    (made,) = (value for value in function.instructions() if value.opcode == "add")
    assert made.flags == ("nsw",)
    function = read("float", "%a = fmul nnan nsz float %x, %y", "%b = fmul ninf float %x, %y")
    merge_phis(function)
    (made,) = (value for value in function.instructions() if value.opcode == "fmul")
    assert made.flags == ()


def test_phis_of_merged_phis() -> None:
    """As where three paths join two by two."""
    text = """
define void @k(i64 %n, i1 %c, i1 %d, ptr %p) {
entry:
  br i1 %c, label %one, label %other
one:
  %a = add i64 %n, -1
  br label %two
other:
  %b = add i64 %n, -1
  br label %two
two:
  %half = phi i64 [ %a, %one ], [ %b, %other ]
  br i1 %d, label %three, label %join
three:
  %e = add i64 %n, -1
  br label %join
join:
  %found = phi i64 [ %half, %two ], [ %e, %three ]
  store i64 %found, ptr %p
  ret void
}
"""
    function = read_function(PrintedModule(llvm.parse_assembly(text, llvm.create_context())), "k", ir.Context())
    assert merge_phis(function)
    assert [opcode for opcode in opcodes(function) if opcode in ("phi", "add")] == ["add"]
    assert function.blocks[-1].instructions[0].opcode == "add"


@pytest.mark.parametrize(("steps", "merges"), [(5, True), (60, False)])
def test_what_is_used_twice_is_looked_at_once(steps: int, merges: bool) -> None:
    """Of a chain of squares there are more paths than could be walked."""
    one, other = (
        "\n".join(f"%{name}{step} = mul i64 {power}, {power}" for step, power in enumerate(powers))
        for name, powers in ((name, ["%n", *(f"%{name}{step}" for step in range(steps - 1))]) for name in "de")
    )
    last = f"%a = add i64 %d{steps - 1}, 1", f"%b = add i64 %e{steps - 1}, 1"
    function = read("i64", f"{one}\n  {last[0]}", f"{other}\n  {last[1]}")
    assert merge_phis(function) == merges
    assert opcodes(function).count("mul") == (steps if merges else 2 * steps)


LAST_ROW = """
  %mine = zext i32 %tx to i64
  %odd = trunc i64 %mine to i1
  br i1 %odd, label %one, label %other
one:
  %one.last = add i64 %n, -5
  %far = icmp slt i64 %mine, %one.last
  br i1 %far, label %mark, label %join
mark:
  %q = getelementptr i64, ptr %out, i64 %mine
  store i64 7, ptr %q
  br label %join
other:
  %other.last = add i64 %n, -5
  br label %join
join:
  %last = phi i64 [ %one.last, %one ], [ %one.last, %mark ], [ %other.last, %other ]
  WAIT
  %inside = icmp slt i64 %mine, %last
  br i1 %inside, label %add, label %end
add:
  %p = getelementptr i64, ptr %out, i64 %mine
  %before = load i64, ptr %p
  %after = add i64 %before, %last
  store i64 %after, ptr %p
  br label %end
end:
  ret void
"""


@pytest.mark.parametrize("form", ["auto", "vectors", "regions"])
@pytest.mark.parametrize("waits", [False, True])
def test_threads_that_diverge_before(device: Device, form: str, waits: bool) -> None:
    body = LAST_ROW.replace("WAIT", "call void @spmd.barrier(ptr %item)" if waits else "")
    out = to_device(np.zeros(64, np.int64))
    with config.cpu_form.scope(form):
        function = device.load(kernel(body, [("out", "ptr"), ("n", "i64")])).function("k")
        function.launch(1, 64, pack(function.kernel, out.address, 50))
    threads = np.arange(64)
    expected = np.where(threads < 45, 45 + 7 * (threads % 2), 0)
    np.testing.assert_array_equal(out.copy_to_host(), expected)
