"""Barriers that nobody needs if gangs run in order, and those that stay."""

from __future__ import annotations

import numpy as np
import pytest
from spmd_blocks import kernel
from spmd_kernels import pack
from test_cpu_printer import read

from hip_runtime import Device, to_device
from hip_runtime.drivers.cpu.regions.formation import RegionGraph, cut_at_sync_points
from hip_runtime.drivers.cpu.regions.needless_barriers import drop_needless_barriers

HEADER = """
declare void @spmd.barrier(ptr) convergent
declare i32 @spmd.thread_idx.x(ptr)
declare ptr @spmd.shared.s.4096.16(ptr)
declare ptr @spmd.shared.u.4096.16(ptr)
define void @k(ptr %item, ptr %x, ptr %y, i64 %n) {
entry:
  %s = call ptr @spmd.shared.s.4096.16(ptr %item)
  %u = call ptr @spmd.shared.u.4096.16(ptr %item)
  %t = call i32 @spmd.thread_idx.x(ptr %item)
  %i = zext nneg i32 %t to i64
"""
WAIT = "call void @spmd.barrier(ptr %item)"


def cut(*lines: str) -> RegionGraph:
    return cut_at_sync_points(read(HEADER + "\n".join(f"  {line}" for line in (*lines, "ret void")) + "\n}"))


def drop(graph: RegionGraph, threads: int = 64) -> int:
    """How many barriers of *graph* go."""
    sizes = {"i32": 4, "i64": 8, "i8": 1, "<2 x i32>": 8}
    left = drop_needless_barriers(graph, "x", threads, lambda kind: sizes[str(kind)])
    assert any(region.ordered for region in left.regions) == (len(left.points) < len(graph.points))
    return len(graph.points) - len(left.points)


def place(name: str, base: str, ahead: int, scale: int = 4) -> list[str]:
    """The address of the element *ahead* of the thread's own, as *name*."""
    return [
        f"%{name}.own = getelementptr i8, ptr {base}, i64 {ahead * 4}",
        f"%{name}.i = mul i64 %i, {scale}",
        f"%{name} = getelementptr i8, ptr %{name}.own, i64 %{name}.i",
    ]


def read_and_store(reads: int, stores: int, *, base: str = "%s", into: str = "%s", scale: int = 4) -> list[str]:
    return [
        *place("p", base, reads, scale), "%v = load i32, ptr %p", WAIT,
        *place("q", into, stores, scale), "store i32 %v, ptr %q",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("reads", "stores", "goes"), [(0, 0, 1), (1, 0, 1), (7, 0, 1), (1, 1, 1), (-1, 0, 0), (0, 1, 0), (-3, 5, 0)]
)
def test_what_is_stored_must_be_behind_what_later_threads_read(reads: int, stores: int, goes: int) -> None:
    assert drop(cut(*read_and_store(reads, stores))) == goes


@pytest.mark.parametrize("scale", [4, 8, 12, 2, 0, -4])
def test_threads_must_not_access_the_same_bytes(scale: int) -> None:
    assert drop(cut(*read_and_store(1, 0, scale=scale))) == (scale > 0)
    assert drop(cut(*read_and_store(0, 0, scale=scale))) == (scale >= 4)


def test_arguments_may_be_the_same_array() -> None:
    assert drop(cut(*read_and_store(1, 0, base="%x", into="%x"))) == 1
    assert drop(cut(*read_and_store(1, 0, base="%x", into="%y"))) == 0
    assert drop(cut(*read_and_store(-1, 0, base="%x", into="%s"))) == 1
    assert drop(cut(*read_and_store(-1, 0, base="%u", into="%s"))) == 1


def test_what_others_have_stored_is_read_behind_a_barrier() -> None:
    stored = [*place("p", "%s", 0), "store i32 7, ptr %p", WAIT]
    assert drop(cut(*stored, *place("q", "%s", 0), "%v = load i32, ptr %q")) == 1
    assert drop(cut(*stored, *place("q", "%s", 1), "%v = load i32, ptr %q")) == 0
    assert drop(cut(*stored, *place("q", "%s", -1), "%v = load i32, ptr %q")) == 0
    assert drop(cut(*stored, "%v = load i32, ptr %s")) == 0


