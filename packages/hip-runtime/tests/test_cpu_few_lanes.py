"""Kernels in which few lanes of a gang pass a check of data, and run one after another."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.vectorize import gang_function, table_growth

EXPAND = f"""
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %marks, ptr noalias %starts, ptr noalias %x, i64 %n) {{
entry:
{GLOBAL_X}
  %there = icmp slt i64 %i, %n
  br i1 %there, label %look, label %end
look:
  %at = getelementptr i32, ptr %marks, i64 %i
  %mark = load i32, ptr %at
  %marked = icmp eq i32 %mark, 3
  br i1 %marked, label %go, label %end
go:
  %p = getelementptr i64, ptr %starts, i64 %i
  %q = getelementptr i64, ptr %p, i64 1
  %first = load i64, ptr %p
  %limit = load i64, ptr %q
  br label %head
head:
  %k = phi i64 [ %first, %go ], [ %next, %body ]
  %sum = phi i32 [ 0, %go ], [ %more, %body ]
  %inside = icmp slt i64 %k, %limit
  br i1 %inside, label %body, label %store
body:
  %from = getelementptr i32, ptr %x, i64 %k
  %v = load i32, ptr %from
  %more = add i32 %sum, %v
  %next = add i64 %k, 1
  br label %head
store:
  %plus = add i32 %sum, %mark
  %to = getelementptr i32, ptr %out, i64 %i
  %old = load i32, ptr %to
  %new = add i32 %old, %plus
  store i32 %new, ptr %to
  br label %end
end:
  ret void
}}
"""
"""Each marked thread adds 3 and the sum of its row to its element."""

PARAMETERS = [("out", "ptr"), ("marks", "ptr"), ("starts", "ptr"), ("x", "ptr"), ("n", "i64")]


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether there is code for few lanes, for each gang function that is written."""
    found: list[bool] = []
    find_few = gang_function.GangFunction._find_few

    def spy(gang: gang_function.GangFunction) -> Any:
        few = find_few(gang)
        found.append(few is not None)
        return few

    monkeypatch.setattr(gang_function.GangFunction, "_find_few", spy)
    return found


