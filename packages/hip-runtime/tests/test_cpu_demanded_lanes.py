"""What only some lanes of a wave use, computed in as few lanes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from spmd_blocks import kernel, launch

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.vectorize import first_lanes

WAVE = 64


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many lanes each instruction is computed in, by its name without numbers that LLVM adds."""
    found: dict[str, int] = {}

    class Spy(first_lanes.DemandedLanes):
        def count(self, value: Any) -> int:
            number = super().count(value)
            found[value.name] = number
            return number

    monkeypatch.setattr(first_lanes, "DemandedLanes", Spy)
    return found


def combine(steps: list[tuple[str, int]], operation: str = "add") -> str:
    """Lanes combine ``%v``, a number of each, step by step: leaves ``%total``."""
    lines, total = [], "%v"
    for number, (how, distance) in enumerate(steps):
        source = f"%from{number}"
        lines += [
            f"{source} = {how} i32 %lane, {distance}",
            f"%moved{number} = call i32 @spmd.shuffle.i32(ptr %item, i32 {total}, i32 {source})",
            f"%step{number} = {operation} i32 {total}, %moved{number}",
        ]
        total = f"%step{number}"
    return "\n".join(["%lane = call i32 @spmd.lane(ptr %item)", *lines, f"%total = add i32 {total}, 0\n"])


def model(values: Any, steps: list[tuple[str, int]], operation: Any = np.add, wave: int = WAVE) -> Any:
    """What `combine` leaves in each lane of whole and of shorter waves."""
    total, thread = values.copy(), np.arange(len(values))
    for how, distance in steps:
        lane = {"add": np.add, "sub": np.subtract, "xor": np.bitwise_xor}[how](thread % wave, distance)
        source = thread - thread % wave + lane
        exists = (lane >= 0) & (lane < wave) & (source < len(values))
        total = operation(total, total[np.where(exists, source, thread)])
    return total


HALVES = [("add", distance) for distance in (32, 16, 8, 4, 2, 1)]
BUTTERFLY = [("xor", distance) for distance in (1, 2, 4, 8, 16, 32)]

USERS = """
  %p = getelementptr i32, ptr %x, i32 %t
  %v = load i32, ptr %p
  {sums}
  {test}
  br i1 %is.user, label %use, label %end
use:
  %place = getelementptr i32, ptr %out, i32 %t
  store i32 %total, ptr %place
  br label %end
end:
  ret void
"""


def run(device: Device, body: str, threads: Any, wave: int = WAVE, form: str = "auto") -> tuple[Any, Any]:
    """The numbers of threads, and what *body* leaves in an array that began with -1."""
    count = int(np.prod(threads))
    values = (np.arange(count, dtype=np.int32) * 7919 + 13) % 10007
    x, out = to_device(values), to_device(np.full(count, -1, np.int32))
    with config.cpu_form.scope(form):
        made = kernel(body, [("x", "ptr"), ("out", "ptr")], wave_size=wave)
        launch(device, made, 1, threads, x.address, out.address)
    return values, out.copy_to_host()


@pytest.mark.sample(4)
@pytest.mark.parametrize("threads", [64, 256, 100, 7, (16, 16), (64, 3), (96, 2), (9, 5, 3)])
@pytest.mark.parametrize("form", ["auto", "regions", "vectors"])
@pytest.mark.parametrize(("steps", "test", "users"), [
    (HALVES, "%is.user = icmp eq i32 %lane, 0", lambda lane, _: lane == 0),
    (HALVES, "%is.user = icmp eq i32 %lane, 5", lambda lane, _: lane == 5),
    (HALVES, "%is.user = icmp ult i32 %lane, 3", lambda lane, _: lane < 3),
    (HALVES, "%low = and i32 %tx, 63\n%is.user = icmp eq i32 %low, 0", lambda _, x: x % 64 == 0),
    (HALVES, "%low = urem i32 %tx, 32\n%is.user = icmp eq i32 %low, 1", lambda _, x: x % 32 == 1),
    (HALVES, "%low = and i32 %tx, 127\n%is.user = icmp eq i32 %low, 65", lambda _, x: x % 128 == 65),
    (HALVES, "%is.user = icmp eq i32 %t, 70", lambda lane, x: np.arange(len(x)) == 70),
    (BUTTERFLY, "%is.user = icmp eq i32 %lane, 63", lambda lane, _: lane == 63),
    (BUTTERFLY, "%is.user = icmp eq i32 %lane, 0", lambda lane, _: lane == 0),
    ([("sub", 1), ("sub", 2), ("sub", 4)], "%is.user = icmp eq i32 %lane, 9", lambda lane, _: lane == 9),
    ([("sub", 9), ("add", 40)], "%is.user = icmp sgt i32 %lane, -1", lambda lane, _: lane >= 0),
])  # fmt: skip
def test_users_get_what_lanes_combined(
    device: Device, threads: Any, form: str, steps: list[tuple[str, int]], test: str, users: Any
) -> None:
    values, found = run(device, USERS.format(sums=combine(steps), test=test), threads, form=form)
    thread = np.arange(len(values))
    x = thread % (threads if isinstance(threads, int) else threads[0])
    expected = np.where(users(thread % WAVE, x), model(values, steps), -1)
    np.testing.assert_array_equal(found, expected)


