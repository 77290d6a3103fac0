"""Which form kernels take on the CPU device by default."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.analyses import double_width
from hip_runtime.drivers.cpu.analyses.cfg import order_function
from hip_runtime.drivers.cpu.ir.model import Function
from hip_runtime.drivers.cpu.object_code.host_machine import has_mask_registers
from hip_runtime.drivers.cpu.strategies import vector
from hip_runtime.drivers.cpu.strategies.form_choice import default_lanes
from hip_runtime.drivers.cpu.vectorize.gang_body import GangBody

ROW = f"""
define void @k(ptr noalias %item, ptr %out, ptr %x, i64 %n) {{
entry:
{GLOBAL_X}
  %row = mul i64 %i, %n
  %first = getelementptr float, ptr %x, i64 %row
  br label %loop
loop:
  %j = phi i64 [ 0, %entry ], [ %more, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %next, %loop ]
  %p = getelementptr float, ptr %first, i64 %j
  %v = load float, ptr %p
  %next = fadd FLAGS float %sum, %v
  %more = add nuw nsw i64 %j, 1
  %again = icmp slt i64 %more, %n
  br i1 %again, label %loop, label %done
done:
  %q = getelementptr float, ptr %out, i64 %i
  store float %next, ptr %q
  ret void
}}
"""
"""Each thread sums a row of its own."""

UPDATES = (
    ROW.replace("  %next =", "  UPDATE\n  %next =")
    .replace(
        "br label %loop",
        """%square = mul i64 %i, %i
  %bin = and i64 %square, 15
  %place = getelementptr float, ptr %out, i64 %bin
  br label %loop""",
    )
    .replace("  %q = getelementptr float, ptr %out, i64 %i\n  store float %next, ptr %q\n", "")
)
"""Each thread adds the numbers of a row of its own to one of 16 totals."""

COLUMN = ROW.replace("%first = getelementptr float, ptr %x, i64 %row", "%first = getelementptr float, ptr %x, i64 %i")
COLUMN = COLUMN.replace("ptr %first, i64 %j", "ptr %first, i64 %below").replace(
    "  %p = getelementptr", "  %below = mul i64 %j, 128\n  %p = getelementptr"
)
"""Each thread sums a column: neighbours read neighbouring elements."""

CHAIN = f"""
define void @k(ptr noalias %item, ptr %out, ptr %x, i64 %n) {{
entry:
{GLOBAL_X}
  %own = getelementptr float, ptr %x, i64 %i
  %begin = load float, ptr %own
  br label %loop
loop:
  %j = phi i64 [ 0, %entry ], [ %more, %loop ]
  %v = phi float [ %begin, %entry ], [ %next, %loop ]
  %rest = fsub fast float 1.0, %v
  %grown = fmul fast float %v, 3.5
  %next = fmul fast float %grown, %rest
  %more = add nuw nsw i64 %j, 1
  %again = icmp slt i64 %more, %n
  br i1 %again, label %loop, label %done
done:
  %q = getelementptr float, ptr %out, i64 %i
  store float %next, ptr %q
  ret void
}}
"""
"""Each thread computes a chain of numbers, each of which needs the one before it."""


LOCK = f"""
define void @k(ptr noalias %item, ptr %out, ptr %x, i64 %n) {{
entry:
{GLOBAL_X}
  br label %try
try:
  %pair = cmpxchg ptr %x, i32 0, i32 1 acquire monotonic
  %taken = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %taken, label %own, label %try
own:
  %old = load float, ptr %out
  %new = fadd float %old, 1.0
  store float %new, ptr %out
  store atomic i32 0, ptr %x release, align 4
  ret void
}}
"""
"""Threads go through a lock one after another: of lanes, the one that holds it would wait for those that want it."""


FLAG = """try:
  %first = icmp eq i64 %i, 0
  br i1 %first, label %set, label %wait
set:
  store float 1.0, ptr %out
  br label %end
wait:
  fence seq_cst
  %now = load float, ptr %out
  %there = fcmp une float %now, 0.0
  %mine = icmp slt i64 %i, 3
  %done = or i1 %there, %mine
  br i1 %done, label %end, label %wait
