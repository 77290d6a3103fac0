"""Remainders by which a neighbour's index begins anew at an edge: where a check tells that no division is needed."""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir
from spmd_kernels import code, pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.ir.model import Function, Instruction
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.ir.verifier import find_problems
from hip_runtime.drivers.cpu.passes.wrapped_remainders import replace_wrapped_remainders

CHECKED = """
declare i64 @llvm.smin.i64(i64, i64)
define void @k(ptr noalias %item, ptr %out, i64 %n, i64 %m) {{
entry:
  %t = call i32 @spmd.thread_idx.x(ptr %item)
  %x = {index}
  {check}
  br i1 %c, label %{targets}
do:
  {lines}
  %q = getelementptr i64, ptr %out, i64 %x
  store i64 %r, ptr %q
  br label %end
end:
  ret void
}}
"""
NATURAL = "zext i32 %t to i64"
IF_LESS, UNLESS = "do, label %end", "end, label %do"
LESS = "%c = icmp slt i64 %x, %n"
NEXT = "%a = add i64 %x, 1\n  %r = urem i64 %a, %n"
FLOOR = """%s = srem i64 %a, %n
  %mixed = xor i64 %s, %n
  %negative = icmp slt i64 %mixed, 0
  %some = icmp ne i64 %s, 0
  %differ = {both}
  %more = select i1 %differ, i64 %n, i64 0
  %r = add i64 %more, %s"""
BEFORE_IN_PYTHON = "%a = add i64 %x, -1\n  " + FLOOR

