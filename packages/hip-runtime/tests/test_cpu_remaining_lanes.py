"""Loops that lanes leave one after another, of which the last few lanes run the rest alone."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.analyses import loops_left_late
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block
from hip_runtime.drivers.cpu.vectorize import gang_function
from hip_runtime.drivers.cpu.vectorize.masked_loops import FewRemain
from hip_runtime.drivers.cpu.vectorize.predicated_function import PredicatedFunction

SEARCH = f"""
define void @k(ptr noalias %item, ptr noalias %x, ptr noalias %out, ptr noalias %kinds, ptr noalias %seen, i64 %n) {{
entry:
{GLOBAL_X}
  %there = icmp slt i64 %i, %n
  br i1 %there, label %begin, label %end
begin:
  %px = getelementptr i64, ptr %x, i64 %i
  %number = load i64, ptr %px
  %small = trunc i64 %number to i8
  %back = sub i64 0, %i
  br label %head
head:
  %by = phi i64 [ 2, %begin ], [ %next, %latch ]
  %along = phi i64 [ %i, %begin ], [ %farther, %latch ]
  %sum = phi float [ 0.0, %begin ], [ %more, %latch ]
  %short = phi i8 [ %small, %begin ], [ %shifted, %latch ]
  %flips = phi i1 [ false, %begin ], [ %flipped, %latch ]
  %place = phi ptr [ %seen, %begin ], [ %beyond, %latch ]
  %square = mul i64 %by, %by
  %over = icmp sgt i64 %square, %number
  br i1 %over, label %prime, label %body
body:
  %rest = srem i64 %number, %by
  %divides = icmp eq i64 %rest, 0
  br i1 %divides, label %found, label %check
check:
  %wide = sitofp i64 %rest to float
  %more = fadd float %sum, %wide
  %is.seven = icmp eq i64 %rest, 7
  br i1 %is.seven, label %seven, label %latch
latch:
  %next = add i64 %by, 1
  %farther = add i64 %along, 3
  %shifted = shl i8 %short, 1
  %flipped = xor i1 %flips, true
  %beyond = getelementptr i8, ptr %place, i64 1
  br label %head
prime:
  %po = getelementptr float, ptr %out, i64 %i
  store float %sum, ptr %po
  br label %end
found:
  br label %join
seven:
  %late = fadd float %more, 1000.0
  br label %join
join:
  %kind = phi i64 [ 2, %found ], [ 3, %seven ]
  %total = phi float [ %sum, %found ], [ %late, %seven ]
  %flip = zext i1 %flips to i64
  %byte = zext i8 %short to i64
  %here = ptrtoint ptr %place to i64
  %there.first = ptrtoint ptr %seen to i64
  %distance = sub i64 %here, %there.first
  %t1 = add i64 %kind, %flip
  %t2 = mul i64 %byte, 1000
  %t3 = add i64 %t1, %t2
  %t4 = add i64 %along, %back
  %t5 = mul i64 %t4, 1000000
  %t6 = add i64 %t3, %t5
  %t7 = mul i64 %distance, 10000000000
  %t8 = add i64 %t6, %t7
  %whole = fptosi float %total to i64
  %t9 = shl i64 %whole, 48
  %t10 = add i64 %t8, %t9
  %pk = getelementptr i64, ptr %kinds, i64 %i
  store i64 %t10, ptr %pk
  br label %end
end:
  ret void
}}
"""
"""Divides by two, three ... up to the square root, until a number divides or leaves seven. Three ways lead out of the
loop, to two places; behind it values of six types are live, two of which grow alike in all lanes."""

PARAMETERS = [("x", "ptr"), ("out", "ptr"), ("kinds", "ptr"), ("seen", "ptr"), ("n", "i64")]


def search(number: int) -> tuple[int, float]:
    """What a thread stores, one step after another."""
    steps, total, byte = 0, 0.0, number & 0xFF
    for by in itertools.count(2):
        if by * by > number:
            return 0, total
        rest = number % by
        kind = 2 if rest == 0 else 3
        total += rest
        if rest in (0, 7):
            break
        steps, byte = steps + 1, (byte << 1) & 0xFF
    whole = int(total) + (1000 if kind == 3 else 0)
    return kind + steps % 2 + 1000 * byte + 3_000_000 * steps + 10_000_000_000 * steps + (whole << 48), 0.0


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many lanes are few, for each loop of which the rest is written for single threads."""
    found: list[int] = []
    write = gang_function.write_remaining

    def spy(function: PredicatedFunction, few: FewRemain, *given: Any) -> None:
        write(function, few, *given)
        found.append(few.count)

    monkeypatch.setattr(gang_function, "write_remaining", spy)
    return found


