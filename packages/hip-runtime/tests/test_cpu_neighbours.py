"""Loads and stores of neighbours in memory, at places that lanes have apart: as of records that an index selects."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack
from test_cpu_strided import before_a_guard, behind_a_guard

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.analyses.neighbours import Neighbours
from hip_runtime.drivers.cpu.vectorize import apart_accesses

TYPES = {
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "half": np.float16, "float": np.float32,
    "double": np.float64,
}  # fmt: skip
PARAMETERS = [("x", "ptr"), ("places", "ptr"), ("again", "ptr"), ("threads", "i64")]
THREADS, BLOCK, PITCH = 90, 48, 7
NOWHERE = 1 << 40
"""A place that no memory has."""
Array = np.ndarray[Any, Any]


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, int]]:
    """Of what opcodes and of how many neighbours accesses are made at once."""
    found: set[tuple[str, int]] = set()
    original = apart_accesses.find_neighbours

    def spy(*arguments: Any) -> dict[Any, Neighbours]:
        neighbours = original(*arguments)
        found.update((group.earliest.opcode, len(group.members)) for group in neighbours.values())
        return neighbours

    monkeypatch.setattr(apart_accesses, "find_neighbours", spy)
    return found


def kernel(kind: str, steps: Sequence[str], masked: bool) -> str:
    """Thread i takes *steps* in its record of `PITCH` elements, which is at ``places[i]``; if *masked*, unless that is
    `NOWHERE`:
    ``l2`` loads element 2, and ``s3=2`` stores what was loaded of 2 last, plus 1, to element 3. ``L2`` and ``S3=2`` do
    the same by ``again[i]``, of which the compiler cannot know that it is the same number."""
    lines = []
    loaded: dict[str, str] = {}
    plus = "add" if kind.startswith("i") else "fadd"
    one = "1" if kind.startswith("i") else "1.0"
    for number, step in enumerate(steps):
        element, _, source = step[1:].partition("=")
        record = "%record" if step[0].islower() else "%same"
        lines.append(f"  %p{number} = getelementptr {kind}, ptr {record}, i64 {element}")
        if step[0] in "lL":
            lines.append(f"  %v{number} = load {kind}, ptr %p{number}, align 1")
            loaded[element] = f"%v{number}"
        else:
            lines.append(f"  %w{number} = {plus} {kind} {loaded[source]}, {one}")
            lines.append(f"  store {kind} %w{number}, ptr %p{number}, align 1")
    body = "\n".join(lines)
    take = "br i1 %on, label %do, label %end" if masked else "br label %do"
    return f"""
