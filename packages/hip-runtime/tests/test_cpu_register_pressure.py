"""Short kernels whose values leave registers unused run in gangs of twice as many lanes, loops whose values do not fit
them in gangs of half as many."""

from __future__ import annotations

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack

from hip_runtime import Device, to_device
from hip_runtime.drivers.cpu.object_code.host_machine import vector_bytes, vector_registers
from hip_runtime.drivers.cpu.strategies.form_choice import default_lanes

THREADS = 256
FITTING = vector_registers() * vector_bytes() // (2 * default_lanes()) // 4 - 1
"""How many floats of each lane the registers hold for twice as many lanes, and have room for more."""


def sums(count: int, kind: str = "float") -> str:
    """A kernel that loads *count* numbers before it adds them."""
    add = "fadd" if kind in ("float", "double") else "add"
    lines = []
    for number in range(count):
        lines += [
            f"  %j.{number} = add nsw i64 %i, {number * THREADS}",
            f"  %p.{number} = getelementptr {kind}, ptr %x, i64 %j.{number}",
            f"  %v.{number} = load {kind}, ptr %p.{number}",
        ]
    lines.append(f"  %s.0 = {add} {kind} %v.0, %v.0")
    lines += [f"  %s.{number} = {add} {kind} %s.{number - 1}, %v.{number}" for number in range(1, count)]
    return "\n".join([*lines, f"  %to = getelementptr {kind}, ptr %out, i64 %i",
                      f"  store {kind} %s.{count - 1}, ptr %to", "  ret void"])  # fmt: skip


GATHER = """
  %pi = getelementptr i32, ptr %x, i64 %i
  %at = load i32, ptr %pi
  %wide = sext i32 %at to i64
  %from = getelementptr float, ptr %out, i64 %wide
  CHECK
read:
  %v = load float, ptr %from
  %to = getelementptr float, ptr %out, i64 %i
  store float %v, ptr %to
  br label %end
end:
  ret void
"""
"""A kernel that reads where its first array says."""


HELD = vector_registers() * vector_bytes() // default_lanes() // 8
"""How many integers of 64 bits of each lane take all registers."""

ROUNDS = 50  # more than loops are unrolled for


def sums_in_loop(count: int) -> str:
    """A kernel that adds up the columns of *count* rows of numbers at once, in a loop over `ROUNDS` times as many."""
    numbers = range(count)
    lines = ["  br label %loop", "loop:", "  %round = phi i64 [0, %entry], [%next, %loop]"]
    lines += [f"  %sum.{number} = phi i64 [{number}, %entry], [%more.{number}, %loop]" for number in numbers]
    lines.append(f"  %row = mul nsw i64 %round, {count}")
    for number in numbers:
        lines += [
            f"  %row.{number} = add nsw i64 %row, {number}",
            f"  %start.{number} = mul nsw i64 %row.{number}, {THREADS}",
            f"  %at.{number} = add nsw i64 %start.{number}, %i",
            f"  %p.{number} = getelementptr i64, ptr %x, i64 %at.{number}",
            f"  %v.{number} = load i64, ptr %p.{number}",
            f"  %more.{number} = add i64 %sum.{number}, %v.{number}",
        ]
    lines += [
        "  %next = add nsw i64 %round, 1",
        f"  %done = icmp eq i64 %next, {ROUNDS}",
        "  br i1 %done, label %end, label %loop",
        "end:",
        "  %total.0 = add i64 %more.0, 0",
    ]
    lines += [f"  %total.{number} = xor i64 %total.{number - 1}, %more.{number}" for number in numbers[1:]]
    return "\n".join([*lines, "  %to = getelementptr i64, ptr %out, i64 %i",
                      f"  store i64 %total.{count - 1}, ptr %to", "  ret void"])  # fmt: skip


def launch(device: Device, body: str, x: np.ndarray, out: np.ndarray, threads: int = THREADS) -> tuple[str, np.ndarray]:
    """The form of the kernel with *body*, and what one block of it made of *out*."""
    text = f"define void @k(ptr noalias %item, ptr %out, ptr %x) {{\nentry:\n{GLOBAL_X}\n{body}\n}}\n"
    given, made = to_device(x), to_device(out)
    function = device.load(code(text, "k", [("out", "ptr"), ("x", "ptr")])).function("k")
    function.launch(1, threads, pack(function.kernel, made.address, given.address))
    assert function.form is not None
    return function.form, made.copy_to_host()


def lanes_of(form: str) -> int:
    return int(form[: form.index(" threads at a time")].rpartition(" ")[2])


