"""Gangs in loops that reach over the end of a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.analyses.coherent_divisions import CoherentDivision
from hip_runtime.drivers.cpu.analyses.known_ranges import constant
from hip_runtime.drivers.cpu.ir.model import Argument, Instruction
from hip_runtime.drivers.cpu.llvmir import I64
from hip_runtime.drivers.cpu.vectorize import coherent_values
from hip_runtime.drivers.cpu.vectorize.coherent_guard import CoherentGuard

GANG, BLOCK, BLOCKS = 16, 48, 3
THREADS = BLOCK * BLOCKS
PARAMETERS = [("out", "ptr"), ("sums", "ptr"), ("x", "ptr"), ("count", "i64"), ("width", "i64")]

STEPS = """
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %sums, ptr noalias %x, i64 %count, i64 %width) {{
entry:
{index}
  %some = icmp slt i64 %i, %count
  br i1 %some, label %loop, label %end
loop:
  %p = phi i64 [ %i, %entry ], [ %next, {latch} ]
  %sum = phi i64 [ 0, %entry ], [ %more, {latch} ]
  {cut}
  %y = {sign}div {kind} {n}, {w}
  %c = {sign}rem {kind} {n}, {w}
  %columns = add nsw {kind} {w}, 2
  %line = mul nsw {kind} %y, %columns
  %at = add nsw {kind} %line, %c
  %from = getelementptr i64, ptr %x, {kind} %at
  %v = load i64, ptr %from
  {behind}
  %next = add nuw nsw i64 %p, {threads}
  %on = icmp slt i64 %next, %count
  br i1 %on, label %loop, label %done
done:
  %to = getelementptr i64, ptr %sums, i64 %i
  store i64 %more, ptr %to
  br label %end
end:
  ret void
}}
"""
"""Each thread sums the elements of the input, whose rows have two columns more, times their row, and copies them."""

PLAIN = """
  %place = getelementptr i64, ptr %out, {kind} %at
  store i64 %v, ptr %place
  %weighted = mul i64 %v, {y}
  %more = add i64 %sum, %weighted
"""
BRANCH = """
  %odd = trunc {kind} %c to i1
  br i1 %odd, label %store, label %latch
store:
  %place = getelementptr i64, ptr %out, {kind} %at
  store i64 %v, ptr %place
  br label %latch
latch:
  %kept = phi i64 [ %v, %store ], [ 0, %loop ]
  %weighted = mul i64 %kept, {y}
  %more = add i64 %sum, %weighted
"""
"""Only odd columns are copied and summed."""


@pytest.fixture
def crossings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The widths of the gangs that are split."""
    found: list[int] = []
    write_crossing = coherent_values.write_crossing

    def spy(*arguments: Any) -> Any:
        found.append(arguments[-1])
        return write_crossing(*arguments)

    monkeypatch.setattr(coherent_values, "write_crossing", spy)
    return found


def write_kernel(kind: str, sign: str, *, branches: bool) -> str:
    cut, n, w = ("", "%p", "%width")
    y = "%y"
    if kind == "i32":
        cut, n, w = "%n = trunc i64 %p to i32\n  %w = trunc i64 %width to i32", "%n", "%w"
        y = "%y64"
    behind = (BRANCH if branches else PLAIN).format(kind=kind, y=y)
    if kind == "i32":
        behind = behind.replace("%weighted =", "%y64 = sext i32 %y to i64\n  %weighted =")
    latch = "%latch" if branches else "%loop"
    return STEPS.format(
        index=GLOBAL_X, latch=latch, kind=kind, sign=sign, cut=cut, n=n, w=w, behind=behind, threads=THREADS
    )


def expect(given: np.ndarray[Any, Any], width: int, count: int, *, branches: bool) -> tuple[Any, Any]:
    out, sums = np.full_like(given, -1), np.zeros(THREADS, np.int64)
    for p in range(count):
        row, column = divmod(p, width)
        if column % 2 or not branches:
            out[row, column] = given[row, column]
            sums[p % THREADS] += given[row, column] * row
    return out, sums


@pytest.mark.parametrize("branches", [False, True])
@pytest.mark.parametrize("sign", ["s", "u"])
@pytest.mark.parametrize("kind", ["i64", "i32"])
def test_lanes_before_and_behind_the_end(
    device: Device, crossings: list[int], kind: str, sign: str, branches: bool
) -> None:
    text = write_kernel(kind, sign, branches=branches)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(GANG):
        function = device.load(code(text, "k", PARAMETERS)).function("k")
        for width in (1, 3, GANG - 1, GANG, GANG + 1, 2 * GANG - 1, 50, 333, 5000):
            for count in (THREADS + 5, 1000, 1024):
                given = np.random.default_rng(width).integers(0, 99, (-(-count // width), width + 2))
                out, sums, x = to_device(np.full_like(given, -1)), to_device(np.zeros(THREADS, int)), to_device(given)
                arguments = pack(function.kernel, out.address, sums.address, x.address, count, width)
                function.launch(BLOCKS, BLOCK, arguments)
                expected, totals = expect(given, width, count, branches=branches)
                np.testing.assert_array_equal(out.copy_to_host(), expected, f"{count} elements, rows of {width}")
                np.testing.assert_array_equal(sums.copy_to_host(), totals, f"{count} elements, rows of {width}")
    assert set(crossings) == ({GANG} if kind == "i64" else set())  # numbers of 32 bits may wrap before the end


def test_divisors_that_are_the_same_number() -> None:
    """They need not be one constant, as where LLVM divided in fewer bits."""
    guard, index = CoherentGuard([], (), GANG), Argument(I64, 1, "i")
    for opcode, number in (("udiv", 18), ("urem", 18)):
        value = Instruction(I64, opcode, [index, constant(I64, number)], opcode)
        assert guard.add(CoherentDivision(value, 1))
    assert guard.crossed_row() is not None
    assert guard.add(CoherentDivision(Instruction(I64, "urem", [index, constant(I64, 20)], "other"), 1))
    assert guard.crossed_row() is None
