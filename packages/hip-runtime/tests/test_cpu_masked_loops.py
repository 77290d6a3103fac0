"""Loops that lanes leave in different iterations, whose beginning runs only where some lane goes on."""

from __future__ import annotations

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.vectorize.masked_loops import MaskedLoops

COUNT, BLOCK = 300, 64

STEPS = f"""
define void @k(ptr noalias %item, ptr %numbers, ptr %found, ptr %stored, i64 %n) {{
entry:
{GLOBAL_X}
  %in = icmp slt i64 %i, %n
  br i1 %in, label %outer, label %out
outer:
  %turn = phi i64 [ 0, %entry ], [ %next.turn, %rest ]
  %total = phi i64 [ 0, %entry ], [ %more, %rest ]
  %px = getelementptr i64, ptr %numbers, i64 %i
  %first = load i64, ptr %px
  %begin = add i64 %first, %turn
  %some = icmp sgt i64 %begin, 1
  br i1 %some, label %inner, label %rest
inner:
  %number = phi i64 [ %begin, %outer ], [ %next, %latch ]
  %count = phi i64 [ 0, %outer ], [ %counted, %latch ]
  %ps = getelementptr i64, ptr %stored, i64 %i
  store i64 %number, ptr %ps
  %odd = and i64 %number, 1
  %is.odd = icmp ne i64 %odd, 0
  br i1 %is.odd, label %grow, label %halve
grow:
  %triple = mul i64 %number, 3
  %grown = add i64 %triple, 1
  br label %latch
halve:
  %half = lshr i64 %number, 1
  br label %latch
latch:
  %next = phi i64 [ %grown, %grow ], [ %half, %halve ]
  %counted = add i64 %count, 1
  %goes = icmp ne i64 %next, 1
  br i1 %goes, label %inner, label %rest
rest:
  %steps = phi i64 [ 100, %outer ], [ %counted, %latch ]
  %more = add i64 %total, %steps
  %next.turn = add i64 %turn, 1
  %again = icmp slt i64 %next.turn, BOUND
  br i1 %again, label %outer, label %done
done:
  %pf = getelementptr i64, ptr %found, i64 %i
  store i64 %more, ptr %pf
  br label %out
out:
  ret void
}}
"""
"""Adds up the steps of Collatz' sequences from ``numbers[i]`` on; a sequence that is over already counts 100."""

PARAMETERS = [("numbers", "ptr"), ("found", "ptr"), ("stored", "ptr"), ("n", "i64")]


def count(number: int) -> tuple[int, int]:
    """The steps from *number* to one, and the last number that has a step."""
    if number <= 1:
        return 100, -1
    steps, last = 0, number
    while number != 1:
        last = number
        number = 3 * number + 1 if number & 1 else number >> 1
        steps += 1
    return steps, last


@pytest.fixture
def entered(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the lanes of each masked loop leave it apart."""
    found: list[bool] = []
    leave_apart = MaskedLoops.leave_apart
    monkeypatch.setattr(
        MaskedLoops, "leave_apart", lambda *both: found.append(leave_apart(*both)) or found[-1]
    )  # fmt: skip
    return found


@pytest.mark.parametrize("width", [2, 16, 64])
@pytest.mark.parametrize(("bound", "apart"), [("3", {True, False}), ("%first", {True})])
def test_lanes_count_their_own_steps(
    device: Device, entered: list[bool], bound: str, apart: set[bool], width: int
) -> None:
    numbers = np.random.default_rng(width).integers(-3, 40, COUNT)
    numbers[:64] = -3  # no lane enters the inner loop
    numbers[64:128:7] = 27  # which takes 111 steps
    found, stored = np.zeros(COUNT, np.int64), np.full(COUNT, -1)
    arrays = [to_device(array, device=device) for array in (numbers, found, stored)]
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        function = device.load(code(STEPS.replace("BOUND", bound), "k", PARAMETERS)).function("k")
        addresses = [array.address for array in arrays]
        function.launch(-(-COUNT // BLOCK), BLOCK, pack(function.kernel, *addresses, COUNT))
    turns = [3 if bound == "3" else max(int(number), 1) for number in numbers]
    for number, times, one, last in zip(
        numbers.tolist(), turns, arrays[1].copy_to_host(), arrays[2].copy_to_host(), strict=True
    ):
        counts = [count(number + turn) for turn in range(times)]
        assert one == sum(steps for steps, _ in counts)
        assert last == next((kept for _, kept in reversed(counts) if kept >= 0), -1)
    assert set(entered) >= apart
    assert True in entered
