"""Kernels whose threads run as lanes of vectors."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import spmd_programs
from spmd_kernels import GLOBAL_X, code, pack
from spmd_programs import check_case

from hip_runtime import Device, Function, config, to_device
from hip_runtime.errors import SettingError

WAITING = frozenset({"ballot", "shuffle", "active", "meet", "exchange", "count", "barrier"})


class WithoutWaiting(spmd_programs.Generator):
    """Generates programs whose threads do not wait for each other."""

    def statement(self, depth: int, together: bool) -> spmd_programs.Statement:
        while True:
            found = super().statement(depth, together)
            if found.kind not in WAITING:
                return found


# 184 has an 'or' that is a sum only for the lanes that are active.
@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", [*range(6), 184, 216])
def test_program(device: Device, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(spmd_programs, "Generator", WithoutWaiting)
    width = random.Random(seed + 7).choice((1, 2, 4, 8, 16, 32, 64))
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        check_case(device, seed)


def run(
    device: Device, text: str, parameters: list[tuple[str, str]], *values: Any,
    threads: int = 100, block: int = 37, width: int = 8,
) -> Function:  # fmt: skip
    """Run kernel ``k`` as vectors for *threads* threads or more; the last lanes of each block are too many."""
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        function = device.load(code(text, "k", parameters)).function("k")
        function.launch(-(-threads // block), block, pack(function.kernel, *values))
    return function


def kernel(body: str, parameters: list[tuple[str, str]]) -> str:
    """A kernel whose threads below ``%n`` run *body*, which ends at ``%end``."""
    written = ", ".join(f"{kind} %{name}" for name, kind in parameters)
    return f"""
declare double @llvm.minnum.f64(double, double)
declare i32 @llvm.fptosi.sat.i32.f32(float)
declare i8 @llvm.fptoui.sat.i8.f32(float)
define void @k(ptr noalias %item, {written}) {{
entry:
{GLOBAL_X}
  %in = icmp slt i64 %i, %n
  br i1 %in, label %do, label %end
do:
{body}
end:
  ret void
}}
"""


IN_OUT = [("out", "ptr"), ("x", "ptr"), ("n", "i64")]
PLACES = """
  %p = getelementptr i32, ptr %x, i64 %i
  %q = getelementptr i32, ptr %out, i64 %i
  %v = load i32, ptr %p
"""


def transform(device: Device, body: str, values: Any, **how: int) -> Any:
    """What *body* writes to ``out`` for the values ``x`` of all threads; elements that no thread writes are -1."""
    x, out = to_device(values), to_device(np.full(len(values) + 60, -1, values.dtype))
    run(device, kernel(body, IN_OUT), IN_OUT, out.address, x.address, len(values), **how)
    found = out.copy_to_host()
    assert (found[len(values) :] == -1).all()
    return found[: len(values)]


COLLATZ = f"""{PLACES}
  br label %head
head:
  %m = phi i32 [ %v, %do ], [ %next, %latch ]
  %steps = phi i32 [ 0, %do ], [ %more, %latch ]
  %is = icmp ule i32 %m, 1
  br i1 %is, label %stop, label %body
body:
  %bit = and i32 %m, 1
  %odd = icmp ne i32 %bit, 0
  br i1 %odd, label %up, label %down
up:
  %three = mul i32 %m, 3
  %grown = add i32 %three, 1
  br label %latch
down:
  %half = lshr i32 %m, 1
  br label %latch
latch:
  %next = phi i32 [ %grown, %up ], [ %half, %down ]
  %more = add nuw nsw i32 %steps, 1
  %late = icmp ugt i32 %more, 60
  br i1 %late, label %end, label %head
stop:
  store i32 %steps, ptr %q
  br label %end
