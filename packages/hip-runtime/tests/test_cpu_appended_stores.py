"""Stores at places that an atomic counter gives: packed to neighbours, unless a place is negative or wraps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.object_code.host_machine import has_mask_registers, packs_lanes, vector_bytes
from hip_runtime.drivers.cpu.vectorize import memory_accesses

COUNT, BLOCK = 1000, 128
PARAMETERS = [("x", "ptr"), ("count", "ptr"), ("middle", "ptr"), ("places", "ptr"), ("limit", "i64"), ("n", "i64")]
TYPES = {
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "half": np.float16, "float": np.float32,
    "double": np.float64,
}  # fmt: skip


def appending(kind: str, counter: str, index: str, checked: bool) -> str:
    """A kernel that appends the numbers of *kind* whose own index, shuffled, is below ``limit``, to where *index* says;
    it keeps each one's place. ``middle`` is an address with room on both sides of it."""
    wide = f"{index} {counter} %place to i64" if counter != "i64" else "add i64 %place, 0"
    guard = "  %chosen = icmp slt i64 %mixed, %limit\n  br i1 %chosen, label %append, label %end\nappend:\n"
    return f"""
define void @k(ptr noalias %item, ptr noalias %x, ptr noalias %count, ptr noalias %middle, ptr noalias %places,
               i64 %limit, i64 %n) {{
entry:
{GLOBAL_X}
  %px = getelementptr {kind}, ptr %x, i64 %i
  %v = load {kind}, ptr %px
  %times = mul i64 %i, 7919
  %mixed = urem i64 %times, {COUNT}
{guard if checked else ""}
  %place = atomicrmw add ptr %count, {counter} 1 monotonic
  %wide = {wide}
  %negative = icmp slt {counter} %place, 0
  %more = select i1 %negative, i64 %n, i64 0
  %from = getelementptr {kind}, ptr %middle, i64 %more
  %at = getelementptr {kind}, ptr %from, i64 %wide
  store {kind} %v, ptr %at
  %own = getelementptr i64, ptr %places, i64 %i
  store i64 %wide, ptr %own
  br label %end
end:
  ret void
}}
"""


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each store that is not contiguous, as far as is known, is packed."""
    found: list[bool] = []
    real = memory_accesses.is_appended

    def is_appended(*arguments: Any) -> bool:
        found.append(real(*arguments))
        return found[-1]

    monkeypatch.setattr(memory_accesses, "is_appended", is_appended)
    return found


def append(
    device: Device, kind: str, counter: str, width: int, start: int, limit: int, *, index: str = "sext",
    checked: bool = True,
) -> None:  # fmt: skip
    dtype: Any = TYPES[kind]
    values = np.random.default_rng(5).integers(-100, 100, COUNT).astype(dtype)
    room = 2 * COUNT
    x, places = to_device(values), to_device(np.full(COUNT, room, np.int64))
    count = to_device(np.array([start], np.int32 if counter == "i32" else np.int64))
    whole = to_device(np.zeros(4 * room, dtype))
    threads = COUNT // BLOCK * BLOCK
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        function = device.load(code(appending(kind, counter, index, checked), "k", PARAMETERS)).function("k")
        middle = whole.address + 2 * room * values.itemsize
        function.launch(
            threads // BLOCK, BLOCK, pack(function.kernel, x.address, count.address, middle, places.address, limit, 17)
        )
    chosen = np.flatnonzero(np.arange(threads) * 7919 % COUNT < limit) if checked else np.arange(threads)
    assert count.copy_to_host()[0] == start + chosen.size
    taken = places.copy_to_host()
    np.testing.assert_array_equal(np.sort(taken[chosen]), np.arange(start, start + chosen.size))
    assert (np.delete(taken, chosen) == room).all()
    expected = np.zeros(4 * room, dtype)
    expected[2 * room + taken[chosen] + np.where(taken[chosen] < 0, 17, 0)] = values[chosen]
    if start >= 0:  # else what is behind 0 is written twice
        np.testing.assert_array_equal(whole.copy_to_host(), expected)
    else:
        found = whole.copy_to_host()[2 * room + taken[chosen] + np.where(taken[chosen] < 0, 17, 0)]
        alone = ~np.isin(taken[chosen], [*range(-17, 0), *range(17)])
        np.testing.assert_array_equal(found[alone], values[chosen][alone])


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("counter", ["i32", "i64"])
@pytest.mark.parametrize("width", [8, 32, 64])
@pytest.mark.usefixtures("kept_programs")
def test_chosen_numbers(device: Device, packed: list[bool], kind: str, counter: str, width: int) -> None:
    for limit in (0, 1, 37, COUNT // 2, COUNT):
        append(device, kind, counter, width, 5, limit)
    nbytes = np.dtype(TYPES[kind]).itemsize
    least = 16 if has_mask_registers() else vector_bytes()
    expected = packs_lanes(nbytes) and width * nbytes >= least
    assert expected == any(packed)


@pytest.mark.parametrize("counter", ["i32", "i64"])
@pytest.mark.parametrize("start", [-1, -30, -700])
@pytest.mark.sample(4)
def test_places_that_are_negative(device: Device, counter: str, start: int) -> None:
    append(device, "i32", counter, 32, start, COUNT // 2)


@pytest.mark.parametrize("counter", ["i32", "i64"])
def test_all_of_a_gang(device: Device, packed: list[bool], counter: str) -> None:
    append(device, "float", counter, 32, 3, 0, checked=False)
    assert any(packed) == packs_lanes(4)


def test_places_that_count_by_two_are_no_neighbours(device: Device, packed: list[bool]) -> None:
    text = appending("i32", "i64", "sext", True).replace("%count, i64 1 mono", "%count, i64 2 mono")
    values = np.arange(COUNT, dtype=np.int32)
    x, places, count = to_device(values), to_device(np.zeros(COUNT, np.int64)), to_device(np.zeros(1, np.int64))
    found = to_device(np.full(2 * COUNT, -1, np.int32))
    with config.cpu_form.scope("vectors"):
        function = device.load(code(text, "k", PARAMETERS)).function("k")
        function.launch(
            1, BLOCK, pack(function.kernel, x.address, count.address, found.address, places.address, COUNT, 0)
        )
    assert not any(packed)
    np.testing.assert_array_equal(found.copy_to_host()[places.copy_to_host()[:BLOCK]], values[:BLOCK])


def test_places_of_another_block_are_not_known_to_be_neighbours(device: Device, packed: list[bool]) -> None:
    """Fewer lanes may store than have counted."""
    text = appending("i32", "i64", "sext", True).replace(
        "  %from =", "  %odd = trunc i64 %i to i1\n  br i1 %odd, label %end, label %keep\nkeep:\n  %from ="
    )
    values = np.arange(COUNT, dtype=np.int32)
    x, places, count = to_device(values), to_device(np.full(COUNT, -1)), to_device(np.zeros(1, np.int64))
    found = to_device(np.full(2 * COUNT, -1, np.int32))
    with config.cpu_form.scope("vectors"):
        function = device.load(code(text, "k", PARAMETERS)).function("k")
        function.launch(
            1, BLOCK, pack(function.kernel, x.address, count.address, found.address, places.address, COUNT, 0)
        )
    assert not any(packed)
    taken = places.copy_to_host()[:BLOCK:2]
    np.testing.assert_array_equal(found.copy_to_host()[taken], values[:BLOCK:2])
    assert (found.copy_to_host() >= 0).sum() == BLOCK // 2