@pytest.mark.parametrize("width", [2, 8, 16, 32, 64])
@pytest.mark.parametrize("block", [64, 100])
@pytest.mark.sample(2)
def test_marked_threads_expand_their_rows(device: Device, checks: list[bool], width: int, block: int) -> None:
    random = np.random.default_rng(5)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        function = device.load(code(EXPAND, "k", PARAMETERS)).function("k")
        for n in (1, 63, 500):
            starts = np.concatenate([[0], np.cumsum(random.integers(0, 9, n))])
            values = random.integers(0, 99, starts[-1] + 1, np.int32)
            for share in (0, 0.02, 0.1, 0.3, 1):
                marks = np.where(random.random(n) < share, 3, random.integers(0, 3, n)).astype(np.int32)
                sums = np.array([values[first:limit].sum() for first, limit in itertools.pairwise(starts)])
                arrays = [to_device(given) for given in (np.full(n, 1000, np.int32), marks, starts, values)]
                places = [array.address for array in arrays]
                function.launch(n // block + 1, block, pack(function.kernel, *places, n))
                expected = np.where(marks == 3, 1003 + sums, 1000)
                np.testing.assert_array_equal(arrays[0].copy_to_host(), expected, f"{n}, {share}")
    assert any(checks) is (width >= 8)


LOOK_UP = f"""
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %marks, ptr noalias %x, i64 %n) {{
entry:
{GLOBAL_X}
  %there = icmp slt i64 %i, %n
  br i1 %there, label %look, label %end
look:
  %at = getelementptr i64, ptr %marks, i64 %i
  %mark = load i64, ptr %at
  %marked = icmp sge i64 %mark, 0
  br i1 %marked, label %go, label %end
go:
  %p = getelementptr i64, ptr %x, i64 %mark
  %first = load i64, ptr %p
  %q = getelementptr i64, ptr %x, i64 %first
  %second = load i64, ptr %q
  %odd = trunc i64 %second to i1
  br i1 %odd, label %more, label %done
more:
  %twice = mul i64 %second, %first
  br label %done
done:
  %found = phi i64 [ %second, %go ], [ %twice, %more ]
  %to = getelementptr i64, ptr %out, i64 %i
  store i64 %found, ptr %to
  br label %end
end:
  ret void
}}
"""
"""Each marked thread looks up what its mark leads to."""


def test_marked_threads_look_up_something(device: Device, checks: list[bool]) -> None:
    """Without a loop, but with gathers and a branch."""
    random = np.random.default_rng(7)
    values = random.integers(0, 50, 50)
    found = np.where(values[values] % 2, values[values] * values, values[values])
    with config.cpu_form.scope("vectors"):
        parameters = [("out", "ptr"), ("marks", "ptr"), ("x", "ptr"), ("n", "i64")]
        function = device.load(code(LOOK_UP, "k", parameters)).function("k")
        for share in (0, 0.02, 0.1, 0.3, 1):
            marks = np.where(random.random(500) < share, random.integers(0, 50, 500), -1)
            arrays = [to_device(given) for given in (np.full(500, -7), marks, values)]
            function.launch(8, 64, pack(function.kernel, *(array.address for array in arrays), 500))
            np.testing.assert_array_equal(arrays[0].copy_to_host(), np.where(marks < 0, -7, found[marks]), str(share))
    assert any(checks)


def test_what_is_as_quick_for_all_lanes_runs_for_all(device: Device, checks: list[bool]) -> None:
    """Behind the check there is nothing that takes longer for more lanes."""
    text = f"""
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %marks) {{
entry:
{GLOBAL_X}
  %at = getelementptr i32, ptr %marks, i64 %i
  %mark = load i32, ptr %at
  %marked = icmp eq i32 %mark, 3
  br i1 %marked, label %go, label %end
go:
  %to = getelementptr i32, ptr %out, i64 %i
  store i32 7, ptr %to
  br label %end
end:
  ret void
}}
"""
    marks = np.arange(128, dtype=np.int32) % 5
    with config.cpu_form.scope("vectors"):
        function = device.load(code(text, "k", [("out", "ptr"), ("marks", "ptr")])).function("k")
        out, given = to_device(np.zeros(128, np.int32)), to_device(marks)
        function.launch(2, 64, pack(function.kernel, out.address, given.address))
    np.testing.assert_array_equal(out.copy_to_host(), np.where(marks == 3, 7, 0))
    assert not any(checks)


CLAIM = f"""
define void @k(ptr noalias %item, ptr %owners, ptr noalias %marks, ptr noalias %starts, ptr noalias %x, ptr %counts,
               ptr %total, i64 %n) {{{{
entry:
{GLOBAL_X}
  %there = icmp slt i64 %i, %n
  br i1 %there, label %look, label %end
look:
  %at = getelementptr i32, ptr %marks, i64 %i
  %mark = load i32, ptr %at
  %marked = icmp eq i32 %mark, 3
  br i1 %marked, label %go, label %end
go:
  %p = getelementptr i64, ptr %starts, i64 %i
  %q = getelementptr i64, ptr %p, i64 1
  %first = load i64, ptr %p
  %limit = load i64, ptr %q
  %i.short = trunc i64 %i to i32
  br label %head
head:
  %k = phi i64 [ %first, %go ], [ %next, %again ]
  %inside = icmp slt i64 %k, %limit
  br i1 %inside, label %body, label %end
body:
  %from = getelementptr i32, ptr %x, i64 %k
  %v = load i32, ptr %from
  %owner = getelementptr i32, ptr %owners, i32 %v
  %count = getelementptr i32, ptr %counts, i32 %v
  atomicrmw add ptr %count, i32 2 monotonic
  {{claim}}
again:
  %next = add i64 %k, 1
  br label %head
end:
  ret void
}}}}
"""
"""Each marked thread counts the elements of its row, and may claim them and count its claims."""


@pytest.mark.parametrize("claims", [True, False])
@pytest.mark.parametrize("width", [8, 32])
@pytest.mark.sample(2)
def test_atomic_operations_of_marked_threads(
    device: Device, checks: list[bool], monkeypatch: pytest.MonkeyPatch, width: int, claims: bool
) -> None:  # fmt: skip
    """Those whose results are used are done in memory, others in tables and totals."""
    monkeypatch.setattr(table_growth, "_ELEMENTS_PER_MISS", 1 << 20)
    claim = """
      %pair = cmpxchg ptr %owner, i32 -1, i32 %i.short monotonic monotonic
      %won = extractvalue { i32, i1 } %pair, 1
      br i1 %won, label %claimed, label %again
    claimed:
      atomicrmw add ptr %total, i32 1 monotonic
      br label %again
    """
    text = CLAIM.format(claim=claim if claims else "atomicrmw add ptr %total, i32 1 monotonic\n  br label %again")
    parameters = [*((name, "ptr") for name in ("owners", "marks", "starts", "x", "counts", "total")), ("n", "i64")]
    random, n = np.random.default_rng(6), 700
    starts = np.concatenate([[0], np.cumsum(random.integers(0, 9, n))])
    values = random.integers(0, 400, starts[-1], np.int32)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        function = device.load(code(text, "k", parameters)).function("k")
        for share in (0.02, 0.1, 0.3, 1, 1):
            marks = np.where(random.random(n) < share, 3, random.integers(0, 3, n)).astype(np.int32)
            given = [np.full(400, -1), marks, starts, values, np.zeros(400), np.zeros(1)]
            arrays = [to_device(a if a is starts else a.astype(np.int32)) for a in given]
            function.launch(7, 100, pack(function.kernel, *(array.address for array in arrays), n))
            owners, counts, total = (arrays[number].copy_to_host() for number in (0, 4, 5))
            row = np.repeat(np.arange(n), np.diff(starts))
            seen = marks[row] == 3
            np.testing.assert_array_equal(counts, 2 * np.bincount(values[seen], minlength=400))
            if claims:
                np.testing.assert_array_equal(owners >= 0, counts > 0)
                assert all(row[(values == v) & seen].tolist().count(owners[v]) for v in np.flatnonzero(counts))
                assert total[0] == np.count_nonzero(counts)
            else:
                assert total[0] == seen.sum()
    assert any(checks)
