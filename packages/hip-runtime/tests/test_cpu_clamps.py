"""Indices that are held within limits: consecutive in gangs of which no lane is at one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack

from hip_runtime import Device, config, to_device

COUNT, BLOCK, WIDTH, TABLE = 160, 40, 16, 1024
PARAMETERS = [("out", "ptr"), ("table", "ptr"), ("first", "i64"), ("limit", "i64")]
Array = np.ndarray[Any, Any]


def clamp(kind: str, operations: list[str], stride: int) -> str:
    """A kernel that loads ``table[x % TABLE]``, where ``x`` is ``first + i * stride`` after *operations*."""
    width = int(kind[1:])
    steps, value = "", "%x.0"
    for number, operation in enumerate(operations):
        limit = "%n" if number == 0 else "%m"
        steps += f"  %x.{number + 1} = call {kind} @llvm.{operation}.{kind}({kind} {value}, {kind} {limit})\n"
        value = f"%x.{number + 1}"
    cut = "" if kind == "i64" else f"  %x.0 = trunc i64 %sum to {kind}\n  %n = trunc i64 %limit to {kind}\n"
    if kind == "i64":
        cut = "  %x.0 = add i64 %sum, 0\n  %n = add i64 %limit, 0\n"
    mask = min(TABLE, 1 << width - 1) - 1
    wide = f"  %wide = add i64 {value}, 0" if kind == "i64" else f"  %wide = zext {kind} {value} to i64"
    return f"""
{"".join(f"declare {kind} @llvm.{name}.{kind}({kind}, {kind})" + chr(10) for name in dict.fromkeys(operations))}
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %table, i64 %first, i64 %limit) {{
entry:
{GLOBAL_X}
  %scaled = mul i64 %i, {stride}
  %sum = add i64 %first, %scaled
{cut}
  %m = add {kind} %n, 50
{steps}
{wide}
  %at = and i64 %wide, {mask}
  %p = getelementptr i32, ptr %table, i64 %at
  %v = load i32, ptr %p
  %q = getelementptr i32, ptr %out, i64 %i
  store i32 %v, ptr %q
  ret void
}}
"""


def expect(kind: str, operations: list[str], stride: int, first: int, limit: int, table: Array) -> Array:
    """What `clamp` stores, computed with Python's integers."""
    bits = int(kind[1:])

    def wrap(number: int, sign: str) -> int:
        number %= 1 << bits
        return number - (1 << bits) if sign == "s" and number >> (bits - 1) else number

    found = []
    for i in range(COUNT):
        x = first + i * stride
        for operation, by in zip(operations, (limit, limit + 50), strict=False):
            sign = "u" if operation.startswith("u") else "s"
            one, other = wrap(x, sign), wrap(by, sign)
            x = {"max": max(one, other), "min": min(one, other), "sub.sat": max(one - other, 0)}[operation[1:]]
        found.append(wrap(x, "u") & (min(TABLE, 1 << bits - 1) - 1))
    return table[found]


