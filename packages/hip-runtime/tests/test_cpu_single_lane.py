"""Blocks that one lane of a gang can run, at most: it is known which, and what it does is done for it alone."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pytest
from spmd_blocks import kernel, launch
from test_cpu_strided import before_a_guard, behind_a_guard

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.vectorize.widen import Widener

Alone = list[tuple[int, str]]


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Alone:
    """The lanes that do something for themselves, each with the opcode."""
    found: Alone = []

    def listen(name: str) -> None:
        original = getattr(Widener, name)

        def write(self: Any, instruction: Any, lane: int) -> Any:
            found.append((lane, instruction.opcode))
            return original(self, instruction, lane)

        monkeypatch.setattr(Widener, name, write)

    for name in ("load_alone", "store_alone", "compute_alone"):
        listen(name)
    return found


EDGE = """
  %own = getelementptr float, ptr %out, i32 %i
  store float -2.0, ptr %own
  %four = mul i32 %i, 4
  %used = getelementptr float, ptr %third, i32 %four
  {test}
  br i1 %is.user, label %use, label %end
use:
  %before = add i32 %i, -1
  %near = getelementptr float, ptr %x, i32 %before
  %twice = mul i32 %i, 2
  %apart = getelementptr float, ptr %x, i32 %twice
  %product = mul i32 %i, %i
  %place = urem i32 %product, 37
  %any = getelementptr float, ptr %x, i32 %place
  %one = load float, ptr %near
  %two = load float, ptr %apart
  %three = load float, ptr %any
  %sum = fadd float %one, %two
  %quotient = fdiv float %sum, %three
  %is.large = fcmp ogt float %quotient, 1.0
  br i1 %is.large, label %large, label %small
large:
  %less = fsub float %quotient, %sum
  br label %small
small:
  %kept = phi float [ %quotient, %use ], [ %less, %large ]
  %lower = fmul float %kept, 0.5
  %chosen = select i1 %is.large, float %kept, float %lower
  store float %chosen, ptr %own
  %spread = add i32 %four, 2
  %far = getelementptr float, ptr %third, i32 %spread
  store float %sum, ptr %far
  br label %end
end:
  ret void
