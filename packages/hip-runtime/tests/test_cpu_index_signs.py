"""Indices that grow in a loop: how it starts decides whether they may be negative."""

from __future__ import annotations

import re
from itertools import pairwise

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir
from spmd_kernels import code, pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.finalise import list_kernel
from hip_runtime.drivers.cpu.ir.model import Function, Instruction
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.ir.verifier import find_problems
from hip_runtime.drivers.cpu.passes.index_signs import decide_at_start

ROWS = """
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %starts, i64 %n, i64 %m) {{
entry:
  %t = call i32 @spmd.thread_idx.x(ptr %item)
  %x = zext i32 %t to i64
  %ps = getelementptr i64, ptr %starts, i64 %x
  %pe = getelementptr i64, ptr %ps, i64 1
  %s = load i64, ptr %ps
  %e = load i64, ptr %pe
  %some = icmp slt i64 %s, %e
  br i1 %some, label %loop, label %end
loop:
  %k = phi i64 [ %s, %entry ], [ %next, %loop ]
  {index}
  %add = select i1 %negative, i64 {chosen}
  %j = add i64 %i, %add
  %q = getelementptr i32, ptr %out, i64 %j
  %old = load i32, ptr %q
  %new = add i32 %old, 3
  store i32 %new, ptr %q
  {step}
  %again = icmp slt i64 %next, %e
  br i1 %again, label %loop, label %end
end:
  ret void
}}
"""
SAME = "%i = add i64 %k, 0\n  %negative = icmp slt i64 %k, 0"
TESTED = "  %negative = icmp slt i64 %i, 0"
IF_NEGATIVE, UNLESS = "%n, i64 0", "0, i64 %n"
ONE = "%next = add nsw i64 %k, 1"

DECIDED: dict[str, tuple[str, str, str]] = {
    "the counter": (SAME, IF_NEGATIVE, ONE),
    "unless it is positive": (SAME.replace("slt i64 %k, 0", "sgt i64 %k, -1"), UNLESS, ONE),
    "in steps of four": (SAME, IF_NEGATIVE, ONE.replace("%k, 1", "%k, 4")),
    "the one before": (SAME.replace("%k, 0", "%k, 1", 2).replace("add i64 %k, 1", "add i64 %k, -1"), IF_NEGATIVE, ONE),
    "the next unless it is positive": (
        "%i = add nsw i64 %k, 1\n  %negative = icmp sgt i64 %k, -2", UNLESS, ONE
    ),
    "a sum": ("%i = add nsw i64 %m, %k\n" + TESTED, IF_NEGATIVE, ONE),
    "a difference": ("%i = sub nsw i64 %k, %m\n" + TESTED, IF_NEGATIVE, ONE),
    "a product": ("%i = mul nsw i64 %k, 3\n" + TESTED, IF_NEGATIVE, ONE),
    "a shifted product and a sum": ("%p = shl nsw i64 %k, 2\n  %i = add nsw i64 %p, %m\n" + TESTED, IF_NEGATIVE, ONE),
}  # fmt: skip
KEPT: dict[str, tuple[str, str, str]] = {
    "a counter that shrinks": (SAME, IF_NEGATIVE, ONE.replace("%k, 1", "%k, -1")),
    "a counter that may wrap around": (SAME, IF_NEGATIVE, ONE.replace("nsw ", "")),
    "a step that is not known": (SAME, IF_NEGATIVE, ONE.replace("%k, 1", "%k, %m")),
    "a sum that may wrap around": ("%i = add i64 %m, %k\n" + TESTED, IF_NEGATIVE, ONE),
    "what is less": ("%i = sub nsw i64 %m, %k\n" + TESTED, IF_NEGATIVE, ONE),
    "a product with a negative number": ("%i = mul nsw i64 %k, -3\n" + TESTED, IF_NEGATIVE, ONE),
    "another comparison": (SAME.replace("slt", "ne"), IF_NEGATIVE, ONE),
    "a large number": (SAME.replace("slt i64 %k, 0", "slt i64 %k, 4611686018427387904"), IF_NEGATIVE, ONE),
    "what does not change": ("%i = add nsw i64 %k, 0\n  %negative = icmp slt i64 %m, 0", IF_NEGATIVE, ONE),
}  # fmt: skip