define void @k(ptr noalias %item, ptr %x, ptr noalias %places, ptr noalias %again, i64 %threads) {{
entry:
{GLOBAL_X}
  %in = icmp slt i64 %i, %threads
  br i1 %in, label %begin, label %end
begin:
  %at = getelementptr i64, ptr %places, i64 %i
  %place = load i64, ptr %at
  %on = icmp slt i64 %place, {NOWHERE}
  {take}
do:
  %first = mul i64 %place, {PITCH}
  %record = getelementptr {kind}, ptr %x, i64 %first
  %at.again = getelementptr i64, ptr %again, i64 %i
  %place.again = load i64, ptr %at.again
  %first.again = mul i64 %place.again, {PITCH}
  %same = getelementptr {kind}, ptr %x, i64 %first.again
{body}
  br label %end
end:
  ret void
}}
"""


def expect(records: Array, steps: Sequence[str], places: Array, again: Array) -> Array:
    """What `kernel` leaves in *records* for threads with *places* and other places *again*."""
    result, loaded = records.copy(), {}
    for step in steps:
        element, _, source = step[1:].partition("=")
        at = (places if step[0].islower() else again), int(element)
        if step[0] in "lL":
            loaded[element] = result[at].copy()
        else:
            result[at] = (loaded[source] + records.dtype.type(1)).astype(records.dtype)
    return result


def check(device: Device, kind: str, steps: Sequence[str], masked: bool, others: bool = False) -> None:
    """Compare records the first or the last of which is at an end of the memory that may be accessed; if *others*, the
    records by the other name are others."""
    dtype = np.dtype(TYPES[kind])
    rng = np.random.default_rng(len(steps))
    order = rng.permutation(THREADS)
    same = order + others * THREADS
    chosen = rng.integers(0, 2, THREADS).astype(bool) | (not masked)
    touched = [int(step[1:].partition("=")[0]) for step in steps]
    least, most = min(touched), max(touched) + 1
    places, again = (to_device(np.where(chosen, numbers, NOWHERE)) for numbers in (order, same))
    function = device.load(code(kernel(kind, steps, masked), "k", PARAMETERS)).function("k")
    for guarded in (before_a_guard, behind_a_guard):
        records = rng.integers(0, 50, ((1 + others) * THREADS, PITCH)).astype(dtype)
        expected = expect(records, steps, order[chosen], same[chosen])
        begin = least if guarded is behind_a_guard else 0
        end = records.size - (PITCH - most if guarded is before_a_guard else 0)
        nbytes = (end - begin) * dtype.itemsize
        with guarded(nbytes) as memory, config.cpu_form.scope("vectors"):
            ctypes.memmove(memory, records.ravel()[begin:end].tobytes(), nbytes)
            x = memory - begin * dtype.itemsize
            function.launch(
                2, BLOCK, pack(function.kernel, x, places.address, again.address, THREADS)
            )  # fmt: skip
            found = np.frombuffer(ctypes.string_at(memory, nbytes), dtype)
        np.testing.assert_array_equal(found, expected.ravel()[begin:end], f"{kind}, {steps}, {masked}")


def swapped(count: int) -> list[str]:
    """Steps that reverse *count* elements in the middle of a record."""
    elements = range(1, 1 + count)
    return [f"l{element}" for element in elements] + [f"s{element}={count + 1 - element}" for element in elements]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("count", [2, 3, 4, 5])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.sample(4)
def test_elements_of_all_sizes(
    device: Device, groups: set[tuple[str, int]], kind: str, count: int, masked: bool
) -> None:
    check(device, kind, swapped(count), masked)
    under_mask = np.dtype(TYPES[kind]).itemsize < 8  # as at the end of the last block in any case
    assert (("load", 4) in groups) == (count >= 4)
    assert (("load", 2) in groups) == (count < 4)
    assert (("store", 2) in groups) == (under_mask or not masked)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("width", [2, 4, 64])
@pytest.mark.parametrize("kind", ["i16", "float", "double"])
@pytest.mark.sample(3)
def test_gangs_of_all_widths(device: Device, kind: str, width: int, masked: bool) -> None:
    with config.cpu_width.scope(width):
        for count in (2, 4):
            check(device, kind, swapped(count), masked)


STEPS = {
    "the first one last": ["l3", "l2", "l1", "s3=1", "s2=2", "s1=3"],
    "apart from each other": ["l0", "l2", "l3", "l5", "s0=2", "s2=3", "s5=5", "s3=0"],
    "one element twice": ["l1", "l2", "l1", "s1=2", "s2=1", "s1=1"],
    "stored between loads": ["l1", "S2=1", "l2", "s3=1", "s4=2"],
    "loaded between stores": ["l1", "l2", "s1=2", "L1", "L2", "s2=1", "s3=1", "s4=2"],
    "stored between stores": ["l1", "l2", "s3=1", "S3=2", "s4=1"],
    "stored by one name each": ["l1", "l2", "s3=1", "S4=2"],
    "stored by both names": ["l1", "l2", "s3=1", "S4=2", "s4=1", "S3=2"],
}


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.sample(1)
@pytest.mark.usefixtures("kept_programs")
def test_order_of_accesses(device: Device, steps: str, masked: bool) -> None:
    for kind in ("float", "i8"):
        for others in (False, True):
            check(device, kind, STEPS[steps], masked, others)


def test_places_that_grow_by_a_number(device: Device, groups: set[tuple[str, int]]) -> None:
    """Neighbours by indices rather than by addresses."""
    text = f"""
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %x, ptr noalias %places, i64 %threads) {{
entry:
{GLOBAL_X}
  %at = getelementptr i64, ptr %places, i64 %i
  %place = load i64, ptr %at
  %p = getelementptr float, ptr %x, i64 %place
  %following = add i64 %place, 1
  %q = getelementptr float, ptr %x, i64 %following
  %v = load float, ptr %p
  %w = load float, ptr %q
  %both = fsub float %v, %w
  %r = getelementptr float, ptr %out, i64 %i
  store float %both, ptr %r
  ret void
}}
"""
    values = np.random.default_rng(3).random(THREADS + 1).astype(np.float32)
    order = np.random.default_rng(4).permutation(96) % THREADS
    x, places, out = to_device(values), to_device(order), to_device(np.zeros(96, np.float32))
    with config.cpu_form.scope("vectors"):
        names = [("out", "ptr"), ("x", "ptr"), ("places", "ptr"), ("threads", "i64")]
        function = device.load(code(text, "k", names)).function("k")
        function.launch(2, BLOCK, pack(function.kernel, out.address, x.address, places.address, 96))
    np.testing.assert_array_equal(out.copy_to_host(), values[order] - values[order + 1])
    assert ("load", 2) in groups


def clamped_kernel(masked: bool, taps: int, kind: str) -> str:
    """Thread i adds up x[place], 3 times x[min(place + 1, limit)] and so on, each place held at the limit; a negative
    one counts from the end."""
    lines = []
    for number in range(taps):
        lines.append(f"""
  %next{number} = add i64 %place, {number}
  %held{number} = call i64 @llvm.smin.i64(i64 %next{number}, i64 %limit)
  %below{number} = icmp slt i64 %held{number}, 0
  %more{number} = select i1 %below{number}, i64 %n, i64 0
  %p{number} = getelementptr {kind}, ptr %x, i64 %held{number}
  %q{number} = getelementptr {kind}, ptr %p{number}, i64 %more{number}
  %v{number} = load {kind}, ptr %q{number}, align 1
  %w{number} = fmul {kind} %v{number}, {3.0**number}
  %sum{number} = fadd {kind} {f"%sum{number - 1}" if number else "0.0"}, %w{number}""")
    body = "".join(lines)
    take = "br i1 %on, label %do, label %end" if masked else "br label %do"
    return f"""