"""
"""Leaves its loop after as many rounds as each thread needs; threads that need more than 60 return within it."""


def collatz(value: int) -> int:
    steps = 0
    while value > 1:
        value = 3 * value + 1 if value & 1 else value >> 1
        steps += 1
        if steps > 60:
            return -1
    return steps


@pytest.mark.parametrize(("block", "width"), [(37, 1), (37, 4), (7, 16), (64, 32), (100, 64)])
@pytest.mark.sample(3)
def test_loop_that_threads_leave_in_different_rounds(device: Device, block: int, width: int) -> None:
    values = np.arange(100, dtype=np.int32)
    found = transform(device, COLLATZ, values, block=block, width=width)
    np.testing.assert_array_equal(found, [collatz(int(value)) for value in values])


SWITCH = f"""{PLACES}
  switch i32 %v, label %other [ i32 0, label %zero
                                i32 1, label %one
                                i32 5, label %one
                                i32 7, label %end ]
zero:
  store i32 100, ptr %q
  br label %end
one:
  %first = icmp eq i32 %v, 1
  br i1 %first, label %really, label %five
really:
  store i32 101, ptr %q
  br label %join
five:
  %i5 = trunc i64 %i to i32
  store i32 %i5, ptr %q
  br label %join
join:
  %w = load i32, ptr %q
  %w2 = mul i32 %w, 2
  store i32 %w2, ptr %q
  br label %end
other:
  %sum = add i32 %v, 1000
  store i32 %sum, ptr %q
  br label %end
"""


def test_switch_with_a_branch_inside(device: Device) -> None:
    values = np.random.default_rng(3).integers(0, 9, 100).astype(np.int32)
    expected = [{0: 100, 1: 202, 5: 2 * i, 7: -1}.get(int(value), int(value) + 1000) for i, value in enumerate(values)]
    np.testing.assert_array_equal(transform(device, SWITCH, values), expected)


DIVISION = f"""{PLACES}
  %safe = icmp ne i32 %v, 0
  br i1 %safe, label %divide, label %end
divide:
  %quotient = sdiv i32 1000, %v
  %rest = srem i32 1000, %v
  %both = add i32 %quotient, %rest
  store i32 %both, ptr %q
  br label %end
"""


def test_division_is_not_done_for_threads_that_would_divide_by_zero(device: Device) -> None:
    values = np.random.default_rng(4).integers(-3, 4, 100).astype(np.int32)
    quotients = [int(1000 / int(value)) if value else 0 for value in values]
    expected = [q + 1000 - q * int(v) if v else -1 for q, v in zip(quotients, values, strict=True)]
    np.testing.assert_array_equal(transform(device, DIVISION, values), expected)


GATHER = f"""{PLACES}
  %neg = icmp slt i32 %v, 0
  br i1 %neg, label %end, label %read
read:
  %wide = zext i32 %v to i64
  %from = getelementptr i32, ptr %x, i64 %wide
  %there = load i32, ptr %from
  %last = sub i64 %n, 1
  %mirror = sub i64 %last, %i
  %to = getelementptr i32, ptr %out, i64 %mirror
  store i32 %there, ptr %to
  br label %end
"""


def test_gather_and_scatter_touch_no_memory_of_threads_that_are_not_there(device: Device) -> None:
    """An index below 0 would be an address that no memory has."""
    values = np.random.default_rng(5).permutation(100).astype(np.int32)
    values[::3] = -(2**31)
    expected = np.array([values[value] if value >= 0 else -1 for value in values])[::-1]
    np.testing.assert_array_equal(transform(device, GATHER, values), expected)


UNIFORM = f"""{PLACES}
  %big = icmp sgt i32 %v, 50
  br i1 %big, label %look, label %end
look:
  %address = load i64, ptr %x
  %flag = icmp eq i64 %address, 0
  %use = select i1 %flag, i32 7, i32 8
  store i32 %use, ptr %q
  br label %end
"""


@pytest.mark.parametrize("limit", [0, 90])
def test_uniform_load_under_a_mask(device: Device, limit: int) -> None:
    values = np.arange(100, dtype=np.int32)
    values[values < limit] = 0
    expected = np.where(values > 50, 8 if limit == 0 else 7, -1)
    np.testing.assert_array_equal(transform(device, UNIFORM, values), expected)


WRAP = f"""{PLACES}
  %k = sub i64 %i, 40
  %negative = icmp slt i64 %k, 0
  %extent = select i1 %negative, i64 %n, i64 0
  %index = add i64 %k, %extent
  %from = getelementptr i32, ptr %x, i64 %index
  %there = load i32, ptr %from
  %far = icmp sgt i64 %k, -1
  %from.far = select i1 %far, i64 0, i64 %n
  %half = getelementptr i32, ptr %out, i64 %k
  %to = getelementptr i32, ptr %half, i64 %from.far
  store i32 %there, ptr %to
  br label %end