@pytest.mark.parametrize(
    "line",
    [
        "fence seq_cst", "%a = atomicrmw add ptr %x, i32 1 monotonic", "%a = load volatile i32, ptr %x",
        "%a = load atomic i32, ptr %x monotonic, align 4", "store volatile i32 1, ptr %x", "call void @other()",
    ],
)  # fmt: skip
def test_barriers_beside_what_others_may_notice_stay(line: str) -> None:
    lines = read_and_store(1, 0)
    at = lines.index(WAIT)
    for place_of_line in (at, at + 1):
        assert drop(cut(*lines)) == 1
        graph = cut_with_call(*lines[:place_of_line], line, *lines[place_of_line:])
        assert drop(graph) == 0


def cut_with_call(*lines: str) -> RegionGraph:
    body = "\n".join(f"  {line}" for line in (*lines, "ret void"))
    return cut_at_sync_points(read(f"declare void @other()\n{HEADER}{body}\n}}"))


LOOP = """
  br label %loop
loop:
  %k = phi i64 [ 1, %entry ], [ %next, %loop ]
  %at = add i64 %i, BEFORE
  %p = getelementptr i32, ptr %s, i64 %at
  %v = load i32, ptr %p
  call void @spmd.barrier(ptr %item)
  %next = add i64 %k, 1
  %to = add i64 %i, AFTER
  %q = getelementptr i32, ptr %s, i64 %to
  store i32 %v, ptr %q
  call void @spmd.barrier(ptr %item)
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}"""


@pytest.mark.parametrize(("before", "after", "goes"), [("%k", "%k", 1), ("%k", "%next", 0), ("%next.0", "%k", 0)])
def test_numbers_of_a_loop_are_others_in_the_next_iteration(before: str, after: str, goes: int) -> None:
    text = HEADER + LOOP.replace("BEFORE", before).replace("AFTER", after)
    if before == "%next.0":
        text = text.replace("  %at =", "  %next.0 = add i64 %k, %n\n  %at =")
    assert drop(cut_at_sync_points(read(text))) == goes


def test_what_is_behind_a_barrier_may_be_of_the_next_iteration() -> None:
    text = """
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = add i64 %i, %k
  %p = getelementptr i32, ptr %s, i64 %at
  store i32 7, ptr %p
  call void @spmd.barrier(ptr %item)
  %q = getelementptr i32, ptr %p, i64 1
  %v = load i32, ptr %q
  call void @spmd.barrier(ptr %item)
  %next = add i64 %k, 2
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}"""
    assert drop(cut_at_sync_points(read(HEADER + text))) == 0


def test_the_only_barrier_of_a_loop_stays() -> None:
    lines = LOOP.replace("BEFORE", "0").replace("AFTER", "0").split("\n")
    lines.remove("  call void @spmd.barrier(ptr %item)")
    assert drop(cut_at_sync_points(read(HEADER + "\n".join(lines)))) == 0


def test_a_barrier_that_some_threads_may_miss_stays() -> None:
    lines = [
        *place("p", "%s", 1), "%v = load i32, ptr %p", "%some = icmp ult i32 %t, 5",
        "br i1 %some, label %waits, label %end", "waits:", WAIT, "store i32 %v, ptr %x", "br label %end", "end:",
    ]  # fmt: skip
    assert drop(cut(*lines)) == 0