@pytest.mark.parametrize(("count", "times"), [(1, 2), (FITTING, 2), (FITTING + 1, 1), (20, 1)])
def test_values_that_live_at_the_same_time_decide(device: Device, count: int, times: int) -> None:
    x = np.random.default_rng(1).integers(0, 100, (count, THREADS)).astype(np.float32)
    form, found = launch(device, sums(count), x, np.zeros(THREADS, np.float32))
    np.testing.assert_array_equal(found, x.sum(axis=0) + x[0])
    assert lanes_of(form) == times * default_lanes()


@pytest.mark.parametrize(("count", "times"), [(FITTING + 1, 2), (2 * FITTING - 1, 2), (2 * FITTING + 2, 1)])
def test_updates_anywhere_take_longer_than_registers_that_are_stored(device: Device, count: int, times: int) -> None:
    """Lanes update one after another; values of theirs that are in memory meanwhile cost little."""
    store = f"  store float %s.{count - 1}, ptr %to"
    assert store in sums(count)
    body = sums(count).replace(store, f"""
      %sum = fptosi float %s.{count - 1} to i64
      %place = getelementptr i32, ptr %out, i64 %sum
      %old = atomicrmw add ptr %place, i32 1 monotonic""")  # fmt: skip
    x = np.random.default_rng(1).integers(0, 9, (count, THREADS)).astype(np.float32)
    places = (x.sum(axis=0) + x[0]).astype(np.int64)
    form, found = launch(device, body, x, np.zeros(9 * (count + 1), np.int32))
    np.testing.assert_array_equal(found, np.bincount(places, minlength=found.size))
    assert lanes_of(form) == times * default_lanes()