REPLACED: dict[str, tuple[str, str, str, str]] = {
    "the next": (NATURAL, LESS, IF_LESS, NEXT),
    "the next by a remainder with a sign": (NATURAL, LESS, IF_LESS, NEXT.replace("urem", "srem")),
    "the one before": (NATURAL, LESS, IF_LESS, "%l = add i64 %n, -1\n  %a = add i64 %l, %x\n  %r = urem i64 %a, %n"),
    "the one before, otherwise": (
        NATURAL, LESS, IF_LESS, "%l = sub i64 %x, 1\n  %a = add i64 %l, %n\n  %r = urem i64 %a, %n"
    ),
    "the next once around": (
        NATURAL, LESS, IF_LESS, "%l = add i64 %x, 1\n  %a = add i64 %l, %n\n  %r = urem i64 %a, %n"
    ),
    "itself once around": (NATURAL, LESS, IF_LESS, "%a = add i64 %x, %n\n  %r = urem i64 %a, %n"),
    "the one before in Python": (NATURAL, LESS, IF_LESS, BEFORE_IN_PYTHON.format(both="and i1 %some, %negative")),
    "the one before in Python, otherwise": (
        NATURAL, LESS, IF_LESS, BEFORE_IN_PYTHON.format(both="select i1 %negative, i1 %some, i1 false")
    ),
    "the next in Python": (
        NATURAL, LESS, IF_LESS, "%a = add i64 %x, 1\n  " + FLOOR.format(both="and i1 %negative, %some")
    ),
    "behind an early return": (NATURAL, "%c = icmp sge i64 %x, %n", UNLESS, NEXT),
    "behind a reversed check": (NATURAL, "%c = icmp sgt i64 %n, %x", IF_LESS, NEXT),
    "behind two checks": (
        NATURAL, "%d = icmp slt i64 %x, %n\n  %e = icmp slt i64 %x, %m\n  %c = select i1 %e, i1 %d, i1 false", IF_LESS,
        NEXT,
    ),
    "the next by low bits": (NATURAL, "%c = icmp slt i64 %x, 32", IF_LESS, "%a = add i64 %x, 1\n  %r = and i64 %a, 31"),
    "the one before by low bits": (
        NATURAL, "%c = icmp slt i64 %x, 32", IF_LESS, "%a = add i64 %x, -1\n  %r = and i64 %a, 31"
    ),
    "the one before by low bits, once around": (
        NATURAL, "%c = icmp samesign ult i64 %x, 32", IF_LESS, "%a = add i64 %x, 31\n  %r = and i64 %a, 31"
    ),
    "itself by low bits": (NATURAL, "%c = icmp slt i64 %x, 32", IF_LESS, "%a = add i64 %x, 64\n  %r = and i64 %a, 31"),
    "the other one by low bits": (
        NATURAL, "%c = icmp slt i64 %x, 2", IF_LESS, "%a = add i64 %x, 1\n  %r = and i64 %a, 1"
    ),
    "of a sum": ("add nuw nsw i64 %wide, 3", LESS, IF_LESS, "%a = add i64 %wide, 4\n  %r = urem i64 %a, %n"),
    "of a difference": (
        NATURAL, "%n.1 = add i64 %n, -2\n  %c = icmp slt i64 %x, %n.1", IF_LESS,
        "%a = add i64 %x, %n\n  %b = add i64 %a, -3\n  %r = urem i64 %b, %n.1",
    ),
}  # fmt: skip
KEPT: dict[str, tuple[str, str, str, str]] = {
    "two steps": (NATURAL, LESS, IF_LESS, NEXT.replace("%x, 1", "%x, 2")),
    "two steps back": (NATURAL, LESS, IF_LESS, "%l = add i64 %n, -2\n  %a = add i64 %l, %x\n  %r = urem i64 %a, %n"),
    "the largest number": (NATURAL, LESS, IF_LESS, NEXT.replace("%x, 1", "%x, -1")),
    "a negative remainder": (NATURAL, LESS, IF_LESS, NEXT.replace("%x, 1", "%x, -1").replace("urem", "srem")),
    "twice around, which may wrap": (
        NATURAL, LESS, IF_LESS, "%l = shl i64 %n, 1\n  %a = add i64 %l, %x\n  %r = urem i64 %a, %n"
    ),
    "once around, which may be negative": (
        NATURAL, LESS, IF_LESS, "%l = add i64 %n, -1\n  %a = add i64 %l, %x\n  %r = srem i64 %a, %n"
    ),
    "a product": (NATURAL, LESS, IF_LESS, "%l = shl i64 %x, 1\n  %a = add i64 %l, 1\n  %r = urem i64 %a, %n"),
    "two steps by low bits": (
        NATURAL, "%c = icmp slt i64 %x, 32", IF_LESS, "%a = add i64 %x, 2\n  %r = and i64 %a, 31"
    ),
    "low bits of another number": (
        NATURAL, "%c = icmp slt i64 %x, 64", IF_LESS, "%a = add i64 %x, 1\n  %r = and i64 %a, 31"
    ),
    "bits that are not the low ones": (
        NATURAL, "%c = icmp slt i64 %x, 31", IF_LESS, "%a = add i64 %x, 1\n  %r = and i64 %a, 30"
    ),
    "low bits of a number with a sign": (
        "sext i32 %t to i64", "%c = icmp slt i64 %x, 32", IF_LESS, "%a = add i64 %x, 1\n  %r = and i64 %a, 31"
    ),
    "another divisor": (NATURAL, LESS, IF_LESS, NEXT.replace("%n", "%m")),
    "a check of something else": (NATURAL, "%c = icmp slt i64 %m, %n", IF_LESS, NEXT),
    "a check of numbers without sign": (NATURAL, "%c = icmp ult i64 %x, %n", IF_LESS, NEXT),
    "a check that they differ": (NATURAL, "%c = icmp ne i64 %x, %n", IF_LESS, NEXT),
    "a check that may be equal": (NATURAL, "%c = icmp sle i64 %x, %n", IF_LESS, NEXT),
    "a check that fails": (NATURAL, LESS, UNLESS, NEXT),
    "one check of two": (
        NATURAL, "%d = icmp slt i64 %x, %n\n  %e = icmp slt i64 %x, %m\n  %c = or i1 %e, %d", IF_LESS, NEXT
    ),
    "a number with a sign": ("sext i32 %t to i64", LESS, IF_LESS, NEXT),
    "a sum that may wrap": ("add i64 %wide, 3", LESS, IF_LESS, NEXT),
    "a correction by another number": (
        NATURAL, LESS, IF_LESS,
        BEFORE_IN_PYTHON.format(both="and i1 %some, %negative").replace("i64 %n, i64 0", "i64 %m, i64 0"),
    ),
    "a correction if either holds": (NATURAL, LESS, IF_LESS, BEFORE_IN_PYTHON.format(both="or i1 %some, %negative")),
    "a correction of other signs": (
        NATURAL, LESS, IF_LESS,
        BEFORE_IN_PYTHON.format(both="and i1 %some, %negative").replace("xor i64 %s, %n", "xor i64 %s, %m"),
    ),
}  # fmt: skip


def text_of(index: str, check: str, targets: str, lines: str) -> str:
    wide = "" if "%wide" not in index else "%wide = zext i32 %t to i64\n  "
    text = CHECKED.format(index=index, check=check, targets=targets, lines=lines)
    return text.replace("  %x =", f"  {wide}%x =", 1)


def read(text: str) -> Function:
    text += "declare i32 @spmd.thread_idx.x(ptr)"
    return read_function(PrintedModule(llvm.parse_assembly(text, llvm.create_context())), "k", ir.Context())


def divisions(function: Function) -> int:
    return sum(
        value.opcode in ("urem", "srem") or (value.opcode == "and" and value.type == ir.IntType(64))
        for value in function.instructions()
    )


@pytest.mark.parametrize("case", REPLACED)
def test_needs_no_division(case: str) -> None:
    function = read(text_of(*REPLACED[case]))
    assert replace_wrapped_remainders(function)
    assert not divisions(function)
    assert not list(find_problems(function))


@pytest.mark.parametrize("case", KEPT)
def test_divides(case: str) -> None:
    function = read(text_of(*KEPT[case]))
    assert not replace_wrapped_remainders(function)
    assert divisions(function) == 1


