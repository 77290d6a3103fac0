"""Elementwise functions that kernels call, of which a gang calls one vector variant."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.vectorize.vector_variants import Variants

FUNCTIONS = """
@table = internal constant [4 x i64] [i64 3, i64 -7, i64 11, i64 -5]
define i64 @rounds(i64 %x, i64 %count) noinline mustprogress nounwind {
entry:
  %none = icmp slt i64 %count, 1
  br i1 %none, label %small, label %head
head:
  %y = phi i64 [ %x, %entry ], [ %next, %head ]
  %left = phi i64 [ %count, %entry ], [ %less, %head ]
  %product = mul i64 %y, 6364136223846793005
  %shifted = lshr i64 %product, 29
  %next = xor i64 %product, %shifted
  %less = sub i64 %left, 1
  %more = icmp sgt i64 %less, 0
  br i1 %more, label %head, label %end
small:
  %low = and i64 %x, 3
  %place = getelementptr [4 x i64], ptr @table, i64 0, i64 %low
  %constant = load i64, ptr %place
  br label %end
end:
  %result = phi i64 [ %next, %head ], [ %constant, %small ]
  ret i64 %result
}
define i64 @divide(i64 %x, i64 %by) noinline nounwind {
  %quotient = udiv i64 %x, %by
  ret i64 %quotient
}
define i1 @is_odd(i64 %x) noinline nounwind {
  %low = trunc i64 %x to i1
  ret i1 %low
}
define i64 @counted(ptr %calls, i64 %x) noinline nounwind {
  %old = atomicrmw add ptr %calls, i64 1 monotonic
  %next = add i64 %x, 1
  ret i64 %next
}
"""

KERNEL = f"""
define void @k(ptr noalias %item, ptr %x, ptr %out, ptr %calls, i64 %n) {{
entry:
{GLOBAL_X}
  %in = icmp slt i64 %i, %n
  br i1 %in, label %do, label %end
do:
  %place = getelementptr i64, ptr %x, i64 %i
  %v = load i64, ptr %place
  %there = getelementptr i64, ptr %out, i64 %i
  %two = and i64 %v, 7
  %first = call i64 @rounds(i64 %v, i64 %two)
  %same = call i64 @rounds(i64 %n, i64 3)
  %sum = xor i64 %first, %same
  %odd = call i1 @is_odd(i64 %sum)
  br i1 %odd, label %again, label %join
again:
  %many = ashr i64 %v, 40
  %second = call i64 @rounds(i64 %sum, i64 %many)
  %divisor = and i64 %sum, 3
  %third = call i64 @divide(i64 %second, i64 %divisor)
  %counted = call i64 @counted(ptr %calls, i64 %third)
  br label %join
join:
  %all = phi i64 [ %sum, %do ], [ %counted, %again ]
  store i64 %all, ptr %there
  br label %end
end:
  ret void
}}
"""

TABLE = (3, -7, 11, -5)
MASK = (1 << 64) - 1


def rounds(x: int, count: int) -> int:
    if count < 1:
        return TABLE[x & 3] & MASK
    for _ in range(count):
        x = x * 6364136223846793005 & MASK
        x ^= x >> 29
    return x


def expect(values: list[int], n: int) -> tuple[list[int], int]:
    """What the threads write, and how many call `counted`."""
    sums = [rounds(value & MASK, value & 7) ^ rounds(n, 3) for value in values]
    found = [
        (rounds(one, value >> 40) // (one & 3) + 1) & MASK if one & 1 else one
        for one, value in zip(sums, values, strict=True)
    ]
    return found, sum(one & 1 for one in sums)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, int]]:
    """Which variants were asked for, and how often."""
    asked: Counter[tuple[str, int]] = Counter()
    find = Variants.find

    def note(self: Variants, function: Any, width: int) -> Any:
        asked[function.name, width] += 1
        return find(self, function, width)

    monkeypatch.setattr(Variants, "find", note)
    return asked


@pytest.mark.parametrize(("form", "width"), [("vectors", 2), ("vectors", 16), ("regions", None), ("loop", None)])
@pytest.mark.sample(2)
def test_lanes_call_one_variant_of_what_only_computes(
    device: Device, found: Counter[tuple[str, int]], form: str, width: int | None
) -> None:
    values = np.random.default_rng(5).integers(0, 2**40, 90) | np.random.default_rng(6).integers(0, 9, 90) << 40
    expected, calls = expect(values.tolist(), 90)
    x, out = to_device(values, device=device), to_device(np.zeros(90, np.uint64), device=device)
    counter = to_device(np.zeros(1, np.int64), device=device)
    with config.cpu_form.scope(form), config.cpu_width.scope(width):
        kinds = [("x", "ptr"), ("out", "ptr"), ("calls", "ptr"), ("n", "i64")]
        function = device.load(code(KERNEL + FUNCTIONS, "k", kinds)).function("k")
        function.launch(3, 37, pack(function.kernel, x.address, out.address, counter.address, 90))
    assert out.copy_to_host().tolist() == expected
    assert counter.copy_to_host().tolist() == [calls]
    assert {name for name, _ in found} == ({"rounds", "is_odd", "divide"} if form == "vectors" else set())
    assert {lanes for _, lanes in found} <= {width}