@pytest.mark.parametrize(("kind", "dtype", "count", "times"), [
    ("double", "f8", FITTING // 2, 2), ("double", "f8", FITTING // 2 + 1, 1), ("i8", "i1", 4 * FITTING + 3, 2),
])  # fmt: skip
def test_the_size_of_values_decides(device: Device, kind: str, dtype: str, count: int, times: int) -> None:
    x = np.random.default_rng(1).integers(0, 2, (count, THREADS)).astype(dtype)
    form, found = launch(device, sums(count, kind), x, np.zeros(THREADS, dtype))
    np.testing.assert_array_equal(found, x.sum(axis=0, dtype=dtype) + x[0])
    if 3 * count + 20 < 100:
        assert lanes_of(form) == times * default_lanes()


@pytest.mark.parametrize(("check", "times"), [
    ("br label %read", 2),
    ("%some = icmp sgt i32 %at, 7\n  br i1 %some, label %read, label %end", 1),
], ids=["all lanes", "some lanes"])  # fmt: skip
def test_elements_that_some_lanes_look_up(device: Device, check: str, times: int) -> None:
    x = np.full(THREADS, THREADS + 5, np.int32)
    x[::3] = 0
    x[::3] += 3
    table = np.zeros(2 * THREADS, np.float32)
    table[THREADS + 5], table[3] = 9, 0
    form, found = launch(device, GATHER.replace("CHECK", check), x, table)
    assert lanes_of(form) == times * default_lanes()
    np.testing.assert_array_equal(found[:THREADS], np.where(x > 7, 9, 0))


@pytest.mark.parametrize(("kind", "dtype", "times"), [("i8", "u1", 1), ("i16", "u2", 1), ("i32", "u4", 2)])
def test_small_elements_that_lanes_look_up(device: Device, kind: str, dtype: str, times: int) -> None:
    body = GATHER.replace("CHECK", "br label %read").replace("float", kind)
    x = np.random.default_rng(4).integers(THREADS, 2 * THREADS, THREADS).astype(np.int32)
    table = np.random.default_rng(5).integers(0, 200, 2 * THREADS).astype(dtype)
    form, found = launch(device, body, x, table)
    assert lanes_of(form) == times * default_lanes()
    np.testing.assert_array_equal(found[:THREADS], table[x])


@pytest.mark.parametrize(("check", "times"), [
    ("%some = fcmp ogt float %v, 7.0\n  br i1 %some, label %note, label %on", 1),
    ("br label %note", 2),
], ids=["some lanes", "all lanes"])  # fmt: skip
def test_what_a_loop_does_for_some_lanes(device: Device, check: str, times: int) -> None:
    body = f"""
  br label %loop
loop:
  %round = phi i64 [0, %entry], [%next, %on]
  %row = mul nsw i64 %round, {THREADS}
  %at = add nsw i64 %row, %i
  %p = getelementptr float, ptr %x, i64 %at
  %v = load float, ptr %p
  {check}
note:
  %to = getelementptr float, ptr %out, i64 %i
  store float %v, ptr %to
  br label %on
on:
  %next = add nsw i64 %round, 1
  %done = icmp eq i64 %next, {ROUNDS}
  br i1 %done, label %end, label %loop
end:
  ret void
"""
    x = np.random.default_rng(6).integers(0, 9, (ROUNDS, THREADS)).astype(np.float32)
    form, found = launch(device, body, x, np.zeros(THREADS, np.float32))
    assert lanes_of(form) == times * default_lanes()
    np.testing.assert_array_equal(found, np.where((x > 7).any(axis=0), 8, 0) if times == 1 else x[-1])


@pytest.mark.parametrize(("threads", "times"), [(THREADS, 2), (3 * default_lanes(), 1), (default_lanes(), 1)])
def test_rows_of_a_block_are_whole_gangs(device: Device, threads: int, times: int) -> None:
    x = np.arange(THREADS, dtype=np.float32)
    form, found = launch(device, sums(1), x, np.zeros(THREADS, np.float32), threads)
    assert lanes_of(form) == times * default_lanes()
    np.testing.assert_array_equal(found[:threads], 2 * x[:threads])
    assert not found[threads:].any()


@pytest.mark.parametrize(("step", "times"), [(1, 2), (3, 1), (-1, 1)])
def test_elements_in_steps_are_shuffled(device: Device, step: int, times: int) -> None:
    body = f"""
  %three = mul nsw i64 %i, {step}
  %j = add nsw i64 %three, {THREADS if step < 0 else 0}
  %p = getelementptr i8, ptr %x, i64 %j
  %v = load i8, ptr %p
  %to = getelementptr i8, ptr %out, i64 %i
  store i8 %v, ptr %to
  ret void
"""
    x = np.random.default_rng(1).integers(0, 100, 3 * THREADS).astype(np.int8)
    form, found = launch(device, body, x, np.zeros(THREADS, np.int8))
    np.testing.assert_array_equal(found, x[: THREADS * step : step] if step > 0 else x[THREADS:0:-1])
    assert lanes_of(form) == times * default_lanes()


CLAMPED = """
  %before = add nsw i64 %i, -1
  %at = call i64 @llvm.smax.i64(i64 %before, i64 0)
  %from = getelementptr float, ptr %x, i64 %at
  %v = load float, ptr %from
  %w = call float @llvm.maxnum.f32(float %v, float 50.0)
  %number = fptosi float %v to i32
  %least = call i32 @llvm.smax.i32(i32 %number, i32 50)
  %to = getelementptr float, ptr %out, i64 %i
  %both = sitofp i32 %least to float
  store float %both, ptr %to
  ret void
"""


@pytest.mark.parametrize(("index", "times"), [("%at", 1), ("%i", 2)], ids=["an index", "data"])
def test_of_clamped_indices_gangs_stay_as_they_are(device: Device, index: str, times: int) -> None:
    """Of twice the lanes, twice as many would run with those at an edge."""
    body = CLAMPED.replace("ptr %x, i64 %at", f"ptr %x, i64 {index}")
    if index == "%i":
        body = body.replace("  %at = call i64 @llvm.smax.i64(i64 %before, i64 0)\n", "")
    declared = "declare i64 @llvm.smax.i64(i64, i64)\ndeclare i32 @llvm.smax.i32(i32, i32)\n"
    declared += "declare float @llvm.maxnum.f32(float, float)\n"
    x = np.random.default_rng(1).integers(0, 100, THREADS).astype(np.float32)
    form, found = launch(
        device, f"{body}}}\n{declared}define void @unused() {{\n  ret void", x, np.zeros(THREADS, np.float32)
    )
    places = np.maximum(np.arange(THREADS) - 1, 0) if times == 1 else np.arange(THREADS)
    np.testing.assert_array_equal(found, np.maximum(x[places], 50))
    assert lanes_of(form) == times * default_lanes()


@pytest.mark.parametrize(("count", "is_half"), [(HELD - 1, False), (HELD, True), (HELD + 3, True)])
def test_loops_whose_values_take_all_registers_have_fewer_lanes(device: Device, count: int, is_half: bool) -> None:
    x = np.random.default_rng(2).integers(-1000, 1000, (ROUNDS, count, THREADS))
    form, found = launch(device, sums_in_loop(count), x, np.zeros(THREADS, np.int64))
    sums = x.sum(axis=0) + np.arange(count)[:, None]
    np.testing.assert_array_equal(found, np.bitwise_xor.reduce(sums, axis=0))
    assert lanes_of(form) == (max(default_lanes() // 2, 8) if is_half else default_lanes())


def test_a_width_that_was_asked_for_is_kept(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_HIP_CPU_WIDTH", str(default_lanes()))
    x = np.random.default_rng(3).integers(-1000, 1000, (ROUNDS, HELD, THREADS))
    form, _ = launch(device, sums_in_loop(HELD), x, np.zeros(THREADS, np.int64))
    assert lanes_of(form) == default_lanes()