end:
  ret void
}
"""
"""All but a few wait for what the first thread writes."""


NEIGHBOURS = f"""
define void @k(ptr noalias %item, ptr %out, ptr %x, i64 %n) {{
entry:
{GLOBAL_X}
  PLACE
  %first = getelementptr float, ptr %x, i64 %i
  br label %loop
loop:
  %j = phi i64 [ 0, %entry ], [ %more, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %next, %loop ]
  %p = getelementptr float, ptr %first, i64 %j
  %v = load float, ptr %p
  KEEP
  %next = fadd float %sum, %v
  %more = add nuw nsw i64 %j, 1
  %again = icmp slt i64 %more, 3
  br i1 %again, label %loop, label %done
done:
  TAKE
  %total = fadd float %next, %kept
  %q = getelementptr float, ptr %out, i64 %i
  store float %total, ptr %q
  ret void
}}
"""
"""Each thread adds three neighbours, and what it takes from where it may have kept them."""

IN_REGISTERS = {"PLACE": "", "KEEP": "", "TAKE": "%kept = fadd float %next, 0.0"}
IN_AN_ARRAY = {
    "PLACE": "%array = alloca [4 x float]\n  %own = and i64 %n, 3",
    "KEEP": "%e = getelementptr float, ptr %array, i64 %j\n  store float %v, ptr %e",
    "TAKE": "%chosen = getelementptr float, ptr %array, i64 %own\n  %kept = load float, ptr %chosen",
}


def form_of(device: Device, text: str, x: np.ndarray, n: int, block: int = 128) -> tuple[str, np.ndarray]:
    """The form that kernel ``k`` takes, and what 128 threads of it write."""
    out, given = to_device(np.zeros(128, np.float32)), to_device(x)
    function = device.load(code(text, "k", [("out", "ptr"), ("x", "ptr"), ("n", "i64")])).function("k")
    function.launch(128 // block, block, pack(function.kernel, out.address, given.address, n))
    assert function.form is not None
    return function.form, out.copy_to_host()


def test_rows_of_each_thread_are_left_to_a_loop(device: Device) -> None:
    """LLVM makes vectors of the loop of a thread if sums may be in any order."""
    x = np.random.default_rng(1).random((128, 64), np.float32)
    form, found = form_of(device, ROW.replace("FLAGS", "fast"), x, 64)
    assert "loop (no thread waits for another; the form 'vectors' would be slower: its loads and stores" in form
    np.testing.assert_allclose(found, x.sum(axis=1), rtol=1e-5)


def test_rows_that_are_added_in_order_are_run_by_lanes(device: Device) -> None:
    """Each lane loads several elements of its row at once."""
    x = np.random.default_rng(1).random((128, 64), np.float32)
    form, found = form_of(device, ROW.replace("FLAGS", ""), x, 64)
    assert "threads at a time" in form
    expected = np.zeros(128, np.float32)
    for column in x.T:
        expected += column
    np.testing.assert_array_equal(found, expected)


def test_rows_whose_sum_waits_for_each_result_are_run_by_lanes(device: Device) -> None:
    """As hashes: processors multiply as they wait for the product before."""
    text = ROW.replace(
        "%next = fadd FLAGS float %sum, %v", "%with = fadd float %sum, %v\n  %next = fmul float %with, 0.5"
    )
    x = np.random.default_rng(1).random((128, 64), np.float32)
    form, found = form_of(device, text, x, 64)
    assert ": vectors (" in form
    expected = np.zeros(128, np.float32)
    for column in x.T:
        expected = (expected + column) * np.float32(0.5)
    np.testing.assert_array_equal(found, expected)


SOME_OF_A_ROW = f"""
define void @k(ptr noalias %item, ptr %out, ptr %x, i64 %n) {{
entry:
{GLOBAL_X}
  %row = mul i64 %i, %n
  %first = getelementptr float, ptr %x, i64 %row
  br label %loop
loop:
  %j = phi i64 [ 0, %entry ], [ %more, %join ]
  %sum = phi float [ 0.0, %entry ], [ %next, %join ]
  %p = getelementptr float, ptr %first, i64 %j
  %v = load float, ptr %p
  %large = fcmp ogt float %v, 0.5
  br i1 %large, label %do, label %join
do:
  %w = getelementptr float, ptr %x, i64 %j
  %factor = load float, ptr %w
  %product = fmul fast float %factor, %v
  %added = fadd fast float %sum, %product
  br label %join
join:
  %next = phi float [ %sum, %loop ], [ %added, %do ]
  %more = add nuw nsw i64 %j, 1
  %again = icmp slt i64 %more, %n
  br i1 %again, label %loop, label %done
done:
  %q = getelementptr float, ptr %out, i64 %i
  store float %next, ptr %q
  ret void
}}
"""
"""Each thread sums products of those in a row of its own that are large."""


@pytest.mark.skipif(not has_mask_registers(), reason="LLVM makes masks of branches for processors that have such")
def test_rows_with_a_branch_are_left_to_a_loop(device: Device) -> None:
    x = np.random.default_rng(1).random((128, 64), np.float32)
    form, found = form_of(device, SOME_OF_A_ROW, x, 64)
    assert "loop (no thread waits for another; the form 'vectors' would be slower: its loads and stores" in form
    np.testing.assert_allclose(found, np.where(x > 0.5, x * x[0], 0).sum(axis=1), rtol=1e-5)


SHORT_ROWS = ROW.replace("mul i64 %i, %n", "mul i64 %i, 9").replace("slt i64 %more, %n", "slt i64 %more, 9")
SHORT_ROWS = (
    SHORT_ROWS.replace(
        "  %next =",
        """  %more.of = fadd float %v, 1.0
  %root = call float @llvm.sqrt.f32(float %more.of)
  %part = fdiv float %v, %root
  store float %part, ptr %p
  %next =""",
    ).replace("FLAGS", "fast")
    + "declare float @llvm.sqrt.f32(float)"
)


def test_short_rows_are_run_by_lanes(device: Device) -> None:
    """The cache holds the rows of all lanes, and LLVM writes the loop of a thread out."""
    x = np.random.default_rng(1).random((128, 9), np.float32)
    assert ": vectors (" in form_of(device, SHORT_ROWS, x, 9)[0]
    form, found = form_of(device, SHORT_ROWS.replace("slt i64 %more, 9", "slt i64 %more, %n"), x, 9)
    assert ": loop (" in form
    np.testing.assert_allclose(found, x.sum(axis=1), rtol=1e-5)


AGAIN = f"""
define void @k(ptr noalias %item, ptr %out, ptr %x, i64 %n) {{
entry:
{GLOBAL_X}
  %row = mul i64 %i, %n
  %first = getelementptr float, ptr %x, i64 %row
  br label %outer
outer:
  %c = phi i64 [ 0, %entry ], [ %c.more, %after ]
  %all = phi float [ 0.0, %entry ], [ %larger, %after ]
  %scale = sitofp i64 %c to float
  br label %loop
loop:
  %j = phi i64 [ 0, %outer ], [ %more, %loop ]
  %sum = phi float [ 0.0, %outer ], [ %next, %loop ]
  %p = getelementptr float, ptr %first, i64 %j
  %v = load float, ptr %p
  %scaled = fmul float %v, %scale
  %next = fadd float %sum, %scaled
  %more = add nuw nsw i64 %j, 1
  %again = icmp slt i64 %more, %n
  br i1 %again, label %loop, label %after
after:
  %is = fcmp ogt float %next, %all
  %larger = select i1 %is, float %next, float %all
  %c.more = add nuw nsw i64 %c, 1
  %c.again = icmp slt i64 %c.more, 5
  br i1 %c.again, label %outer, label %done
done:
  %q = getelementptr float, ptr %out, i64 %i
  store float %larger, ptr %q
  ret void
}}
"""
"""Each thread goes through its row several times."""


@pytest.mark.parametrize("again", [True, False])
def test_rows_that_are_read_again_are_run_by_lanes(device: Device, again: bool) -> None:
    text = AGAIN if again else AGAIN.replace("ptr %first, i64 %j", "ptr %first, i64 %at").replace(
        "  %p = getelem", "  %far = mul i64 %c, %n\n  %at = add i64 %far, %j\n  %p = getelem"
    ).replace("fadd float %sum", "fadd fast float %sum")  # fmt: skip
    x = np.random.default_rng(1).random(128 * 3 + 5 * 3, np.float32)
    form, found = form_of(device, text, x, 3)
    assert (": vectors (" in form) == again
    rows = x[: 128 * 3].reshape(128, 3)
    expected = np.zeros(128, np.float32)
    for c in range(5):
        sums = np.zeros(128, np.float32)
        for j in range(3):
            sums += (rows[:, j] if again else x[3 * (np.arange(128) + c) + j]) * np.float32(c)
        expected = np.maximum(expected, sums)
    np.testing.assert_allclose(found, expected, rtol=0 if again else 1e-5)


SPARSE = f"""
define void @k(ptr noalias %item, ptr %out, ptr %x, i64 %n) {{
entry:
{GLOBAL_X}
  %begin = getelementptr float, ptr %x, i64 %i
  %behind = getelementptr float, ptr %begin, i64 128
  %first = load float, ptr %begin
  %length = load float, ptr %behind
  %from = fptosi float %first to i64
  %own = fptosi float %length to i64
  %any = icmp slt i64 0, COUNT
  br i1 %any, label %loop, label %done
loop:
  %j = phi i64 [ 0, %entry ], [ %more, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %next, %loop ]
  %along = add nsw i64 %from, %j
  %far = mul nsw i64 %along, 7
  %place = getelementptr float, ptr %x, i64 %far
  %where = load float, ptr %place
  %number = fptosi float %where to i64
  %at = getelementptr float, ptr %x, i64 %number
  %v = load float, ptr %at
  %other = xor i64 %number, 1
  %beside = getelementptr float, ptr %x, i64 %other
  %w = load float, ptr %beside
  %both = fadd float %v, %w
  %third = xor i64 %number, 2
  %near = getelementptr float, ptr %x, i64 %third
  %u = load float, ptr %near
  %all = fadd float %both, %u
  %next = fadd float %sum, %all
  %more = add nuw nsw i64 %j, 1
  %again = icmp slt i64 %more, COUNT
  br i1 %again, label %loop, label %done
done:
  %total = phi float [ 0.0, %entry ], [ %next, %loop ]
  %q = getelementptr float, ptr %out, i64 %i
  store float %total, ptr %q
  ret void
}}
"""
"""Each thread adds what elements say where it is, three at a time: as many as memory tells, or all as many."""


@pytest.mark.parametrize(("count", "form"), [("%own", "loop"), ("%n", "vectors")])
def test_lanes_that_leave_a_loop_apart_wait_for_each_other(device: Device, count: str, form: str) -> None:
    rng = np.random.default_rng(8)
    x = rng.integers(0, 1000, 10_000).astype(np.float32)
    x[128:256] = rng.integers(0, 9, 128)
    taken, found = form_of(device, SPARSE.replace("COUNT", count), x, 5)
    assert f": {form} (" in taken
    counts = x[128:256] if form == "loop" else np.full(128, 5)
    expected = []
    for start, length in zip(x[:128].astype(int), counts.astype(int), strict=True):
        at = x[7 * start : 7 * (start + length) : 7].astype(int)
        expected.append(x[at].sum() + x[at ^ 1].sum() + x[at ^ 2].sum())
    np.testing.assert_array_equal(found, np.array(expected, np.float32))


def test_a_loop_that_is_asked_for_runs_one_thread_after_another(device: Device) -> None:
    """Also where loads have to be frozen, so that the kernel is written anew."""
    text = SPARSE.replace("COUNT", "%own").replace(
        "  %v = load float, ptr %at\n", "  %v = load float, ptr %at\n  store float %v, ptr %out\n"
    )
    x = np.full(3000, 200, np.float32)
    with config.cpu_form.scope("loop"):
        form, _ = form_of(device, text, x, 5)
    assert "loop (NUMBA_HIP_CPU_FORM asks for it" in form
    assert "threads at a time" not in form


MARKS = f"""
define void @k(ptr noalias %item, ptr %out, ptr %x, i64 %n) {{
entry:
{GLOBAL_X}
  %step = add nuw nsw i64 %i, 2
  %first = mul nuw nsw i64 %step, %step
  %any = icmp slt i64 %first, %n
  br i1 %any, label %loop, label %done
loop:
  %at = phi i64 [ %first, %entry ], [ %next, %loop ]
  %place = getelementptr KIND, ptr %out, i64 %at
  store KIND 1, ptr %place
  %next = add nuw nsw i64 %at, %step
  %again = icmp slt i64 %next, %n
  br i1 %again, label %loop, label %done
done:
  ret void
}}
"""
"""Each thread marks the multiples of its number."""


@pytest.mark.parametrize(("kind", "form"), [("i8", "loop"), ("i32", "vectors")])
def test_bytes_that_are_far_apart_are_stored_by_one_thread_after_another(device: Device, kind: str, form: str) -> None:
    limit, dtype = 5000, np.dtype(f"i{int(kind[1:]) // 8}")
    marks = to_device(np.zeros(limit, dtype))
    parameters = [("out", "ptr"), ("x", "ptr"), ("n", "i64")]
    function = device.load(code(MARKS.replace("KIND", kind), "k", parameters)).function("k")
    function.launch(1, 128, pack(function.kernel, marks.address, marks.address, limit))
    assert f": {form} (" in str(function.form)
    expected = np.zeros(limit, dtype)
    for number in range(2, 130):
        expected[number * number :: number] = 1
    np.testing.assert_array_equal(marks.copy_to_host(), expected)


def test_columns_are_summed_by_lanes(device: Device) -> None:
    x = np.random.default_rng(2).random((64, 128), np.float32)
    form, found = form_of(device, COLUMN.replace("FLAGS", ""), x, 64)
    assert form == f"(128, 1, 1): vectors (no thread waits for another; {2 * default_lanes()} threads at a time)"
    np.testing.assert_allclose(found, x.sum(axis=0), rtol=1e-5)


@pytest.mark.parametrize(("update", "form"), [
    ("%old = atomicrmw fadd ptr %place, float %v monotonic", "vectors"),
    ("%old = atomicrmw volatile fadd ptr %place, float %v monotonic", "loop"),
], ids=["in a table", "in memory"])  # fmt: skip
def test_updates_that_lanes_combine_in_a_table_outweigh_rows(device: Device, update: str, form: str) -> None:
    x = np.random.default_rng(6).integers(0, 9, (128, 64)).astype(np.float32)
    taken, found = form_of(device, UPDATES.replace("FLAGS", "").replace("UPDATE", update), x, 64)
    assert f": {form} (" in taken
    np.testing.assert_array_equal(found[:16], np.bincount(np.arange(128) ** 2 % 16, x.sum(axis=1), 16))


@pytest.mark.parametrize(("aside", "times"), [(0, 2), (20, 1)], ids=["a chain", "a chain and more"])
def test_more_lanes_run_loops_that_wait_for_results(
    device: Device, monkeypatch: pytest.MonkeyPatch, aside: int, times: int
) -> None:
    """What does not need the last iteration is done meanwhile, so nothing waits if there is enough of it."""
    monkeypatch.setattr(double_width, "has_registers_left", lambda *_: False)
    lines = ["  %j.float = sitofp i64 %j to float", "  %m.0 = fmul float %begin, %j.float"]
    lines += [f"  %m.{number + 1} = fmul float %m.{number}, %begin" for number in range(aside)]
    lines += ["  %product = fmul fast float %grown, %rest", f"  %next = fadd float %product, %m.{aside}"]
    text = CHAIN.replace("  %next = fmul fast float %grown, %rest", "\n".join(lines))
    x = np.random.default_rng(4).random(128, np.float32)
    form, _ = form_of(device, text, x, 2)
    assert f"; {times * default_lanes()} threads at a time" in form


IN_VALUES = IN_AN_ARRAY | {"TAKE": IN_AN_ARRAY["TAKE"].replace("%own", "2")}
IN_A_LARGE_ARRAY = IN_AN_ARRAY | {"PLACE": IN_AN_ARRAY["PLACE"].replace("4 x", "64 x")}


@pytest.mark.parametrize(
    ("parts", "loops"), [(IN_REGISTERS, 0), (IN_VALUES, 0), (IN_AN_ARRAY, 1), (IN_A_LARGE_ARRAY, 1)],
    ids=["registers", "an array at known places", "an array at places of data", "a large array"],
)  # fmt: skip
def test_loops_of_few_iterations_are_unrolled_for_lanes(
    device: Device, monkeypatch: pytest.MonkeyPatch, parts: dict[str, str], loops: int
) -> None:
    """Unless private arrays stay, in which LLVM would take long."""
    seen: list[tuple[int, bool]] = []

    class Body(GangBody):
        def __init__(self, function: Function, *arguments: Any, **options: Any) -> None:
            order = order_function(function)
            has_array = any(value.opcode == "alloca" for value in function.instructions())
            seen.append((len({loop for inside in order.loops.values() for loop in inside}), has_array))
            super().__init__(function, *arguments, **options)

    monkeypatch.setattr(vector, "GangBody", Body)
    text = NEIGHBOURS
    for name, words in parts.items():
        text = text.replace(name, words)
    x = np.random.default_rng(5).random(130, np.float32)
    form, found = form_of(device, text, x, 1)
    assert ": vectors (" in form
    assert seen == [(loops, loops == 1)]
    total, place = (x[:-2] + x[1:-1]) + x[2:], 2 if parts is IN_VALUES else 1
    np.testing.assert_array_equal(found, total + (total if parts is IN_REGISTERS else x[place : place + 128]))


def test_chains_are_computed_by_lanes(device: Device) -> None:
    x = np.random.default_rng(4).random(128, np.float32)
    form, found = form_of(device, CHAIN, x, 9)
    assert ": vectors (" in form
    for _ in range(9):
        x = np.float32(3.5) * x * (1 - x)
    np.testing.assert_allclose(found, x, rtol=1e-3)


def test_gangs_that_are_too_small(device: Device) -> None:
    x = np.random.default_rng(3).random((64, 128), np.float32)
    with config.cpu_width.scope(2):
        form, found = form_of(device, COLUMN.replace("FLAGS", ""), x, 64, 128)
    assert "loop (no thread waits for another, and gangs of 2 threads are too small for vectors)" in form
    np.testing.assert_allclose(found, x.sum(axis=0), rtol=1e-5)


@pytest.mark.parametrize("block", [1, 2, 4])
def test_blocks_that_are_too_small_are_joined(device: Device, block: int) -> None:
    x = np.random.default_rng(3).random((64, 128), np.float32)
    form, found = form_of(device, COLUMN.replace("FLAGS", ""), x, 64, block)
    assert re.search(r"vectors \(no thread waits for another; .*neighbours along x in up to \d+ blocks\)", form), form
    np.testing.assert_allclose(found, x.sum(axis=0), rtol=1e-5)


def test_blocks_that_know_their_threads_are_not_joined(device: Device) -> None:
    text = COLUMN.replace("FLAGS", "").replace("[ 0.0, %entry ]", "[ %begin, %entry ]")
    text = text.replace("  br label %loop\n", "  %begin = uitofp i64 %t to float\n  br label %loop\n", 1)
    x = np.random.default_rng(3).random((64, 128), np.float32)
    form, found = form_of(device, text, x, 64, 2)
    assert "loop (the form 'vectors' cannot run it: gangs of 2 threads are too small)" in form
    np.testing.assert_allclose(found, x.sum(axis=0) + np.arange(128) % 2, rtol=1e-5)


@pytest.mark.parametrize("wanted", ["auto", "vectors"])
def test_blocks_of_one_thread_that_wait_for_a_lock_are_not_joined(device: Device, wanted: str) -> None:
    with config.cpu_form.scope(wanted):
        form, found = form_of(device, LOCK, np.zeros(1, np.int32), 0, 1)
    assert "blocks" not in form
    assert found[0] == 128


@pytest.mark.parametrize("wanted", ["auto", "vectors"])
def test_threads_that_wait_for_a_lock_take_turns(device: Device, wanted: str) -> None:
    with config.cpu_form.scope(wanted):
        form, found = form_of(device, LOCK, np.zeros(1, np.int32), 0)
    assert "regions (threads wait for one another in a loop" in form
    assert found[0] == 128


def test_threads_that_wait_behind_a_fence_take_turns(device: Device) -> None:
    text = LOCK[: LOCK.index("\ntry:") + 1] + FLAG
    form, found = form_of(device, text, np.zeros(1, np.int32), 0)
    assert "regions (threads wait for one another in a loop" in form
    assert found[0] == 1


def polynomial(count: int) -> str:
    """A kernel of more than *count* instructions on doubles, for threads below ``%n``: a polynomial."""
    lines = ["  %t.0 = fadd double %v, 1.0"]
    for number in range(count // 2):
        lines.append(f"  %p.{number} = fmul double %t.{number}, %v")
        lines.append(f"  %t.{number + 1} = fadd double %p.{number}, {number % 7}.5")
    body = "\n".join(lines)
    return f"""