@pytest.mark.parametrize("few", [2, 5, 64, None], ids=lambda few: "estimated" if few is None else str(few))
@pytest.mark.parametrize("width", [4, 16, 32, 64])
@pytest.mark.parametrize("block", [64, 100])
@pytest.mark.sample(6)
def test_the_last_lanes_go_on_alone(
    device: Device, written: list[int], monkeypatch: pytest.MonkeyPatch, few: int | None, width: int, block: int
) -> None:  # fmt: skip
    if few is not None:
        monkeypatch.setattr(loops_left_late, "lanes_worth_taking_out", lambda loops, *_: [few for _ in loops])
    n = 777
    numbers = np.random.default_rng(4).integers(2, 5000, n)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        function = device.load(code(SEARCH, "k", PARAMETERS)).function("k")
        given = [numbers, np.zeros(n, np.float32), np.zeros(n, np.int64), np.zeros(100, np.uint8)]
        arrays = [to_device(array) for array in given]
        function.launch(-(-n // block), block, pack(function.kernel, *(array.address for array in arrays), n))
    kinds, totals = zip(*map(search, numbers.tolist()), strict=True)
    np.testing.assert_array_equal(arrays[2].copy_to_host(), kinds)
    np.testing.assert_array_equal(arrays[1].copy_to_host(), np.array(totals, np.float32))
    if few is not None:
        assert written
        assert set(written) == {few}


NESTED = f"""
define void @k(ptr noalias %item, ptr noalias %x, ptr noalias %out, i64 %n) {{
entry:
{GLOBAL_X}
  %there = icmp slt i64 %i, %n
  br i1 %there, label %begin, label %end
begin:
  %px = getelementptr i64, ptr %x, i64 %i
  %first = load i64, ptr %px
  br label %outer
outer:
  %turn = phi i64 [ 0, %begin ], [ %next.turn, %rest ]
  %number = phi i64 [ %first, %begin ], [ %left, %rest ]
  %sum = phi i64 [ 0, %begin ], [ %sum.next, %rest ]
  br label %inner
inner:
  %by = phi i64 [ 2, %outer ], [ %by.next, %latch ]
  %square = mul i64 %by, %by
  %over = icmp sgt i64 %square, %number
  br i1 %over, label %done, label %body
body:
  %modulo = srem i64 %number, %by
  %divides = icmp eq i64 %modulo, 0
  br i1 %divides, label %rest, label %latch
latch:
  %by.next = add i64 %by, 1
  br label %inner
rest:
  %left = sdiv i64 %number, %by
  %factor = mul i64 %by, %turn
  %sum.next = add i64 %sum, %factor
  %next.turn = add i64 %turn, 1
  %po = getelementptr i64, ptr %out, i64 %i
  store i64 %sum.next, ptr %po
  br label %outer
done:
  %plus = add i64 %sum, %number
  %pd = getelementptr i64, ptr %out, i64 %i
  store i64 %plus, ptr %pd
  br label %end
end:
  ret void
}}
"""
"""The prime factors of a number: the outer loop is left from the inner one, which is left for the next factor, too."""


def add_factors(number: int) -> int:
    """What a thread adds up: each factor but the last times its place, and the last one."""
    total, turn, by = 0, 0, 2
    while by * by <= number:
        if number % by == 0:
            number, total, turn, by = number // by, total + by * turn, turn + 1, 2
        else:
            by += 1
    return total + number


@pytest.mark.parametrize("loops", ["outer", "inner"])
@pytest.mark.parametrize("few", [2, 5, 64])
@pytest.mark.parametrize("width", [8, 32, 64])
@pytest.mark.sample(6)
def test_loops_in_loops(
    device: Device, written: list[int], monkeypatch: pytest.MonkeyPatch, loops: str, few: int, width: int
) -> None:  # fmt: skip
    """A lane runs the rest of the outer loop alone, or of an iteration's inner loop, which it gets to again."""

    def choose(given: list[frozenset[Block]], shapes: VectorShapes, *_: Any) -> list[int]:
        inner = [all(loop <= other for other in shapes.order.headers() if loop & other) for loop in given]
        return [few if is_inner is (loops == "inner") else 0 for is_inner in inner]

    monkeypatch.setattr(loops_left_late, "lanes_worth_taking_out", choose)
    n = 500
    numbers = np.random.default_rng(14).integers(2, 5000, n)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        function = device.load(code(NESTED, "k", [("x", "ptr"), ("out", "ptr"), ("n", "i64")])).function("k")
        given, out = to_device(numbers), to_device(np.zeros(n, np.int64))
        function.launch(8, 64, pack(function.kernel, given.address, out.address, n))
    np.testing.assert_array_equal(out.copy_to_host(), list(map(add_factors, numbers.tolist())))
    assert written
    assert set(written) == {few}


COUNT = f"""
define void @k(ptr noalias %item, ptr noalias %x, ptr noalias %out, i64 %n) {{{{
entry:
{GLOBAL_X}
  %px = getelementptr i64, ptr %x, i64 %i
  %limit = load i64, ptr %px
  br label %head
head:
  %k = phi i64 [ {{first}}, %entry ], [ %next, %head ]
  %sum = phi i64 [ 0, %entry ], [ %more, %head ]
  %pk = getelementptr i64, ptr %x, i64 %{{place}}
  %v = load {{volatile}} i64, ptr %pk
  %more = add i64 %sum, %v
  %next = add i64 %k, 1
  %again = icmp slt i64 %next, %{{bound}}
  br i1 %again, label %head, label %done
done:
  %po = getelementptr i64, ptr %out, i64 %i
  store i64 %more, ptr %po
  ret void
}}}}
"""


@pytest.mark.parametrize(
    ("first", "place", "bound", "volatile", "late"),
    [
        ("0", "sum", "limit", "", True),
        ("0", "sum", "limit", "volatile", False),  # others may store there meanwhile
        ("%i", "sum", "n", "", False),  # only a gang that reaches over the end is left one lane after another
    ],
)  # fmt: skip
def test_which_loops_are_left_late(
    device: Device, written: list[int], first: str, place: str, bound: str, volatile: str, late: bool
) -> None:  # fmt: skip
    parameters = [("x", "ptr"), ("out", "ptr"), ("n", "i64")]
    text = COUNT.format(first=first, place=place, bound=bound, volatile=volatile)
    n = 128
    x = np.random.default_rng(8).integers(0, 9, n) % 2 * np.arange(n) // 64
    with config.cpu_form.scope("vectors"):
        function = device.load(code(text, "k", parameters)).function("k")
        given, out = to_device(x), to_device(np.zeros(n, np.int64))
        function.launch(2, 64, pack(function.kernel, given.address, out.address, n))
    expected = []
    for i in range(n):
        total, k, limit = 0, i if first == "%i" else 0, n if bound == "n" else x[i]
        while True:
            total, k = total + x[total], k + 1
            if k >= limit:
                break
        expected.append(total)
    np.testing.assert_array_equal(out.copy_to_host(), expected)
    assert bool(written) is late


ROWS = f"""
define void @k(ptr noalias %item, ptr %ends, ptr %places, ptr %x, ptr %out, ptr %count) {{{{
entry:
{GLOBAL_X}
  %pe = getelementptr i64, ptr %ends, i64 %i
  %begin = load i64, ptr %pe
  %after = getelementptr i64, ptr %pe, i64 1
  %px = getelementptr {{kind}}, ptr %x, i64 %i
  %v = load {{kind}}, ptr %px
  %stop = load i64, ptr %after
  %some = icmp slt i64 %begin, %stop
  br i1 %some, label %head, label %done
head:
  %k = phi i64 [ %begin, %entry ], [ %next, %latch ]
  %pp = getelementptr i64, ptr %places, i64 %k
  %place = load i64, ptr %pp
  %po = getelementptr {{kind}}, ptr %out, i64 %place
  {{update}}
latch:
  %next = add i64 %k, 1
  %end = load i64, ptr %after
  %more = icmp slt i64 %next, %end
  br i1 %more, label %head, label %done
done:
  ret void
}}}}
"""
"""A thread updates the elements that a row of places tells."""

REPLACE = """%seen = load atomic i64, ptr %po monotonic, align 8
  br label %again
again:
  %old = phi i64 [ %seen, %head ], [ %found, %again ]
  %less = icmp slt i64 %old, %v
  %new = select i1 %less, i64 %v, i64 %old
  %pair = cmpxchg ptr %po, i64 %old, i64 %new monotonic monotonic
  %found = extractvalue { i64, i1 } %pair, 0
  %done.so = extractvalue { i64, i1 } %pair, 1
  br i1 %done.so, label %latch, label %again"""


@pytest.mark.parametrize("few", [2, 64])
@pytest.mark.parametrize("width", [8, 32])
@pytest.mark.parametrize(("kind", "update", "expected"), [
    ("i64", "atomicrmw add ptr %po, i64 %v monotonic\n  br label %latch", np.add),
    ("double", "atomicrmw fadd ptr %po, double %v monotonic\n  br label %latch", np.add),
    ("i64", "atomicrmw max ptr %po, i64 %v monotonic\n  br label %latch", np.maximum),
    ("i64", REPLACE, np.maximum),
], ids=["add", "fadd", "max", "replace"])  # fmt: skip
@pytest.mark.sample(6)
def test_rows_of_updates(
    device: Device, written: list[int], monkeypatch: pytest.MonkeyPatch,
    few: int, width: int, kind: str, update: str, expected: np.ufunc,
) -> None:  # fmt: skip
    monkeypatch.setattr(loops_left_late, "lanes_worth_taking_out", lambda loops, *_: [few for _ in loops])
    generator = np.random.default_rng(3)
    n, count = 640, 90
    ends = np.concatenate([[0], np.cumsum(generator.geometric(0.2, n) - 1)])
    places = generator.integers(0, count, ends[-1])
    x = generator.integers(-50, 50, n).astype(np.float64 if kind == "double" else np.int64)
    parameters = [(name, "ptr") for name in ("ends", "places", "x", "out", "count")]
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        function = device.load(code(ROWS.format(kind=kind, update=update), "k", parameters)).function("k")
        arrays = [to_device(array) for array in (ends, places, x, np.zeros(count, x.dtype), np.zeros(1, np.int64))]
        function.launch(10, 64, pack(function.kernel, *(array.address for array in arrays)))
    found = np.zeros(count, x.dtype)
    expected.at(found, places, np.repeat(x, np.diff(ends)))
    np.testing.assert_array_equal(arrays[3].copy_to_host(), found)
    assert written
    assert set(written) == {few}


@pytest.mark.parametrize("update", [
    "%n = atomicrmw add ptr %count, i64 1 monotonic\n  br label %latch",
    "atomicrmw add ptr %po, i64 %v seq_cst\n  br label %latch",
    "atomicrmw volatile add ptr %po, i64 %v monotonic\n  br label %latch",
    "%n = load atomic i64, ptr %count monotonic, align 8\n  store i64 %n, ptr %po\n  br label %latch",
], ids=["combined", "ordered", "volatile", "for all"])  # fmt: skip
def test_what_lanes_do_together_is_not_done_apart(
    device: Device, written: list[int], monkeypatch: pytest.MonkeyPatch, update: str
) -> None:  # fmt: skip
    monkeypatch.setattr(loops_left_late, "lanes_worth_taking_out", lambda loops, *_: [9 for _ in loops])
    parameters = [(name, "ptr") for name in ("ends", "places", "x", "out", "count")]
    with config.cpu_form.scope("vectors"):
        function = device.load(code(ROWS.format(kind="i64", update=update), "k", parameters)).function("k")
        arrays = [to_device(np.zeros(65, np.int64)) for _ in parameters]
        function.launch(1, 64, pack(function.kernel, *(array.address for array in arrays)))
    assert written == []