def test_a_sum_for_the_first_lane_takes_half_as_many_lanes_at_each_step(device: Device, counts: dict[str, int]) -> None:
    run(device, USERS.format(sums=combine(HALVES), test="%is.user = icmp eq i32 %lane, 0"), 256)
    assert [counts[f"step{number}"] for number in range(6)] == [32, 16, 8, 4, 2, 1]
    assert [counts[f"moved{number}"] for number in range(6)] == [32, 16, 8, 4, 2, 1]


def test_a_sum_for_every_lane_takes_all(device: Device, counts: dict[str, int]) -> None:
    run(device, USERS.format(sums=combine(HALVES), test="%is.user = icmp sgt i32 %t, -1"), 256)
    assert {counts[f"step{number}"] for number in range(6)} == {WAVE}


PHI = """
  %p = getelementptr i32, ptr %x, i32 %t
  %v = load i32, ptr %p
  {sums}
  %is.user = icmp eq i32 %lane, 0
  br i1 %is.user, label %use, label %end
use:
  %more = mul i32 %total, 3
  br label %end
end:
  %kept = phi i32 [ %v, %entry ], [ %more, %use ]
  %place = getelementptr i32, ptr %out, i32 %t
  store i32 %kept, ptr %place
  ret void
"""


def test_all_lanes_go_on_with_what_one_of_them_made(device: Device, counts: dict[str, int]) -> None:
    values, found = run(device, PHI.format(sums=combine(HALVES)), 192)
    thread = np.arange(192)
    np.testing.assert_array_equal(found, np.where(thread % WAVE == 0, 3 * model(values, HALVES), values))
    assert [counts[f"step{number}"] for number in range(6)] == [32, 16, 8, 4, 2, 1]