"""
"""Numbers are used before the branch: LLVM replaces what it computes behind it by constants. Two elements from %used on
are for what tests leave there."""


def model(x: Any, i: Any) -> tuple[Any, Any]:
    """What `EDGE` stores to out and to third in its users, of the threads *i*, in float32."""
    total = x[i - 1] + x[2 * i]
    quotient = total / x[i.astype(np.uint64) ** 2 % 37]
    return np.where(quotient > 1, quotient - total, quotient * np.float32(0.5)), total


TESTS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "its index": ("%is.user = icmp eq i32 %tx, 5", lambda tx, i: tx == 5),
    "its index, not equal": ("%other = icmp ne i32 %tx, 9\n%is.user = xor i1 %other, true", lambda tx, i: tx == 9),
    "a wide index": ("%wide = zext i32 %tx to i64\n%is.user = icmp eq i64 %wide, 3", lambda tx, i: tx == 3),
    "an index from one on": (
        "%tx1 = add i32 %tx, 1\nstore i32 %tx1, ptr %used\n%is.user = icmp eq i32 %tx1, 16",
        lambda tx, i: tx == 15,
    ),
    "an index from the end": (
        "%tx1 = add nsw i32 %tx, -20\n%w = sext i32 %tx1 to i64\nstore i64 %w, ptr %used, align 4\n"
        "%is.user = icmp eq i64 %w, -13",
        lambda tx, i: tx == 7,
    ),
    "a remainder": ("%low = and i32 %tx, 63\n%is.user = icmp eq i32 %low, 2", lambda tx, i: tx % 64 == 2),
    "several": ("%low = and i32 %tx, 3\n%is.user = icmp eq i32 %low, 2", lambda tx, i: tx % 4 == 2),
    "one of two": (
        "%a = icmp eq i32 %tx, 1\n%b2 = icmp eq i32 %tx, 14\n%is.user = or i1 %a, %b2",
        lambda tx, i: (tx == 1) | (tx == 14),
    ),
    "and data": (
        "%q = getelementptr float, ptr %x, i32 %i\n%v = load float, ptr %q\n%big = fcmp ogt float %v, 0.5\n"
        "%a = icmp eq i32 %tx, 4\n%is.user = select i1 %a, i1 %big, i1 false",
        lambda tx, i: tx == 4,
    ),
    "none": ("%even = shl i32 %tx, 1\n%is.user = icmp eq i32 %even, 5", lambda tx, i: tx < 0),
}  # fmt: skip
PARAMETERS = [("x", "ptr"), ("out", "ptr"), ("third", "ptr")]
BARRIER = "  call void @spmd.barrier(ptr %item)\n"


def run_edge(device: Device, body: str, threads: Any, form: str, width: int | None) -> Any:
    """The numbers of all threads, what they load from, and what *body* leaves in out and third, -1 at first."""
    count = 3 * int(np.prod(threads))
    values = np.random.default_rng(count).random(2 * count, np.float32) + np.float32(0.25)
    x = to_device(values)
    out, third = (to_device(np.full(length, -1, np.float32)) for length in (count, 4 * count))
    with config.cpu_form.scope(form), config.cpu_width.scope(width):
        launch(device, kernel(body, PARAMETERS), 3, threads, x.address, out.address, third.address)
    return np.arange(count), values, out.copy_to_host(), third.copy_to_host()


@pytest.mark.sample(5)
@pytest.mark.parametrize("barrier", ["", BARRIER])
@pytest.mark.parametrize("form", ["auto", "vectors"])
@pytest.mark.parametrize("width", [None, 1, 4, 16, 64])
@pytest.mark.parametrize("threads", [64, 128, 100, 33, (16, 16), (48, 2), (7, 5)])
@pytest.mark.parametrize("test", TESTS)
def test_what_one_lane_does(
    device: Device, test: str, threads: Any, width: int | None, form: str, barrier: str
) -> None:
    text, users = TESTS[test]
    i, x, out, third = run_edge(device, barrier + EDGE.format(test=text), threads, form, width)
    tx = i % (threads if isinstance(threads, int) else threads[0])
    on = users(tx, i) & ((x[i] > 0.5) | (test != "and data")) & (i > 0)
    expected, total = model(x, np.maximum(i, 1))
    np.testing.assert_array_equal(out[1:], np.where(on, expected, -2)[1:])
    np.testing.assert_array_equal(third[6::4], np.where(on, total, -1)[1:])
    assert (third[3::4] == -1).all()


NEW_EDGE = EDGE.replace("1.0", "2.0")
"""For tests that watch it being compiled: no other test has had it compiled before."""


@pytest.mark.parametrize(("test", "threads", "lane"), [
    ("its index", 64, 5),
    ("its index", (16, 16), 5),
    ("a wide index", 128, 3),
    ("an index from one on", (16, 16), 15),
    ("an index from the end", (16, 4), 7),
    ("a remainder", 64, 2),
    ("and data", (16, 16), 4),
])  # fmt: skip
@pytest.mark.sample(4)
def test_it_is_known_which_lane(device: Device, alone: Alone, test: str, threads: Any, lane: int) -> None:
    """All that varies is computed for it alone, with loads, stores and divisions."""
    run_edge(device, NEW_EDGE.format(test=TESTS[test][0]), threads, "vectors", 16)
    assert {number for number, _ in alone} == {lane}
    assert {opcode for _, opcode in alone} >= {"load", "store", "fadd", "fdiv", "fcmp", "mul", "urem", "select"}


@pytest.mark.parametrize("test", ["several", "one of two", "none"])
def test_it_is_not_known_where_there_may_be_more(device: Device, alone: Alone, test: str) -> None:
    run_edge(device, NEW_EDGE.format(test=TESTS[test][0]), 64, "vectors", 16)
    assert not alone


def test_gangs_that_begin_anywhere_do_not_know(device: Device, alone: Alone) -> None:
    """In blocks of 40, whose first index is a multiple of 8."""
    body = EDGE.format(test="%is.user = icmp eq i32 %i, 70")
    i, x, out, _ = run_edge(device, body, 40, "vectors", 32)
    assert not alone
    np.testing.assert_array_equal(out, np.where(i == 70, model(x, np.maximum(i, 1))[0], -2))


def test_a_lane_alone_needs_no_vector_of_quotients(device: Device, capfd: pytest.CaptureFixture[str]) -> None:
    with config.dump.scope("asm"):
        run_edge(device, EDGE.replace("1.0", "3.0").format(test=TESTS["its index"][0]), 64, "vectors", 16)
    text = capfd.readouterr().err
    assert "divss" in text or "fdiv\ts" in text
    assert "divps" not in text


NEIGHBOUR = """
  %is.user = icmp eq i32 %tx, 11
  br i1 %is.user, label %use, label %end
use:
  %p = getelementptr float, ptr %x, i32 %tx
  %v = load float, ptr %p, align 4
  %more = fadd float %v, 1.0
  %times = mul i32 %tx, 2
  %q = getelementptr float, ptr %out, i32 %times
  store float %more, ptr %q, align 4
  br label %end
end:
  ret void
