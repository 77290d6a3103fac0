"""Small branches whose sides are both computed, compared with Python."""

from __future__ import annotations

import random
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir
from spmd_kernels import GLOBAL_X, code, pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.ir.model import Function
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.passes.if_conversion import convert_ifs

THREADS = 96


class Program:
    """Nested branches and switches on three loaded numbers, and what Python computes."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.blocks = 0
        self.values = 0
        self.lines: list[str] = []
        names = {name: (lambda v, n=number: v[n]) for number, name in enumerate(("%x0", "%x1", "%x2"))}
        self.result, self.formula, self.last = self._write(names, 3, "entry")

    def _name(self, prefix: str) -> str:
        self.values += 1
        return f"{prefix}{self.values}"

    def _compute(self, known: dict[str, Any]) -> dict[str, Any]:
        """Some arithmetic on numbers that are *known*."""
        for _ in range(self.random.randint(0, 3)):
            (left, one), (right, other) = (self.random.choice(list(known.items())) for _ in range(2))
            opcode, operation = self.random.choice([
                ("add", lambda a, b: a + b), ("sub", lambda a, b: a - b), ("xor", lambda a, b: a ^ b),
                ("mul", lambda a, b: a * b), ("add nsw", lambda a, b: a + b),
            ])  # fmt: skip
            name = self._name("%v")
            self.lines.append(f"{name} = {opcode} i64 {left}, {right}")
            formula = lambda v, one=one, other=other, operation=operation: operation(one(v), other(v))  # noqa: E731
            known = {**known, name: formula}
        return known

    def _write(self, known: dict[str, Any], depth: int, block: str) -> tuple[str, Any, str]:
        """Code that ends in a value: its name, what it is, and the block that it is in."""
        known = self._compute(known)
        if not depth or self.random.random() < 0.3:
            name, formula = self.random.choice(list(known.items())[-3:])
            return name, formula, block
        tested, number = self.random.choice(list(known.items()))
        is_switch = self.random.random() < 0.3
        cases = self.random.sample(range(-2, 4), self.random.randint(1, 3)) if is_switch else [0]
        labels = [self._name("side") for _ in range(len(cases) + 1)]
        join = self._name("join")
        limit = self.random.randint(-2, 3)
        if is_switch:
            pairs = " ".join(f"i64 {case}, label %{label}" for case, label in zip(cases, labels[1:], strict=True))
            self.lines.append(f"switch i64 {tested}, label %{labels[0]} [ {pairs} ]")
        else:
            condition = self._name("%c")
            self.lines += [
                f"{condition} = icmp slt i64 {tested}, {limit}",
                f"br i1 {condition}, label %{labels[1]}, label %{labels[0]}",
            ]
        arms = []
        for label in labels:
            self.lines.append(f"{label}:")
            arms.append(self._write(known, depth - 1, label))
            self.lines.append(f"br label %{join}")
        result = self._name("%r")
        incoming = ", ".join(f"[ {value}, %{source} ]" for value, _, source in arms)
        self.lines += [f"{join}:", f"{result} = phi i64 {incoming}"]

        def choose(v: list[int]) -> int:
            tested_number = number(v)
            if is_switch:
                place = 1 + cases.index(tested_number) if tested_number in cases else 0
            else:
                place = int(tested_number < limit)
            return int(arms[place][1](v))

        return result, choose, join

    def text(self) -> str:
        loads = "\n".join(
            f"%p{number} = getelementptr [3 x i64], ptr %in, i64 %i, i64 {number}\n"
            f"%x{number} = load i64, ptr %p{number}"
            for number in range(3)
        )
        body = "\n".join(self.lines)
        return f"""
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %in) {{
entry:
{GLOBAL_X}
{loads}
{body}
  %po = getelementptr i64, ptr %out, i64 %i
  store i64 {self.result}, ptr %po
  ret void
}}
"""


@pytest.mark.sample(10)
@pytest.mark.parametrize("seed", range(100))
def test_random_branches(device: Device, seed: int) -> None:
    program = Program(seed)
    values = np.random.default_rng(seed).integers(-4, 5, (THREADS, 3))
    there = [to_device(array) for array in (np.zeros(THREADS, np.int64), values)]
    with config.cpu_form.scope("vectors"):
        function = device.load(code(program.text(), "k", [("out", "ptr"), ("in", "ptr")])).function("k")
        function.launch(2, THREADS // 2, pack(function.kernel, *(array.address for array in there)))
    np.testing.assert_array_equal(there[0].copy_to_host(), [program.formula(row.tolist()) for row in values])


def read(body: str) -> Function:
    text = f"define void @k(i64 %x, i64 %y, ptr %p) {{\nentry:\n  %c = icmp slt i64 %x, 3\n{body}\n}}\n"
    return read_function(PrintedModule(llvm.parse_assembly(text, llvm.create_context())), "k", ir.Context())


def convert(body: str) -> tuple[bool, list[str], list[str]]:
    """Whether anything was converted, and the blocks and the opcodes that are left."""
    function = read(body)
    found = convert_ifs(function, [block for block in function.blocks if len(set(block.successors)) > 1])
    return found, [block.name for block in function.blocks], [value.opcode for value in function.instructions()]


DIAMOND = """
  br i1 %c, label %yes, label %no