@pytest.mark.parametrize("kind", ["i16", "i32", "i64"])
@pytest.mark.parametrize("stride", [1, -1, 3])
@pytest.mark.parametrize(
    "operations", [["smax"], ["smin"], ["umax"], ["umin"], ["usub.sat"], ["smax", "smin"], ["umax", "umin"]]
)
@pytest.mark.sample(3)
def test_clamped_numbers(
    device: Device, coherent_versions: list[int], kind: str, stride: int, operations: list[str]
) -> None:
    bits = int(kind[1:])
    table = np.random.default_rng(7).integers(0, 1 << 20, TABLE, np.int32)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(WIDTH):
        function = device.load(code(clamp(kind, operations, stride), "k", PARAMETERS)).function("k")
        memory = to_device(table)
        for limit in (0, 1, 40, -3, 100, (1 << bits - 1) - 1, 1 << bits - 1, (1 << bits) - 1):
            for first in (0, 3, -20, 60, limit - 60, limit + 40, (1 << bits - 1) - 70, (1 << bits) - 70, 1 << bits - 1):
                wrapped = [(value + (1 << 63)) % (1 << 64) - (1 << 63) for value in (first, limit)]
                out = to_device(np.zeros(COUNT, np.int32))
                function.launch(COUNT // BLOCK, BLOCK, pack(function.kernel, out.address, memory.address, *wrapped))
                expected = expect(kind, operations, stride, *wrapped, table)
                np.testing.assert_array_equal(out.copy_to_host(), expected, f"{first}, {limit}")
    assert max(coherent_versions) == 1


def truncated(kind: str, stride: int) -> str:
    """A kernel that adds up ``table[j % TABLE]`` for ``j`` from ``max(x, -2)`` to ``min(x + 5, limit)``, where ``x`` is
    ``first + i * stride``, at most eight; and the first one once more if it is in the table."""
    cut = "add i64 %sum, 0" if kind == "i64" else f"trunc i64 %sum to {kind}"
    cut_limit = "add i64 %limit, 0" if kind == "i64" else f"trunc i64 %limit to {kind}"
    wide = "add i64 %j, 0" if kind == "i64" else f"zext {kind} %j to i64"
    return f"""
declare {kind} @llvm.smax.{kind}({kind}, {kind})
declare {kind} @llvm.smin.{kind}({kind}, {kind})
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %table, i64 %first, i64 %limit) {{
entry:
{GLOBAL_X}
  %scaled = mul i64 %i, {stride}
  %sum = add i64 %first, %scaled
  %x = {cut}
  %n = {cut_limit}
  %behind = add {kind} %x, 5
  %low = call {kind} @llvm.smax.{kind}({kind} %x, {kind} -2)
  %high = call {kind} @llvm.smin.{kind}({kind} %behind, {kind} %n)
  %wide.low = {wide.replace("%j", "%low")}
  %not.negative = icmp sge {kind} %low, 0
  %not.large = icmp ult i64 %wide.low, {TABLE}
  %there = select i1 %not.negative, i1 %not.large, i1 false
  br i1 %there, label %first.of.all, label %before
first.of.all:
  %p.low = getelementptr i32, ptr %table, i64 %wide.low
  %read.low = load i32, ptr %p.low
  br label %before
before:
  %v.low = phi i32 [ 0, %entry ], [ %read.low, %first.of.all ]
  %any = icmp slt {kind} %low, %high
  br i1 %any, label %loop, label %done
loop:
  %j = phi {kind} [ %low, %before ], [ %next, %loop ]
  %count = phi i32 [ 0, %before ], [ %more, %loop ]
  %total = phi i32 [ %v.low, %before ], [ %added, %loop ]
  %wide = {wide}
  %at = and i64 %wide, {TABLE - 1}
  %p = getelementptr i32, ptr %table, i64 %at
  %v = load i32, ptr %p
  %added = add i32 %total, %v
  %next = add nsw {kind} %j, 1
  %more = add i32 %count, 1
  %again = icmp slt {kind} %next, %high
  %few = icmp ult i32 %more, 8
  %both = and i1 %again, %few
  br i1 %both, label %loop, label %done
done:
  %result = phi i32 [ %v.low, %before ], [ %added, %loop ]
  %q = getelementptr i32, ptr %out, i64 %i
  store i32 %result, ptr %q
  ret void
}}
"""


def sums_within(kind: str, stride: int, first: int, limit: int, table: Array) -> list[int]:
    """What `truncated` stores, computed with Python's integers."""
    bits = int(kind[1:])

    def signed(number: int) -> int:
        return (number + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)

    found = []
    for i in range(COUNT):
        x = signed(first + i * stride)
        start, end = max(x, -2), min(signed(x + 5), signed(limit))
        places = [j % (1 << bits) % TABLE for j in range(start, min(end, start + 8))]
        places += [start] if 0 <= start < TABLE else []
        found.append(sum(int(table[place]) for place in places))
    return found


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", ["i16", "i32", "i64"])
@pytest.mark.parametrize("stride", [1, -1, 3])
@pytest.mark.parametrize("form", ["vectors", "loop"])
def test_loops_between_clamped_numbers(device: Device, kind: str, stride: int, form: str) -> None:
    bits = int(kind[1:])
    table = np.random.default_rng(7).integers(0, 1 << 20, TABLE, np.int32)
    with config.cpu_form.scope(form), config.cpu_width.scope(WIDTH):
        function = device.load(code(truncated(kind, stride), "k", PARAMETERS)).function("k")
        memory = to_device(table)
        for limit in (0, 1, 40, -3, 100, 1000, (1 << bits - 1) - 1, 1 << bits - 1):
            for first in (0, 3, -1, -18, 60, limit - 60, limit + 40, (1 << bits - 1) - 70, -(1 << bits - 1)):
                wrapped = [(value + (1 << 63)) % (1 << 64) - (1 << 63) for value in (first, limit)]
                out = to_device(np.zeros(COUNT, np.int32))
                function.launch(COUNT // BLOCK, BLOCK, pack(function.kernel, out.address, memory.address, *wrapped))
                expected = sums_within(kind, stride, *wrapped, table)
                np.testing.assert_array_equal(out.copy_to_host(), expected, f"{first}, {limit}")


COMPARED = """
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %table, i64 %first, i64 %limit) {{
entry:
{index}
  %x = add i64 %i, %first
  %y = add i64 %i, %limit
  %decided = icmp {predicate} i64 %x, %y
  br i1 %decided, label %yes, label %no
yes:
  br label %no
no:
  %v = phi i32 [ 2, %entry ], [ 1, %yes ]
  %q = getelementptr i32, ptr %out, i64 %i
  store i32 %v, ptr %q
  ret void
}}
"""


@pytest.mark.parametrize("predicate", ["eq", "ne", "slt", "sge", "ult", "uge"])
def test_numbers_that_grow_alike_are_compared_once_unless_they_wrap(device: Device, predicate: str) -> None:
    text = COMPARED.format(index=GLOBAL_X, predicate=predicate)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(WIDTH):
        function = device.load(code(text, "k", PARAMETERS)).function("k")
    compare = {
        "eq": np.equal, "ne": np.not_equal, "slt": np.less, "sge": np.greater_equal, "ult": np.less,
        "uge": np.greater_equal,
    }[predicate]  # fmt: skip
    kind: Any = np.uint64 if predicate.startswith("u") else np.int64
    edges = [0, 7, -1, -9, (1 << 63) - 1, (1 << 63) - 5, -(1 << 63), -(1 << 63) + 3]
    for first in edges:
        for limit in edges:
            out = to_device(np.zeros(COUNT, np.int32))
            function.launch(COUNT // BLOCK, BLOCK, pack(function.kernel, out.address, 0, first, limit))
            x, y = (
                (np.arange(COUNT, dtype=np.uint64) + np.uint64(one % (1 << 64))).view(kind) for one in (first, limit)
            )
            np.testing.assert_array_equal(out.copy_to_host(), np.where(compare(x, y), 1, 2), f"{first}, {limit}")


TWO = f"""
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %table, i64 %first, i64 %limit) {{
entry:
{GLOBAL_X}
  %x = add nsw i64 %first, %i
  %low = call i64 @llvm.smax.i64(i64 %x, i64 0)
  %further = add nsw i64 %x, 7
  %high = call i64 @llvm.smin.i64(i64 %further, i64 %limit)
  %at = and i64 %high, {TABLE - 1}
  %p = getelementptr i32, ptr %table, i64 %at
  %v = load i32, ptr %p
  %short = trunc i64 %low to i32
  %odd = trunc i64 %further to i32
  %more = add i32 %v, %short
  %sum = xor i32 %more, %odd
  %q = getelementptr i32, ptr %out, i64 %i
  store i32 %sum, ptr %q
  ret void
}}
"""
"""Two clamps, of which the first is no part of an address."""


def test_a_clamp_that_is_data_before_one_that_is_an_index(device: Device, coherent_versions: list[int]) -> None:
    table = np.random.default_rng(7).integers(0, 1 << 20, TABLE, np.int32)
    memory = to_device(table)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(WIDTH), config.verify_passes.scope(True):
        function = device.load(code(TWO, "k", PARAMETERS)).function("k")
        for first, limit in [(0, 1000), (-50, 1000), (3, 60), (-500, 7)]:
            out = to_device(np.zeros(COUNT, np.int32))
            arguments = pack(function.kernel, out.address, memory.address, first, limit)
            function.launch(COUNT // BLOCK, BLOCK, arguments)
            x = first + np.arange(COUNT)
            expected = (table[np.minimum(x + 7, limit) % TABLE] + np.maximum(x, 0)) ^ (x + 7)
            np.testing.assert_array_equal(out.copy_to_host(), expected, f"{first}, {limit}")
    assert max(coherent_versions) == 1