"""


@pytest.mark.parametrize("width", [4, 16, 64])
@pytest.mark.sample(2)
def test_negative_indices_of_some_lanes_count_from_the_end(device: Device, width: int) -> None:
    values = np.random.default_rng(6).integers(0, 99, 150).astype(np.int32)
    np.testing.assert_array_equal(transform(device, WRAP, values, threads=150, block=64, width=width), values)


APART = """
  %first = mul i64 %i, {step}
  %p = getelementptr {kind}, ptr %x, i64 %first
  %v = load {kind}, ptr %p
  %w = add {kind} %v, 1
  %q = getelementptr {kind}, ptr %out, i64 %first
  store {kind} %w, ptr %q
  br label %end
"""


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64])
@pytest.mark.parametrize("step", [2, 3, 4, 5])
def test_elements_that_are_a_few_apart(device: Device, kind: type, step: int) -> None:
    """Those in between are not written."""
    body = APART.format(step=step, kind=f"i{np.dtype(kind).itemsize * 8}")
    values = np.random.default_rng(8).integers(0, 99, 70 * step).astype(kind)
    x, out = to_device(values), to_device(np.full(70 * step, -1, kind))
    run(device, kernel(body, IN_OUT), IN_OUT, out.address, x.address, 70, threads=70, block=35, width=16)
    expected = np.full(70 * step, -1, kind)
    expected[::step] = values[::step] + 1
    np.testing.assert_array_equal(out.copy_to_host(), expected)


GUARDS = {
    "both": "%c = and i1 %above, %below",
    "first": "%c = select i1 %above, i1 %below, i1 false",
    "unsigned": "%k = sub nsw i64 %i, 5\n  %c = icmp ult i64 %k, 70",
    "reversed": "%k = sub nsw i64 74, %i\n  %low = icmp sgt i64 %k, -1\n  %c = and i1 %low, %above",
    "equal": "%m = mul nsw i64 %i, 3\n  %c = icmp eq i64 %m, 72",
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", GUARDS)
@pytest.mark.parametrize("returns", [True, False], ids=["return", "go on"])
def test_threads_that_return_at_once(device: Device, name: str, returns: bool) -> None:
    """Threads 5 to 74 go on, or thread 24 alone; or these return and the others go on."""
    targets = "%end, label %do" if returns else "%do, label %end"
    text = f"""
define void @k(ptr noalias %item, ptr %out) {{
entry:
{GLOBAL_X}
  %above = icmp sge i64 %i, 5
  %below = icmp slt i64 %i, 75
  {GUARDS[name]}
  br i1 %c, label {targets}
do:
  %q = getelementptr i32, ptr %out, i64 %i
  store i32 7, ptr %q
  br label %end
end:
  ret void
}}
"""
    out = to_device(np.zeros(128, np.int32))
    run(device, text, [("out", "ptr")], out.address, threads=128, block=64, width=8)
    expected = np.arange(128) == 24 if name == "equal" else (np.arange(128) >= 5) & (np.arange(128) < 75)
    np.testing.assert_array_equal(out.copy_to_host() == 7, expected ^ returns)


ATOMICS = f"""{PLACES}
  %odd = and i32 %v, 1
  %is = icmp eq i32 %odd, 1
  br i1 %is, label %add, label %end
add:
  %old = atomicrmw add ptr %out, i32 1 monotonic
  %slot = add i32 %old, 1
  %wide = sext i32 %slot to i64
  %place = getelementptr i32, ptr %out, i64 %wide
  store i32 %v, ptr %place
  br label %end