STEPS = """
  %s = call ptr @spmd.shared.s.4096.16(ptr %item)
  %wide = zext nneg i32 %tx to i64
  %behind.first = getelementptr i32, ptr %s, i64 1
  %own = getelementptr i32, ptr %behind.first, i64 %wide
  %last = getelementptr i32, ptr %behind.first, i64 THREADS
  %from = getelementptr i32, ptr %x, i64 %wide
  %v0 = load i32, ptr %from
  store i32 %v0, ptr %own
  store i32 0, ptr %s
  store i32 0, ptr %last
  call void @spmd.barrier(ptr %item)
  br label %loop
loop:
  %k = phi i64 [ %first.step, %entry ], [ %next, %joined ]
  CONDITION
  br i1 %in, label %reads, label %between
reads:
  %p = getelementptr i32, ptr %own, i64 AHEAD
  %a = load i32, ptr %p
  %mine = load i32, ptr %own
  %sum = add i32 %a, %mine
  br label %between
between:
  %v = phi i32 [ 0, %loop ], [ %sum, %reads ]
  call void @spmd.barrier(ptr %item)
  br i1 %in, label %stores, label %joined
stores:
  store i32 %v, ptr %own
  br label %joined
joined:
  call void @spmd.barrier(ptr %item)
  %next = add nsw i64 %k, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %r = load i32, ptr %own
  %to = getelementptr i32, ptr %out, i64 %wide
  store i32 %r, ptr %to
  ret void
"""
WRAPPING = "%rest = sub i64 %m, %wide\n  %in = icmp slt i64 %k, %rest"
CONDITIONS = {
    "%rest = sub nsw i64 %m, %wide\n  %in = icmp slt i64 %k, %rest": lambda t, k, m: k < m - t,
    "%rest = sub nsw i64 %m, %wide\n  %in = icmp sle i64 %k, %rest": lambda t, k, m: k <= m - t,
    "%rest = sub nsw i64 %m, %wide\n  %in = icmp sgt i64 %k, %rest": lambda t, k, m: k > m - t,
    WRAPPING: lambda t, k, m: k < (m - t + 2**63) % 2**64 - 2**63,
    "%limit = sub i64 %m, %k\n  %in = icmp slt i64 %wide, %limit": lambda t, k, m: t < m - k,
    "%limit = sub i64 %m, %k\n  %in = icmp sge i64 %limit, %wide": lambda t, k, m: t <= m - k,
    "%limit = sub i64 %m, %k\n  %in = icmp ugt i64 %limit, %wide": lambda t, k, m: t < (m - k) % 2**64,
    "%limit = sub i64 %m, %k\n  %in = icmp uge i64 %limit, %wide": lambda t, k, m: t <= (m - k) % 2**64,
    "%low = trunc i64 %k to i32\n  %in = icmp ult i32 %tx, %low": lambda t, k, m: t < k % 2**32,
}  # fmt: skip


@pytest.mark.sample(4)
@pytest.mark.parametrize("threads", [24, 64, 100])
@pytest.mark.parametrize("ahead", [1, -1], ids=["ahead", "behind"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_steps_of_the_first_threads(device: Device, condition: str, ahead: int, threads: int) -> None:
    made = kernel(
        STEPS.replace("CONDITION", condition).replace("AHEAD", str(ahead)).replace("THREADS", str(threads)),
        [("out", "ptr"), ("x", "ptr"), ("first.step", "i64"), ("n", "i64"), ("m", "i64")],
        "declare ptr @spmd.shared.s.4096.16(ptr)\n", shared_bytes=4096,
    )  # fmt: skip
    function = device.load(made).function("k")
    values = np.random.default_rng(threads).integers(0, 99, threads).astype(np.int32)
    cases = [(0, 30, threads), (3, 4, threads - 2), (0, 9, 0), (-5, 9, 2), (5, 9, 5), (-200, -195, 9)]
    if condition == WRAPPING:
        cases.append((0, 2, 3 - 2**63))
    for first, end, m in cases:
        expected = values.copy()
        for k in range(first, max(end, first + 1)):
            taking = np.array([CONDITIONS[condition](t, k, m) for t in range(threads)])
            neighbours = np.roll(expected, -ahead)
            neighbours[-1 if ahead > 0 else 0] = 0
            expected = np.where(taking, expected + neighbours, expected)
        x, out = to_device(values), to_device(np.zeros(threads, np.int32))
        function.launch(1, threads, pack(function.kernel, out.address, x.address, first, end, m))
        np.testing.assert_array_equal(out.copy_to_host(), expected)