def test_no_lane_divides_by_what_it_did_not_compute(device: Device) -> None:
    """Lanes of which nothing is used may have any number, also zero."""
    steps = [("add", 32), ("add", 16)]
    sums = combine(steps).replace("%total = add i32 %step1, 0", "%odd = or i32 %step1, 1\n%total = udiv i32 %v, %odd")
    values, found = run(device, USERS.format(sums=sums, test="%is.user = icmp eq i32 %lane, 0"), 128)
    expected = np.where(np.arange(128) % WAVE == 0, values // (model(values, steps) | 1), -1)
    np.testing.assert_array_equal(found, expected)


LOOP = """
  %p = getelementptr i32, ptr %x, i32 %t
  %v = load i32, ptr %p
  %lane = call i32 @spmd.lane(ptr %item)
  %rounds = load i32, ptr %x
  %limit = and i32 %rounds, 15
  br label %round
round:
  %turn = phi i32 [ 0, %entry ], [ %next, %round ]
  %sum = phi i32 [ %v, %entry ], [ %more, %round ]
  %from = add i32 %lane, 1
  %moved = call i32 @spmd.shuffle.i32(ptr %item, i32 %sum, i32 %from)
  %more = add i32 %sum, %moved
  %next = add i32 %turn, 1
  %again = icmp ult i32 %next, %limit
  br i1 %again, label %round, label %after
after:
  %is.user = icmp eq i32 %lane, 0
  br i1 %is.user, label %use, label %end
use:
  %place = getelementptr i32, ptr %out, i32 %t
  store i32 %more, ptr %place
  br label %end
end:
  ret void
"""


def test_a_loop_whose_lanes_need_their_neighbours_needs_all(device: Device) -> None:
    values, found = run(device, LOOP, 128)
    expected = model(values, [("add", 1)] * (int(values[0]) & 15))
    np.testing.assert_array_equal(found, np.where(np.arange(128) % WAVE == 0, expected, -1))


ATOMIC = """
  %p = getelementptr i32, ptr %x, i32 %t
  %v = load i32, ptr %p
  {sums}
  %is.user = icmp eq i32 %lane, {lane}
  br i1 %is.user, label %use, label %end
use:
  {place}
  {old}atomicrmw add ptr %place, i32 %total monotonic
  {store}
  br label %end
end:
  ret void
"""


@pytest.mark.parametrize("threads", [256, 200, (16, 8)])
@pytest.mark.parametrize("lane", [0, 3])
@pytest.mark.parametrize("index", ["1", "%one"])
@pytest.mark.sample(4)
def test_one_lane_adds_for_its_wave(device: Device, threads: Any, lane: int, index: str) -> None:
    """To an element that is the same for all blocks, or depends on the block."""
    place = f"%one = add i32 %b, 1\n%place = getelementptr i32, ptr %out, i32 {index}"
    body = ATOMIC.format(sums=combine(HALVES), lane=lane, place=place, old="", store="")
    values, found = run(device, body, threads)
    users = np.arange(len(values)) % WAVE == lane
    assert found[1] == -1 + model(values, HALVES)[users].sum()
    assert (np.delete(found, 1) == -1).all()


def test_one_lane_adds_and_keeps_what_was_there(device: Device) -> None:
    body = ATOMIC.format(
        sums=combine(HALVES), lane=2, place="%place = getelementptr i32, ptr %x, i32 0", old="%old = ",
        store="%q = getelementptr i32, ptr %out, i32 %t\nstore i32 %old, ptr %q",
    )  # fmt: skip
    values, found = run(device, body, 64)
    assert found[2] == values[0]
    assert (np.delete(found, 2) == -1).all()


@pytest.mark.parametrize("kind", ["i8", "i16", "i64", "float", "double", "half"])
def test_sums_of_other_types(device: Device, kind: str) -> None:
    is_float = kind in ("float", "double", "half")
    convert = f"uitofp i32 %small to {kind}" if is_float else (
        f"trunc i32 %small to {kind}" if kind in ("i8", "i16") else f"zext i32 %small to {kind}"
    )  # fmt: skip
    back = f"fptoui {kind} %wide to i32" if is_float else (
        f"zext {kind} %wide to i32" if kind in ("i8", "i16") else f"trunc {kind} %wide to i32"
    )  # fmt: skip
    carrier = {"i8": "i32", "i16": "i32", "half": "float"}.get(kind, kind)
    lines, total = [], "%n"
    for number, distance in enumerate((32, 16, 8, 4, 2, 1)):
        widen, narrow = _moves(kind, carrier, total, number)
        lines += [
            f"%from{number} = add i32 %lane, {distance}", widen,
            f"%m{number} = call {carrier} @spmd.shuffle.{carrier}(ptr %item, {carrier} %c{number}, i32 %from{number})",
            narrow, f"%s{number} = {'fadd' if is_float else 'add'} {kind} {total}, %b{number}",
        ]  # fmt: skip
        total = f"%s{number}"
    body = USERS.format(
        sums="\n".join(["%small = and i32 %v, 7", f"%n = {convert}", "%lane = call i32 @spmd.lane(ptr %item)", *lines,
                        f"%wide = {'fadd' if is_float else 'add'} {kind} {total}, {'0.0' if is_float else '0'}",
                        f"%total = {back}"]),
        test="%is.user = icmp eq i32 %lane, 0",
    )  # fmt: skip
    values, found = run(device, body, 128)
    sums = (values & 7).reshape(2, WAVE).sum(axis=1)
    np.testing.assert_array_equal(found[::WAVE], sums % 256 if kind == "i8" else sums)


def _moves(kind: str, carrier: str, total: str, number: int) -> tuple[str, str]:
    """To the type that is shuffled, and back."""
    if kind == carrier:
        return f"%c{number} = select i1 true, {kind} {total}, {kind} {total}", (
            f"%b{number} = select i1 true, {kind} %m{number}, {kind} %m{number}"
        )
    wide, narrow = ("fpext", "fptrunc") if kind == "half" else ("zext", "trunc")
    return f"%c{number} = {wide} {kind} {total} to {carrier}", f"%b{number} = {narrow} {carrier} %m{number} to {kind}"