"""


def test_every_thread_does_its_own_atomic(device: Device) -> None:
    values = np.arange(100, dtype=np.int32)
    found = transform(device, ATOMICS.replace("%old, 1", "%old, 2"), values)
    assert found[0] == 49
    np.testing.assert_array_equal(np.sort(found[1:51]), np.arange(1, 100, 2))


SPECIAL = """
  %p = getelementptr double, ptr %x, i64 %i
  %q = getelementptr double, ptr %out, i64 %i
  %v = load double, ptr %p
  %small = call double @llvm.minnum.f64(double %v, double 1.0)
  %nan = fcmp uno double %v, 0.0
  br i1 %nan, label %one, label %two
one:
  store double %small, ptr %q
  br label %end
two:
  %negative = fneg double %v
  %quotient = fdiv double 1.0, %negative
  store double %quotient, ptr %q
  br label %end
"""


BINS = {
    "what was just read": """
  %v = load i8, ptr %p
  %bin = zext i8 %v to i64
  %q = getelementptr i32, ptr %out, i64 %bin
  %old = atomicrmw add ptr %q, i32 1 monotonic
""",
    "what was there before another wrote": """
  %v = load i8, ptr %p
  store i8 7, ptr %p
  %bin = zext i8 %v to i64
  %q = getelementptr i32, ptr %out, i64 %bin
  %old = atomicrmw add ptr %q, i32 1 monotonic
""",
    "what is needed twice": """
  %v = load i8, ptr %p
  %bin = zext i8 %v to i64
  %q = getelementptr i32, ptr %out, i64 %bin
  %old = atomicrmw add ptr %q, i32 1 monotonic
  %less = sub i8 %v, 1
  store i8 %less, ptr %p
""",
    "what is read at a place that was read": """
  %v = load i8, ptr %p
  %wide = zext i8 %v to i64
  %p2 = getelementptr i8, ptr %x, i64 %wide
  %v2 = load i8, ptr %p2
  %bin = zext i8 %v2 to i64
  %q = getelementptr i32, ptr %out, i64 %bin
  %old = atomicrmw add ptr %q, i32 1 monotonic
""",
    "a number that was read for a place": """
  %v = load i8, ptr %p
  %low = and i8 %v, 63
  %wide = zext i8 %low to i64
  %p2 = getelementptr i32, ptr %out, i64 %wide
  %times = zext i8 %v to i32
  %old = atomicrmw add ptr %p2, i32 %times monotonic
""",
    "one for each thread": """
  %low = and i64 %i, 127
  %next = add i64 %low, 3
  %q = getelementptr i32, ptr %out, i64 %next
  %v = load i8, ptr %p
  %times = zext i8 %v to i32
  %old = atomicrmw umax ptr %q, i32 %times monotonic
""",
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("width", [2, 4, 64])
@pytest.mark.parametrize("counted", BINS)
def test_operands_of_what_is_done_for_one_lane_after_another(device: Device, counted: str, width: int) -> None:
    """The operands of an atomic operation are computed, and loaded, for each lane in turn."""
    body = f"  %p = getelementptr i8, ptr %x, i64 %i\n{BINS[counted]}  br label %end\n"
    threads, n = 256, 200
    values = np.random.default_rng(9).integers(0, 256, threads, np.uint8)
    x, out = to_device(values), to_device(np.zeros(256, np.int32))
    run(device, kernel(body, IN_OUT), IN_OUT, out.address, x.address, n, threads=threads, block=128, width=width)
    expected, after = np.zeros(256, np.int32), values.copy()
    for thread, value in enumerate(values[:n].tolist()):
        if counted == "a number that was read for a place":
            expected[value & 63] += value
        elif counted == "one for each thread":
            place = (thread & 127) + 3
            expected[place] = max(expected[place], value)
        else:
            expected[values[value] if "at a place" in counted else value] += 1
        after[thread] = {
            "what was there before another wrote": 7, "what is needed twice": (value - 1) % 256
        }.get(counted, value)  # fmt: skip
    np.testing.assert_array_equal(out.copy_to_host(), expected)
    np.testing.assert_array_equal(x.copy_to_host(), after)


def test_special_values_of_floats(device: Device) -> None:
    values = np.resize(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 2.0]), 100)
    with np.errstate(all="ignore"):
        expected = np.where(np.isnan(values), 1.0, 1.0 / -values)
    found = transform(device, SPECIAL, values)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


SATURATING = """
  %p = getelementptr float, ptr %x, i64 %i
  %q = getelementptr i32, ptr %out, i64 %i
  %v = load float, ptr %p
  %positive = fcmp ogt float %v, 1.0
  br i1 %positive, label %signed, label %unsigned