define void @k(ptr noalias %item, ptr %out, ptr %x, i64 %n) {{
entry:
{GLOBAL_X}
  %in = icmp slt i64 %i, %n
  br i1 %in, label %do, label %end
do:
  %from = getelementptr double, ptr %x, i64 %i
  %v = load double, ptr %from
{body}
  %short = fptrunc double %t.{count // 2} to float
  %to = getelementptr float, ptr %out, i64 %i
  store float %short, ptr %to
  br label %end
end:
  ret void
}}
"""


@pytest.mark.parametrize(("count", "width", "lanes"), [
    (40, None, 2 * default_lanes()), (150, None, default_lanes() // 2), (150, 64, 64),
    (500, None, default_lanes() // 2),
])  # fmt: skip
@pytest.mark.sample(2)
def test_lanes_of_kernels_with_many_doubles(device: Device, count: int, width: int | None, lanes: int) -> None:
    """The largest is written once, for full gangs and others."""
    x = np.random.default_rng(4).random(128)
    with config.cpu_width.scope(width):
        form, found = form_of(device, polynomial(count), x, 117)
    assert f"vectors (no thread waits for another; {lanes} threads at a time)" in form
    expected = x + 1
    for number in range(count // 2):
        expected = expected * x + (number % 7 + 0.5)
    expected[117:] = 0
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def cases(count: int) -> str:
    """A kernel of which each thread takes one of *count* branches, by a number of 32 bits: each adds another number to
    another element."""
    branches = "\n".join(
        f"case{number}:\n  %f.{number} = mul i64 %i, {2 * number + 3}\n  %m.{number} = and i64 %f.{number}, 127\n"
        f"  %p.{number} = getelementptr i32, ptr %x, i64 %m.{number}\n  %l.{number} = load i32, ptr %p.{number}\n"
        f"  %v.{number} = add i32 %l.{number}, {number}\n  br label %end"
        for number in range(count)
    )
    targets = "\n".join(f"    i32 {3 * number}, label %case{number}" for number in range(count))
    chosen = ", ".join(f"[ %v.{number}, %case{number} ]" for number in range(count))
    return f"""
define void @k(ptr noalias %item, ptr noalias %out, ptr %x, i64 %n) {{
entry:
{GLOBAL_X}
  %from = getelementptr i32, ptr %x, i64 %i
  %state = load i32, ptr %from
  switch i32 %state, label %end [
{targets}
  ]
{branches}
end:
  %chosen = phi i32 [ %state, %entry ], {chosen}
  %to = getelementptr i32, ptr %out, i64 %i
  store i32 %chosen, ptr %to
  ret void
}}
"""


@pytest.mark.parametrize(("count", "form"), [(20, "vectors"), (300, "loop")])
def test_of_many_branches_a_thread_takes_one(device: Device, count: int, form: str) -> None:
    """Lanes take all of them."""
    x = np.full(128, -1, np.int32)
    x[::3] = 3 * np.arange(43) % 60
    found_form, found = form_of(device, cases(count), x, 128)
    assert f"{form} (" in found_form
    assert ("each thread takes one of many branches" in found_form) == (form == "loop")
    branch, threads = x // 3, np.arange(128)
    expected = np.where(x < 0, x, x[threads * (2 * branch + 3) % 128] + branch)
    np.testing.assert_array_equal(found.view(np.int32), expected)