def text_of(index: str, chosen: str, step: str) -> str:
    return ROWS.format(index=index, chosen=chosen, step=step)


def read(text: str) -> Function:
    text += "declare i32 @spmd.thread_idx.x(ptr)"
    return read_function(PrintedModule(llvm.parse_assembly(text, llvm.create_context())), "k", ir.Context())


def choice(function: Function) -> Instruction:
    (found,) = [value for value in function.instructions() if value.opcode == "select"]
    condition = found.operands[0]
    assert isinstance(condition, Instruction)
    return condition


@pytest.mark.parametrize("case", DECIDED)
def test_the_start_decides(case: str) -> None:
    function = read(text_of(*DECIDED[case]))
    assert decide_at_start(function)
    condition = choice(function)
    assert condition.opcode == ("or" if "unless" in case else "and")
    first, test = condition.operands
    assert first in function.blocks[0].instructions
    assert test in function.blocks[1].instructions
    assert not list(find_problems(function))


@pytest.mark.parametrize("case", KEPT)
def test_the_start_decides_nothing(case: str) -> None:
    function = read(text_of(*KEPT[case]))
    assert not decide_at_start(function)
    assert choice(function).opcode == "icmp"


def test_a_counter_of_fewer_bits() -> None:
    text = re.sub("i64", "i32", text_of(*DECIDED["the counter"])).replace("zext i32 %t to i32", "add i32 %t, 0")
    function = read(text)
    assert decide_at_start(function)
    assert not list(find_problems(function))


PARAMETERS = [("out", "ptr"), ("starts", "ptr"), ("n", "i64"), ("m", "i64")]
INDICES = {
    "the counter": lambda k, m: k,
    "unless it is positive": lambda k, m: k,
    "in steps of four": lambda k, m: k,
    "the one before": lambda k, m: k - 1,
    "the next unless it is positive": lambda k, m: k + 1,
    "a sum": lambda k, m: m + k,
    "a difference": lambda k, m: k - m,
    "a product": lambda k, m: 3 * k,
    "a shifted product and a sum": lambda k, m: 4 * k + m,
}
SIZE = 4096


@pytest.mark.parametrize("form", ["auto", "loop"])
@pytest.mark.parametrize("case", DECIDED)
@pytest.mark.sample(4)
def test_elements(device: Device, case: str, form: str) -> None:
    """Rows that begin below, at and above 0, and one that ends above it."""
    with config.cpu_form.scope(form):
        function = device.load(code(text_of(*DECIDED[case]), "k", PARAMETERS)).function("k")
        step = 4 if "four" in case else 1
        for first in (-700, -3, -1, 0, 1, 5):
            for m in (-2, 0, 1, 300):
                starts = first + np.array([0, 1, 1, 18, 82, 83, 200, 390, 700])
                out = to_device(np.zeros(SIZE, np.int32))
                function.launch(1, 8, pack(function.kernel, out.address, to_device(starts).address, SIZE, m))
                expected = np.zeros(SIZE, np.int32)
                for start, stop in pairwise(starts):
                    for k in range(start, stop, step):
                        expected[INDICES[case](k, m)] += 3
                np.testing.assert_array_equal(out.copy_to_host(), expected, f"from {first}, {m}")


def test_a_row_becomes_vectors() -> None:
    """What starts at no negative number accesses consecutive elements."""
    made = code(text_of(*DECIDED["the counter"]), "k", PARAMETERS)
    with config.cpu_form.scope("loop"):
        listed, _ = list_kernel(made, made.kernels[0], (64, 1, 1))
    assert re.search(r"load <\d+ x i32>", listed)