signed:
  %whole = call i32 @llvm.fptosi.sat.i32.f32(float %v)
  store i32 %whole, ptr %q
  br label %end
unsigned:
  %byte = call i8 @llvm.fptoui.sat.i8.f32(float %v)
  %wide = zext i8 %byte to i32
  store i32 %wide, ptr %q
  br label %end
"""


def test_saturating_conversions(device: Device) -> None:
    values = np.resize(np.array([1e30, 2.9, np.inf, -np.inf, np.nan, -3.5, 0.9, 2.0**31], np.float32), 100)
    found = transform(device, SATURATING, values.view(np.int32))
    np.testing.assert_array_equal(found, np.resize([2**31 - 1, 2, 2**31 - 1, 0, 0, 0, 0, 2**31 - 1], 100))


def test_form_says_how_many_threads_run_at_a_time(device: Device) -> None:
    x = to_device(np.zeros(100, np.int32))
    for block, width, lanes in ((37, 8, 8), (5, 16, 16), (64, 64, 64)):
        function = run(device, kernel(SWITCH, IN_OUT), IN_OUT, x.address, x.address, 100, block=block, width=width)
        assert f"vectors (NUMBA_HIP_CPU_FORM asks for it; {lanes} threads" in str(function.form)


def test_kernel_that_vectors_cannot_hold_runs_one_thread_after_another(device: Device) -> None:
    body = """
  %p = getelementptr i128, ptr %x, i64 %i
  %v = load i128, ptr %p
  %w = mul i128 %v, %v
  %q = getelementptr i128, ptr %out, i64 %i
  store i128 %w, ptr %q
  br label %end
"""
    values = np.zeros((20, 2), np.uint64)
    values[:, 0] = np.arange(20) << 40
    x, out = to_device(values), to_device(np.zeros_like(values))
    function = run(device, kernel(body, IN_OUT), IN_OUT, out.address, x.address, 20, threads=20)
    assert function.form is not None
    assert "loop (the form 'vectors' cannot run it: vectors cannot hold values of type i128)" in function.form
    squares = [(number << 40) ** 2 for number in range(20)]
    np.testing.assert_array_equal(out.copy_to_host()[:, 1], [square >> 64 for square in squares])


def test_vectors_of_one_thread_are_no_lanes(device: Device) -> None:
    body = """
  %p = getelementptr <4 x i32>, ptr %x, i64 %i
  %v = load <4 x i32>, ptr %p
  %w = shufflevector <4 x i32> %v, <4 x i32> poison, <4 x i32> <i32 3, i32 2, i32 1, i32 0>
  %q = getelementptr <4 x i32>, ptr %out, i64 %i
  store <4 x i32> %w, ptr %q
  br label %end
"""
    values = np.arange(80, dtype=np.int32).reshape(20, 4)
    x, out = to_device(values), to_device(np.zeros_like(values))
    function = run(device, kernel(body, IN_OUT), IN_OUT, out.address, x.address, 20, threads=20)
    assert "vectors cannot hold values of type <4 x i32>" in str(function.form)
    np.testing.assert_array_equal(out.copy_to_host(), values[:, ::-1])


@pytest.mark.parametrize("text", ["0", "3", "128", "many"])
def test_number_of_lanes_that_there_cannot_be(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("NUMBA_HIP_CPU_WIDTH", text)
    with pytest.raises(SettingError, match=f"NUMBA_HIP_CPU_WIDTH='{text}': must be a power of two up to 64"):
        config.cpu_width()