yes:
  {yes}
  br label %join
no:
  %b = sub i64 %x, 1
  br label %join
join:
  %r = phi i64 [ %a, %yes ], [ %b, %no ]
  store i64 %r, ptr %p
  ret void
"""


def test_a_diamond_becomes_one_block() -> None:
    found, blocks, opcodes = convert(DIAMOND.format(yes="%a = add i64 %x, 1"))
    assert (found, blocks) == (True, ["entry"])
    assert opcodes == ["icmp", "add", "sub", "select", "store", "ret"]


@pytest.mark.parametrize("yes", [
    "%a = load i64, ptr %p",
    "%a = sdiv i64 %x, %y",
    "%a = add i64 %x, 1\n store i64 1, ptr %p",
    "%t0 = add i64 %x, 1\n" + "".join(f"%t{n} = mul i64 %t{n - 1}, %x\n" for n in range(1, 10)) + "%a = add i64 %t9, 1",
])  # fmt: skip
def test_what_may_fault_or_takes_long_stays(yes: str) -> None:
    found, blocks, _ = convert(DIAMOND.format(yes=yes))
    assert (found, blocks) == (False, ["entry", "yes", "no", "join"])


def test_a_side_that_others_enter_stays() -> None:
    found, _, _ = convert("""
  br i1 %c, label %yes, label %no
no:
  %d = icmp slt i64 %y, 3
  br i1 %d, label %yes, label %join
yes:
  br label %join
join:
  %r = phi i64 [ 1, %yes ], [ 2, %no ]
  store i64 %r, ptr %p
  ret void
""")
    assert not found


def test_only_divergent_branches() -> None:
    function = read(DIAMOND.format(yes="%a = add i64 %x, 1"))
    assert not convert_ifs(function, [])


def test_cases_of_a_switch() -> None:
    """Those that lead to the join at once are what the join has from the block itself."""
    found, blocks, opcodes = convert("""
  switch i64 %x, label %other [ i64 1, label %one i64 2, label %join i64 5, label %one ]
one:
  %a = add i64 %y, 1
  br label %join
other:
  br label %join
join:
  %r = phi i64 [ %a, %one ], [ 7, %entry ], [ 9, %other ]
  store i64 %r, ptr %p
  ret void
""")
    assert (found, blocks) == (True, ["entry"])
    assert opcodes == ["icmp", "add", "icmp", "icmp", "icmp", "select", "select", "select", "store", "ret"]


def test_a_loop_keeps_its_head() -> None:
    found, blocks, _ = convert("""
  br label %head
head:
  %n = phi i64 [ 0, %entry ], [ %m, %latch ]
  %d = icmp slt i64 %n, %y
  br i1 %d, label %odd, label %even
odd:
  %a = add i64 %n, 1
  br label %latch
even:
  %b = add i64 %n, 2
  br label %latch
latch:
  %m = phi i64 [ %a, %odd ], [ %b, %even ]
  %e = icmp slt i64 %m, 100
  br i1 %e, label %head, label %done
done:
  store i64 %n, ptr %p
  ret void
""")
    assert (found, blocks) == (True, ["entry", "head", "done"])


def test_values_of_kernels_are_those_of_python(device: Device) -> None:
    """What a side computes may overflow where its lane is not on it."""
    text = f"""
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %in) {{
entry:
{GLOBAL_X}
  %p = getelementptr i32, ptr %in, i64 %i
  %x = load i32, ptr %p
  %small = icmp slt i32 %x, 1000
  br i1 %small, label %yes, label %no
yes:
  %far = mul nsw i32 %x, 1000000
  %more = add nsw i32 %far, 7
  br label %join
no:
  %twice = shl nuw i32 %x, 1
  br label %join
join:
  %r = phi i32 [ %more, %yes ], [ %twice, %no ]
  %q = getelementptr i32, ptr %out, i64 %i
  store i32 %r, ptr %q
  ret void
}}
"""
    values = np.random.default_rng(1).choice([1, 5, -2000, 3000, 2**30 - 1, 999, 1000], THREADS).astype(np.int32)
    values[values == -2000] = 2
    there = [to_device(array) for array in (np.zeros_like(values), values)]
    with config.cpu_form.scope("vectors"):
        function = device.load(code(text, "k", [("out", "ptr"), ("in", "ptr")])).function("k")
        function.launch(2, THREADS // 2, pack(function.kernel, *(array.address for array in there)))
    expected = np.where(values < 1000, values.astype(np.int64) * 1000000 + 7, values.astype(np.int64) * 2)
    np.testing.assert_array_equal(there[0].copy_to_host(), expected.astype(np.int32))