AROUND_A_LOOP = """
define void @k(ptr %out, i32 %t, i64 %n) {
entry:
  %x = zext i32 %t to i64
  %c = icmp slt i64 %x, %n
  br i1 %c, label %loop, label %end
loop:
  %j = phi i64 [ 0, %entry ], [ %more, %loop ]
  %a = add i64 %x, 1
  %r = urem i64 %a, %n
  %q = getelementptr i64, ptr %out, i64 %j
  store i64 %r, ptr %q
  %more = add i64 %j, 1
  %again = icmp slt i64 %more, 9
  br i1 %again, label %loop, label %end
end:
  ret void
}
"""


def test_a_check_holds_in_a_loop() -> None:
    function = read(AROUND_A_LOOP)
    assert replace_wrapped_remainders(function)
    assert not divisions(function)


def test_a_check_at_the_end_of_a_loop_does_not_hold_at_its_start() -> None:
    text = AROUND_A_LOOP.replace("%c = icmp slt i64 %x, %n", "%c = icmp slt i64 %x, 5")
    function = read(text.replace("icmp slt i64 %more, 9", "icmp slt i64 %x, %n"))
    assert not replace_wrapped_remainders(function)


def test_negative_remainders_are_not_corrected() -> None:
    """Numba adds the extent to a negative index, and LLVM computes what Python's correction would be."""
    corrections = """%a = add i64 %x, 1
  %s = srem i64 %a, %n
  %none = icmp eq i64 %s, 0
  %least = call i64 @llvm.smin.i64(i64 %n, i64 0)
  %more = select i1 %none, i64 0, i64 %least
  %t.1 = add i64 %more, %s
  %negative = icmp slt i64 %t.1, 0
  %extent = select i1 %negative, i64 %n, i64 0
  %r = add i64 %extent, %t.1"""
    function = read(text_of(NATURAL, LESS, IF_LESS, corrections))
    assert replace_wrapped_remainders(function)
    assert [value.opcode for value in function.blocks[1].instructions if value.opcode != "call"] == [
        "add", "icmp", "select", "getelementptr", "store", "br"
    ]  # fmt: skip


def test_what_a_check_tells_is_not_used_elsewhere() -> None:
    """The divisor is positive behind the check only."""
    text = text_of(NATURAL, LESS, IF_LESS, NEXT).replace(
        "end:\n", "end:\n  %least = call i64 @llvm.smin.i64(i64 %n, i64 0)\n  store i64 %least, ptr %out\n"
    )
    function = read(text)
    assert replace_wrapped_remainders(function)
    stored = function.blocks[-1].instructions[-2].operands[0]
    assert isinstance(stored, Instruction)
    assert "smin" in stored.callee


BEHIND_A_JOIN = """
define void @k(ptr %out, i32 %t, i64 %n) {
entry:
  %x = zext i32 %t to i64
  %c = icmp slt i64 %x, %n
  br i1 %c, label %less, label %join
less:
  store i64 0, ptr %out
  br label %join
join:
  %a = add i64 %x, 1
  %r = urem i64 %a, %n
  store i64 %r, ptr %out
  ret void
}
"""


def test_a_check_does_not_hold_where_its_paths_have_joined() -> None:
    assert not replace_wrapped_remainders(read(BEHIND_A_JOIN))


RESULTS: dict[str, Callable[[int, int], int]] = {
    "the next": lambda x, n: (x + 1) % n,
    "the next by a remainder with a sign": lambda x, n: (x + 1) % n,
    "the one before": lambda x, n: (x - 1) % n,
    "the one before, otherwise": lambda x, n: (x - 1) % n,
    "the next once around": lambda x, n: (x + 1) % n,
    "itself once around": lambda x, n: x,
    "the one before in Python": lambda x, n: (x - 1) % n,
    "the one before in Python, otherwise": lambda x, n: (x - 1) % n,
    "the next in Python": lambda x, n: (x + 1) % n,
    "behind an early return": lambda x, n: (x + 1) % n,
    "behind a reversed check": lambda x, n: (x + 1) % n,
    "the next by low bits": lambda x, n: (x + 1) % 32,
    "the one before by low bits": lambda x, n: (x - 1) % 32,
    "the one before by low bits, once around": lambda x, n: (x - 1) % 32,
    "the other one by low bits": lambda x, n: 1 - x,
}
BELOW = {case: 2 if "other" in case else 32 for case in RESULTS if "low bits" in case}
"""The number that the threads of a case are compared with, if it is a constant."""


@pytest.mark.parametrize("form", ["vectors", "loop"])
@pytest.mark.parametrize("case", RESULTS)
@pytest.mark.sample(3)
def test_remainders(device: Device, case: str, form: str) -> None:
    parameters = [("out", "ptr"), ("n", "i64"), ("m", "i64")]
    with config.cpu_form.scope(form):
        function = device.load(code(text_of(*REPLACED[case]), "k", parameters)).function("k")
        for n in (0, 1, 2, 3, 15, 16, 17, 33, 63, 64, 100, -1, (1 << 63) - 1):
            out = to_device(np.full(64, -7, np.int64))
            function.launch(1, 64, pack(function.kernel, out.address, n, 0))
            expected = [RESULTS[case](x, n) if x < BELOW.get(case, n) else -7 for x in range(64)]
            np.testing.assert_array_equal(out.copy_to_host(), expected, str(n))