declare i64 @llvm.smin.i64(i64, i64)
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %x, ptr noalias %places, ptr noalias %flags, i64 %n) {{
entry:
{GLOBAL_X}
  %limit = sub i64 %n, 1
  %f = getelementptr i8, ptr %flags, i64 %i
  %flag = load i8, ptr %f
  %on = icmp ne i8 %flag, 0
  {take}
do:
  %at = getelementptr i64, ptr %places, i64 %i
  %place = load i64, ptr %at
{body}
  %r = getelementptr {kind}, ptr %out, i64 %i
  store {kind} %sum{taps - 1}, ptr %r
  br label %end
end:
  ret void
}}
"""


def check_clamped(device: Device, kind: str, taps: int, masked: bool) -> None:
    """Gangs of which no lane is at the limit, some of which one is, and such with negative indices; lanes that are not
    active may be anywhere."""
    dtype, count, size = np.dtype(TYPES[kind]), 192, 50
    rng = np.random.default_rng(taps)
    values = rng.integers(0, 100, size).astype(dtype)
    order = rng.integers(0, size - taps + 1, count)
    order[[40, 77, 130]] = size - 1, size - 2, -1
    flags = rng.integers(0, 2, count).astype(np.int8)
    flags[[40, 130]] = 1
    order[(flags == 0) & masked] = 1 << 40
    places, marks, out = to_device(order), to_device(flags), to_device(np.zeros(count, dtype))
    names = [("out", "ptr"), ("x", "ptr"), ("places", "ptr"), ("flags", "ptr"), ("n", "i64")]
    with before_a_guard(values.nbytes) as x, config.cpu_form.scope("vectors"), config.cpu_width.scope(16):
        ctypes.memmove(x, values.tobytes(), values.nbytes)
        function = device.load(code(clamped_kernel(masked, taps, kind), "k", names)).function("k")
        function.launch(3, 64, pack(function.kernel, out.address, x, places.address, marks.address, size))
    active = (flags != 0) | (not masked)
    held = [np.minimum(np.where(active, order, 0) + number, size - 1) for number in range(taps)]
    expected = sum(values[place] * dtype.type(3**number) for number, place in enumerate(held))
    np.testing.assert_array_equal(out.copy_to_host(), np.where(active, expected, 0))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("taps", [2, 4])
@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.sample(5)
def test_neighbours_that_are_held_within_limits(
    device: Device, groups: set[tuple[str, int]], kind: str, taps: int, masked: bool
) -> None:
    check_clamped(device, kind, taps, masked)
    assert groups == {("load", taps)}


@pytest.mark.parametrize("masked", [False, True])
def test_neighbours_whose_first_step_is_used_elsewhere(
    device: Device, groups: set[tuple[str, int]], masked: bool
) -> None:
    """LLVM would abort if the addresses were compared: it rewrites the address of the row's second element, which all
    lanes have in common, as a vector."""
    take = "br i1 %on, label %do, label %end" if masked else "br label %do"
    text = f"""
declare i64 @llvm.smin.i64(i64, i64)
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %x, ptr noalias %places, ptr noalias %flags, i64 %n) {{
entry:
{GLOBAL_X}
  %limit = sub i64 %n, 2
  %f = getelementptr i8, ptr %flags, i64 %i
  %flag = load i8, ptr %f
  %on = icmp ne i8 %flag, 0
  {take}
do:
  %second = getelementptr float, ptr %x, i64 1
  %common = load float, ptr %second
  %at = getelementptr i64, ptr %places, i64 %i
  %place = load i64, ptr %at
  %held = call i64 @llvm.smin.i64(i64 %place, i64 %limit)
  %p = getelementptr float, ptr %x, i64 %place
  %q = getelementptr float, ptr %second, i64 %held
  %v = load float, ptr %p
  %w = load float, ptr %q
  %both = fsub float %v, %w
  %all = fadd float %both, %common
  %r = getelementptr float, ptr %out, i64 %i
  store float %all, ptr %r
  br label %end
end:
  ret void
}}
"""
    count, size = 96, 50
    values = np.arange(size, dtype=np.float32) ** 2
    order = np.random.default_rng(5).integers(0, size - 1, count)
    order[[17, 60]] = size - 1
    flags = np.random.default_rng(6).integers(0, 2, count).astype(np.int8)
    flags[[17, 60]] = 1
    x, places, marks, out = map(to_device, (values, order, flags, np.zeros(count, np.float32)))
    with config.cpu_form.scope("vectors"):
        names = [("out", "ptr"), ("x", "ptr"), ("places", "ptr"), ("flags", "ptr"), ("n", "i64")]
        function = device.load(code(text, "k", names)).function("k")
        function.launch(2, BLOCK, pack(function.kernel, out.address, x.address, places.address, marks.address, size))
    expected = values[order] - values[np.minimum(order, size - 2) + 1] + values[1]
    np.testing.assert_array_equal(out.copy_to_host(), np.where((flags != 0) | (not masked), expected, 0))
    assert ("load", 2) in groups