"""


@pytest.mark.parametrize("guarded", [before_a_guard, behind_a_guard])
@pytest.mark.parametrize("width", [4, 16, 64])
@pytest.mark.sample(4)
def test_only_the_lane_accesses_memory(
    device: Device, width: int, guarded: Callable[[int], AbstractContextManager[int]]
) -> None:
    with guarded(4) as x, guarded(4) as out:
        number, result = (ctypes.c_float.from_address(address) for address in (x, out))
        number.value = 41
        with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
            made = kernel(NEIGHBOUR, [("x", "ptr"), ("out", "ptr")])
            launch(device, made, 1, 64, x - 4 * 11, out - 8 * 11)
        assert result.value == 42


ATOMIC = """
  %q = getelementptr i32, ptr %out, i32 %i
  store i32 -2, ptr %q
  %is.user = icmp eq i32 %tx, 6
  br i1 %is.user, label %use, label %end
use:
  %p = getelementptr i32, ptr %x, i32 %i
  %bin = load i32, ptr %p
  %place = getelementptr i32, ptr %bins, i32 %bin
  %old = atomicrmw add ptr %place, i32 %bin monotonic
  store i32 %old, ptr %q
  %more = atomicrmw add ptr %bins, i32 %bin monotonic
  br label %end
end:
  ret void
"""


@pytest.mark.parametrize("threads", [64, (16, 8), 40])
def test_atomic_operations_of_one_lane(device: Device, threads: Any) -> None:
    count = int(np.prod(threads))
    values = 1 + np.arange(count, dtype=np.int32)
    x, bins = to_device(values), to_device(np.full(count + 1, 100, np.int32))
    out = to_device(np.full(count, -1, np.int32))
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(16):
        made = kernel(ATOMIC, [("x", "ptr"), ("bins", "ptr"), ("out", "ptr")])
        launch(device, made, 1, threads, x.address, bins.address, out.address)
    thread = np.arange(count)
    on = thread % (threads if isinstance(threads, int) else threads[0]) == 6
    expected = np.full(count + 1, 100)
    expected[values[on]] += values[on]
    expected[0] += values[on].sum()
    np.testing.assert_array_equal(bins.copy_to_host(), expected)
    np.testing.assert_array_equal(out.copy_to_host(), np.where(on, 100, -2))


GOES_ON = """
  %own = getelementptr float, ptr %out, i32 %i
  store float -2.0, ptr %own
  %is.user = icmp eq i32 %tx, 13
  br i1 %is.user, label %use, label %end
use:
  %p = getelementptr float, ptr %x, i32 %i
  %v = load float, ptr %p
  %quotient = fdiv float 1.0, %v
  %more = fadd float %quotient, %v
  br label %end
end:
  %kept = phi float [ 5.0, %entry ], [ %more, %use ]
  %other = phi float [ 6.0, %entry ], [ %v, %use ]
  %product = fmul float %kept, %other
  store float %product, ptr %own
  ret void
"""


@pytest.mark.parametrize("barrier", ["", BARRIER])
@pytest.mark.parametrize("threads", [64, (16, 4), 45])
@pytest.mark.sample(4)
def test_what_one_lane_computed_goes_on_with_all(device: Device, threads: Any, barrier: str) -> None:
    i, x, out, _ = run_edge(device, barrier + GOES_ON, threads, "vectors", 16)
    on = i % (threads if isinstance(threads, int) else threads[0]) == 13
    np.testing.assert_array_equal(out, np.where(on, (np.float32(1) / x[i] + x[i]) * x[i], 30))


LOOP = """
  br label %round
round:
  %j = phi i32 [ %tx, %entry ], [ %next, %after ]
  %hit = icmp eq i32 %j, {number}
  br i1 %hit, label %use, label %after
use:
  %p = getelementptr float, ptr %x, i32 %j
  %v = load float, ptr %p
  %more = fadd float %v, 1.0
  %q = getelementptr float, ptr %out, i32 %i
  store float %more, ptr %q
  br label %after
after:
  %next = add i32 %j, 16
  %again = icmp slt i32 %next, 100
  br i1 %again, label %round, label %end
end:
  ret void
"""


@pytest.mark.parametrize("threads", [16, (16, 3), 13])
def test_an_iteration_of_one_lane(device: Device, alone: Alone, threads: Any) -> None:
    count = int(np.prod(threads))
    values = np.random.default_rng(1).random(100, np.float32)
    x, out = to_device(values), to_device(np.full(count, -1, np.float32))
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(16):
        made = kernel(LOOP.format(number=67), [("x", "ptr"), ("out", "ptr")])
        launch(device, made, 1, threads, x.address, out.address)
    tx = np.arange(count) % (threads if isinstance(threads, int) else threads[0])
    expected = np.where(tx == 67 % 16, values[67] + np.float32(1), -1)
    np.testing.assert_array_equal(out.copy_to_host(), expected)
    width = 16 if threads != 13 else 8
    assert {lane for lane, _ in alone} == {67 % width}
